"""Writer of the tuple memory: takes the words of layer after layer from their inlet (part of
hls_gen/rtl/sequencer/sequencer.py).

    memory inputs --> which inlet, how many words
    inlets ---------> word, in cycles in which the ring has a free one --> tuple memory

One word a cycle. The next layer's words follow those of this one without a gap, whether the tap source has come to that
layer or not, as long as there is room in the ring.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bitloom.hls_gen.design.folding import INLETS
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, choose, const, eq, resize, sub, width
from bitloom.hls_gen.rtl.primitives.layer_counter import layer_counter
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.stream import Stream

from .spec import SequencerSpec

INLET_BITS = 2
"""Width of an inlet's place in INLETS."""


@dataclass(frozen=True)
class InputRow:
    """Row of the memory ``inputs`` or ``pool_inputs``: where a layer's map comes from.

    Attributes
    ----------
    words : Signal
        Words of the map.
    source : Signal or None
        Number of its inlet among those of the NPU; ``source_bits``. None where there is one inlet.
    """

    words: Signal
    source: Signal | None = None


@dataclass(frozen=True)
class Writer:
    """The write port of the tuple memory.

    Attributes
    ----------
    write : Signal
        A word is written in this cycle.
    word : Signal
        That word.
    has_free : Signal
        Wire, driven by the issuer: a word of the ring may be overwritten.
    """

    write: Signal
    word: Signal
    has_free: Signal


def writer(b: Block, library: Library, spec: SequencerSpec, bus: LoadBus, last_layer: Signal) -> Writer:
    """The writer inside ``b``."""
    memory = spec.memory("inputs")
    names = ("in",) if spec.pool else spec.npu.inlets
    inlets = {name: Stream.input(b, name, spec.word_bits) for name in names}
    has_free = b.wire("has_free")
    left = b.reg("words_left", memory.widths["words"])  # of the map that comes, this word included
    loaded = b.reg("writer_loaded")  # a layer's row was taken: from the second cycle after reset on
    write, word = b.wire("write"), b.wire("write_word", spec.word_bits)
    final = b.wire("write_final", 1, write & eq(left, 1))
    advance = b.wire("writer_advance", 1, any_of(~loaded, final))
    number = layer_counter(b, "writer_upcoming", last_layer, advance)
    row = InputRow(**library.loadable(b, memory, bus, resize(number, bits_for(memory.depth - 1))))
    b.on(write, (left, sub(left, 1, width(left))))
    b.on(advance, (left, row.words), (loaded, 1))
    can = b.wire("can_write", 1, loaded & has_free)
    shown = None if spec.pool else b.output("inlet", INLET_BITS)  # the inlet that is read, for register STATE
    if row.source is None:
        if shown is not None:
            shown.assign(const(INLETS.index(names[0]), INLET_BITS))
        (inlet,) = inlets.values()
        inlet.ready.assign(can)
        write.assign(inlet.valid & can)
        word.assign(inlet.data)
    else:
        source = b.reg("source", width(row.source))
        b.on(advance, (source, row.source))
        shown.assign(_place(spec.npu, source))
        _select(b, inlets, source, can, (write, word))
    return Writer(write, word, has_free)


def _select(
    b: Block, inlets: Mapping[str, Stream], source: Signal, can: Signal, outcome: tuple[Signal, Signal]
) -> None:
    """Takes words from the inlet with number ``source`` and from no other; ``outcome``: is a word written, which."""
    write, word = outcome
    first = next(iter(inlets.values()))
    valid, data = first.valid, first.data
    for number, (name, inlet) in enumerate(inlets.items()):
        mine = b.wire(f"from_{name}", 1, eq(source, number))
        inlet.ready.assign(can & mine)
        if number:
            valid, data = choose(mine, inlet.valid, valid, 1), choose(mine, inlet.data, data, width(data))
    write.assign(can & valid)
    word.assign(data)


def _place(npu: Npu, source: Signal) -> Signal:
    """The place in INLETS of the inlet with number ``source`` in ``npu``."""
    place: Signal = const(0, INLET_BITS)
    for number, name in enumerate(npu.inlets):
        place = choose(eq(source, number), INLETS.index(name), place, INLET_BITS)
    return place
