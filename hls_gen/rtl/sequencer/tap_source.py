"""Tap source: the taps of layer after layer, one a cycle (part of hls_gen/rtl/sequencer/sequencer.py; spec B3, B4, B9,
B10).

    layer rows --> layer at hand --+--> direct   --+
                                   +--> tables   --+--> which tap --> address, kernel row, claim --> issuer
                                   +--> counters --+

For each window, for each kernel group: the valid taps of the window, one pass over them a group. Tuples are claimed in
the first pass and read again in the others.
"""

from dataclasses import replace

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.widths import LAYER_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, any_of, bits, choose, resize, width
from bitloom.hls_gen.rtl.primitives.countdown import Countdown
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .claims import Ahead, given_back
from .context import Context
from .direct import DirectTaps
from .kernel_rows import KernelRows
from .layers import Layers
from .raster import CounterTaps
from .source import ServedTap, TapSource, next_last, served_tap
from .spec import SequencerSpec
from .tables import TableTaps
from .tap import Tap
from .tap_events import Pointer, TapEvents
from .tuple_parts import TupleParts
from .weights import WeightsBegun, weights_missing

ORDER_OF_SEVERAL = """For each window, for each pass, which serves one kernel group or several: the valid taps of the
window. Tuples are claimed in the first pass and read again in the others."""
"""The order of taps in front of an array with several accumulators a PE, for the header."""
POOL_ORDER = "For each window its valid taps, once. The first tap that reads a tuple claims it."
"""The order of taps in the sequencer of the pool unit, for its header."""


def tap_source(library: Library, spec: SequencerSpec) -> Block:
    """The module: ports ``tap_*`` (tap.Tap), ``layer`` (number of the layer that begins next) and ``weights_*``."""
    latency = f"{timing.FIRST_STEP + 1} cycles from reset to the first tap"
    header = Header(_contract(spec), rate="one tap a cycle", latency=latency)
    context = Context.module(library, spec, "tap_source", spec.tables, header)
    b = context.b
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    tap = Tap.output(b, spec)
    weights = WeightsBegun.output(b, spec)
    number = b.output("layer", LAYER_BITS, means="number of the layer that begins next")

    # # #

    b.comment("The layer at hand; its row is copied as it begins, and the next one is read ahead.")
    taken = tap.valid & tap.ready
    streamed = spec.npu.loader.stream_weights and not spec.pool
    held = b.wire("held_for_weights") if streamed else None
    # whether there is a tap isn't asked, as the issuer is ready before the first one: what follows is on long paths
    layers = Layers(context, last_layer, tap.ready if held is None else b.wire("move", 1, tap.ready & ~held))
    number.assign(layers.number)
    now = layers.now
    # a register, since sums begin with it
    tuple_words = b.reg("tuple_words", spec.sequencer.address_bits, init=None)
    b.on(layers.begin, (tuple_words, add(layers.upcoming.words_minus_1, 1, spec.sequencer.address_bits)))
    tables = TableTaps(context, layers)
    counters = CounterTaps(b, layers, tuple_words) if spec.kind.counters else None
    # counters first, as the one that is looked at where no other serves: their own mark has many readers
    sources: list[TapSource] = [*([] if counters is None else [counters]), tables, DirectTaps(b, layers)]
    b.comment("What is said of the tap at hand by the one that makes the taps of this layer.")
    chosen = served_tap(b, sources)
    last = b.reg("tap_at_hand_last", init=None)  # a register, as whether the layer ends and what follows depend on it
    events, first_pass, pass_last, window_last = _events(b, layers, taken, last)
    b.comment("Whether the tap that follows is the last one of its pass, of its window, and of its layer.")
    last_after = next_last(b, sources, events)
    b.on(layers.move, (last, last_after))
    window_ends = last_after if pass_last is None else all_of(last_after, pass_last)
    layer_ends = all_of(window_ends, window_last)
    layers.follow(layer_ends)
    if counters is not None:
        counters.follow(window_ends, layer_ends)
    b.comment("Claims: the first tap that reads a tuple waits for its words; what no tap reads any more is given back.")
    claim = b.wire("claims", 1, chosen.new if first_pass is None else chosen.new & first_pass)
    ahead = _ahead(b, layers, tables, counters, first_pass)
    part = None if now.kernel is None or now.kernel.part is None else TupleParts(b, layers, events)
    given = given_back(b, layers, events, claim, ahead)
    placed = chosen
    if counters is not None:  # addresses by counters don't depend on what is new, and are on a long path
        placed = replace(chosen, new=any_of(layers.now.direct, tables.new))
    address = _address(b, layers, events, placed, tuple_words, tables.ahead_words)
    words_minus_1 = now.words_minus_1
    if part is not None and ahead is not None:
        address = address + part.first
        words_minus_1 = now.kernel.part.words_minus_1
        ahead = part.claimed_beside(claim, ahead)
        if layers.start.ahead_base is not None:  # claims count by the row that comes next
            b.wire("layer_words_unused", width(now.words_minus_1), now.words_minus_1)
    b.comment("The tap at hand.")
    tap.assign(skip=chosen.skip, claim=claim, last=last, layer_end=layers.end, address=address)
    tap.assign(words_minus_1=words_minus_1, hold_words=now.hold_words, given_words=resize(given, spec.count_bits))
    if ahead is not None:
        tap.assign(gap=ahead.any, gap_words=ahead.words)
    tap.marks.assign(**now.marks.ports())
    if now.kernel is not None:
        begins = "; each pass begins anew at its kernel group" * (not spec.pool)
        b.comment(f"Kernel row that the tap meets{begins}.")
        rows = KernelRows(b, layers)
        rows.advance(events, chosen.skip, tables, counters)
        tap.assign(row=rows.row, offset=now.kernel.tap_offset, streamed=now.kernel.kernel_stream)
        tap.assign(inner_groups_minus_1=now.kernel.inner_groups_minus_1)
        if held is not None:
            held.assign(weights_missing(b, layers, taken, weights))
    tap.assign(valid=layers.have if held is None else layers.have & ~held)
    if held is not None:
        tap.assign(weights_missing=layers.have & held)
    return b


def _contract(spec: SequencerSpec) -> str:
    """The header's text: the parts of this file's text that hold for this sequencer."""
    title, ways, order = str(__doc__).strip("\n").split("\n\n")
    if not spec.kind.counters:
        ways = ways[: ways.rindex("\n")]
    if not spec.kind.kernel_rows:
        ways = ways.replace("kernel row, ", "")
    if spec.pool:
        order = POOL_ORDER
    elif spec.npu.array.accumulators > 1:
        order = ORDER_OF_SEVERAL
    return "\n\n".join((title, ways, order))


def _events(
    b: Block, layers: Layers, taken: Signal, last: Signal
) -> tuple[TapEvents, Signal | None, Signal | None, Signal]:
    """(events of the tap at hand, whether this is the first pass over its window; of the tap that follows: whether its
    pass is the last one of its window, and whether its window is the last one of its layer).

    Counts kernel groups and windows. The pool's sequencer has no groups, and passes each window once: what is said of
    passes is None there.
    """
    first_pass = None
    pass_last: Signal | None = None
    window_end = last
    first = None
    rewind = None
    kernel = layers.now.kernel
    passes_told = ""
    if kernel is not None and kernel.groups_minus_1 is not None:
        passes_told = ", and passes over each" + ": one a kernel group" * (kernel.inner_groups_minus_1 is None)
    b.comment(f"Windows of the layer{passes_told}.")
    passes = b.wire("next_pass", 1, layers.move & any_of(layers.change, last))
    if kernel is not None and kernel.groups_minus_1 is not None:
        limit = kernel.groups_minus_1
        groups = Countdown(b, "groups", width(limit))
        first_pass = b.reg("first_pass", init=None)
        groups_end = groups.advance(passes, layers.change, layers.upcoming.kernel.groups_minus_1, limit)
        pass_last = choose(any_of(layers.change, last), groups_end, groups.last, 1)
        b.on(passes, (first_pass, any_of(layers.change, groups.last)))
        window_end = last & groups.last
        rewind = last & ~groups.last
        first = b.reg("first_of_pass", init=None)
        b.on(layers.move, (first, any_of(layers.change, last)))
    window_end = b.wire("window_end", 1, window_end)
    events = TapEvents(
        begin=layers.begin,
        change=layers.change,
        taken=taken,
        move=layers.move,
        passes=passes,
        windows=passes if rewind is None else b.wire("next_window", 1, layers.move & any_of(layers.change, window_end)),
        last=last,
        window_end=window_end,
        first=first,
        rewind=None if rewind is None else b.wire("rewind", 1, rewind),
    )
    upcoming = layers.start.windows_minus_1
    windows = Countdown(b, "windows", width(upcoming))
    windows_end = windows.advance(events.windows, layers.change, upcoming)
    window_last = choose(any_of(layers.change, window_end), windows_end, windows.last, 1)
    return events, first_pass, pass_last, window_last


def _ahead(
    b: Block, layers: Layers, tables: TableTaps, counters: CounterTaps | None, first_pass: Signal | None
) -> Ahead | None:
    """Words that the tap at hand claims beside its own, in the first pass over its window; None where it never does."""
    gaps: list[tuple[Signal, Signal]] = []
    if tables.claims_ahead is not None and tables.ahead_row is not None:
        gaps.append((tables.claims_ahead, tables.ahead_row))
    if counters is not None:
        gaps.append((counters.serves & counters.gap, layers.now.raster.gap_words))
    if not gaps:
        return None
    gap, words = gaps[-1]
    if len(gaps) > 1:
        w = max(width(count) for _, count in gaps)
        words = choose(counters.serves, resize(words, w), resize(gaps[0][1], w), w)
        gap = any_of(*(flag for flag, _ in gaps))
    gap = b.wire("claims_gap", 1, gap if first_pass is None else gap & first_pass)
    return Ahead(gap, b.wire("gap_at_hand", width(words), words))


def _address(
    b: Block, layers: Layers, events: TapEvents, chosen: ServedTap, tuple_words: Signal, ahead_words: Signal | None
) -> Signal:
    """Place of the tap's tuple in the tuple memory.

    Addresses count from the layer's first word; the ring holds words of several layers, one layer after another. The
    next new tuple lies at ``new_word``, or behind the ``ahead_words`` that the tap claims beside its own. With counters
    ``new_word`` matters only at the layer's end, where the last tap reads the map's last tuple: the next layer begins
    behind this tuple.
    """
    b.comment("Place of the tap's tuple in the ring: a new one lies behind the one before, an old one where it is.")
    ring = width(tuple_words)
    address = b.wire("address", ring)
    new_word = Pointer(b, "new_word", ring, layers.have)
    claimed = b.wire("new_words", ring, choose(chosen.new, tuple_words, 0, ring))
    new = new_word.value
    if ahead_words is not None:  # a map may have more words than the ring: addresses wrap round
        w = width(ahead_words)
        ahead = b.wire("words_ahead", w, ahead_words)
        if w > ring:
            b.wire("words_ahead_unused", w - ring, bits(ahead, ring, w - ring))
        new = b.wire("new_address", ring, new + resize(ahead, ring))
    after = new + claimed
    layer_word = b.reg("layer_word", ring)  # place of the layer's first word
    raster = layers.now.raster
    old = b.wire("old_address", ring, layer_word + chosen.word)
    if raster is not None:
        after = choose(raster.by_counters, old + tuple_words, after, ring)
    after = b.wire("new_word_after", ring, after)
    new_word.advance(events, after)
    b.on(layers.begin, (layer_word, after))
    b.on(~layers.have, (layer_word, 0))
    address.assign(choose(chosen.placed, old, new, ring))
    return address
