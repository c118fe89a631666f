"""Tap source: the taps of layer after layer, one a cycle (part of hls_gen/rtl/sequencer/sequencer.py; spec B3, B4, B9,
B10).

    layer rows --> layer at hand --+--> direct   --+
                                   +--> tables   --+--> which tap --> address, kernel row, claim --> issuer
                                   +--> counters --+

A window is passed once for each kernel group. Tuples are claimed in the first pass and read again in the others.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, choose, const, eq, width
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus

from .direct import DirectTaps
from .kernel_rows import KernelRows
from .layers import Layers
from .progress import Pointer, Progress
from .raster import CounterTaps
from .source import Choice
from .spec import SequencerSpec
from .tables import Jumps, TableTaps
from .tap import Tap
from .weights import weights_gate


def tap_source(b: Block, library: Library, spec: SequencerSpec, bus: LoadBus, last_layer: Signal) -> Tap:
    """The tap source inside ``b``; returns the tap at hand, whose ``step`` the issuer drives."""
    layers = Layers(b, library, spec, bus, last_layer)
    now = layers.now
    tables = TableTaps(b, library, spec, bus, layers)
    direct = DirectTaps(b, now)
    counters = CounterTaps(b, spec, layers) if spec.npu.raster else None
    choice = _choice(b, direct, tables, counters)
    group_last, first_pass = _groups(b, layers, choice.last)
    progress = Progress(
        begin=layers.begin,
        step=layers.step,
        move=layers.move,
        last=choice.last,
        new=choice.new,
        window_end=b.wire("window_end", 1, choice.last & group_last),
        rewind=b.wire("rewind", 1, choice.last & ~group_last),
    )
    window = b.reg("window", width(now.windows_minus_1))
    layers.layer_end.assign(progress.window_end & eq(window, now.windows_minus_1))
    direct.advance(b, progress)
    b.on(progress.step & progress.window_end, (window, add(window, 1, width(window))))
    b.on(progress.begin, (window, 0))
    tables.advance(b, progress)
    address = _address(b, spec, layers, progress, (tables, counters))
    claim = b.wire("tap_claim", 1, choice.new & first_pass)
    gap_words = None
    if counters is not None:
        ahead, w = all_of(counters.serves, counters.gap, first_pass), width(now.raster.gap_words)
        gap_words = b.wire("gap_claimed", w, choose(ahead, now.raster.gap_words, 0, w))
    gate = weights_gate(b, layers) if not spec.pool and spec.npu.stream_weights else None
    row = None
    if now.kernel is not None:
        rows = KernelRows(b, layers)
        jumps = Jumps(b, spec, tables.serves & tables.jump)
        jumps.read(b, library, bus, layers.start.jump_base, progress)
        rows.advance(b, progress, choice.skip, jumps, counters)
        row = rows.row
    return Tap(
        valid=layers.valid,
        step=layers.step,
        begin=layers.begin,
        skip=choice.skip,
        claim=claim,
        last=choice.last,
        layer_end=layers.layer_end,
        address=address,
        words_minus_1=now.words_minus_1,
        hold_words=now.hold_words,
        hold_next=layers.start.hold_tuples if counters is None else layers.upcoming.hold_words,
        gap_words=gap_words,
        target=now.target,
        average=now.average,
        row=row,
        offset=now.kernel.tap_offset if now.kernel is not None else None,
        inner_groups_minus_1=now.kernel.inner_groups_minus_1 if now.kernel is not None else None,
        held=gate.held if gate is not None else None,
        streamed=gate.streamed if gate is not None else None,
    )


def _choice(b: Block, direct: DirectTaps, tables: TableTaps, counters: CounterTaps | None) -> Choice:
    """What the source that serves the layer says of the tap at hand."""
    last, new = choose(direct.serves, direct.last, tables.last, 1), direct.serves | tables.new
    if counters is not None:
        last = choose(counters.serves, counters.last, last, 1)
    last = b.wire("tap_last", 1, last)
    if counters is not None:
        new = choose(counters.serves, counters.new, new, 1)
    return Choice(last, b.wire("tap_new", 1, new), b.wire("tap_skip", 1, tables.serves & tables.skip))


def _groups(b: Block, layers: Layers, last: Signal) -> tuple[Signal, Signal]:
    """(is it the last kernel group of this window, is it the first)."""
    if layers.now.kernel is None:  # a pool passes each window once
        return b.wire("group_last", 1, const(1, 1)), b.wire("group_first", 1, const(1, 1))
    limit = layers.now.kernel.groups_minus_1
    w = width(limit)
    group = b.reg("group", w)
    group_last = b.wire("group_last", 1, eq(group, limit))
    b.on(layers.step & last, (group, choose(group_last, 0, add(group, 1, w), w)))
    b.on(layers.begin, (group, 0))
    return group_last, b.wire("group_first", 1, eq(group, 0))


def _address(
    b: Block, spec: SequencerSpec, layers: Layers, progress: Progress, sources: tuple[TableTaps, CounterTaps | None]
) -> Signal:
    """Place of the tap's tuple in the tuple memory.

    A new tuple lies at ``new_word``, which runs on with each. An old one, and every tuple by counters, lies at an
    address that counts from the layer's first word.
    """
    tables, counters = sources
    ring, step, new = spec.address_bits, progress.step, progress.new
    tuple_words = b.wire("tuple_words", ring, add(layers.now.words_minus_1, 1, ring))
    claimed = b.wire("claimed", ring, choose(new, tuple_words, 0, ring))
    address = None if counters is None else b.wire("tap_address", ring)

    def new_after(v: Signal) -> Signal:  # counters need it at the end of the layer alone, where the last tuple is read
        return v + claimed if counters is None else choose(counters.serves, address + tuple_words, v + claimed, ring)

    new_word = Pointer.made(b, "new_word", ring)
    new_word.advance(b, progress, new_after)
    layer_word = b.reg("layer_word", ring)  # place of the layer's first word
    new_word_after = b.wire("layer_word_next", ring, new_after(new_word.value))
    b.on(step & layers.layer_end, (layer_word, new_word_after))
    if counters is None:
        return b.wire("tap_address", ring, choose(new, new_word.value, layer_word + tables.old_word, ring))
    relative = b.wire("relative_word", ring, choose(counters.serves, counters.word, tables.old_word, ring))
    address.assign(choose(new & ~counters.serves, new_word.value, layer_word + relative, ring))
    counters.advance(b, progress, tuple_words)
    return address
