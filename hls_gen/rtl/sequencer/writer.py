"""Writer of the tuple memory; the module's text, `CONTRACT`, says what it does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from veriloggen import Cat

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.ports import INLET_BITS, SOURCES
from bitloom.hls_gen.design.widths import LAYER_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, bits, choose, const, eq, resize, sub, width
from bitloom.hls_gen.rtl.primitives.gearbox import collected
from bitloom.hls_gen.rtl.primitives.layer_counter import layer_counter
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

from .bundle import Bundle, Meaning
from .context import Context
from .line_former import line_former
from .spec import SequencerSpec

CONTRACT = """Writer of the tuple memory: takes the words of layer after layer from their inlet (part of
hls_gen/rtl/sequencer/sequencer.py).

    memory inputs --> {row}
    {inlets}> word, in cycles in which the ring has a free one --> tuple memory

One word a cycle. The next layer's words follow those of this one without a gap, whether the tap source has come to that
layer or not, as long as there is room in the ring.
"""
"""The header's text; ``row``: what a row of the memory says."""
JOINED = """
A layer may read two maps side by side: then each tuple is the words of one map, from the layer's inlet, and behind them
those of the other map, from the skip store.
"""
"""Added to the header of a writer that takes words of two maps in turn."""
FORMED = """
A line former puts words side by side on their way to the tuple memory. Words are counted as they come.
"""
"""Added to the header of a writer with a line former."""
REGISTERED = """
Each word waits in a register in front of the line former.
"""
"""Added to that where words come from inlets."""


def inlet_means(npu: Npu) -> str:
    """Meaning of the port ``inlet``, for the header."""
    return f"inlet that is read: {npu.source_places}"


@dataclass(frozen=True)
class InputRow:
    """Row of the memory ``inputs`` or ``pool_inputs``: where a layer's map comes from."""

    words: Signal
    """Words of the map."""
    source: Signal | None = None
    """Number of its inlet in ``Npu.sources``; ``source_bits``. None where there is one."""
    joins: Signal | None = None
    """Whether words of a second map follow in each tuple, from the skip store, 1 bit. None where no layer reads two."""
    first_words_minus_1: Signal | None = None
    second_words_minus_1: Signal | None = None
    """first_words_minus_1, second_words_minus_1: words of a tuple, less 1, that are of either map, where the layer
    ``joins`` two."""


@dataclass(frozen=True, kw_only=True)
class Written(Bundle):
    """The write port of the tuple memory, as the issuer sees it too."""

    write: Annotated[Signal, Meaning("a word is written to the tuple memory at this clock edge")]
    write_row: Annotated[
        Signal, Meaning("place in the tuple memory that it goes to", lambda s: s.sequencer.address_bits)
    ]
    write_word: Annotated[Signal, Meaning("the word", lambda s: s.sequencer.word_bits)]
    has_free: Annotated[
        Signal, Meaning("a word of the tuple memory may be overwritten; 0 in the first cycle", back=True)
    ]


def writer(library: Library, spec: SequencerSpec) -> Block:
    """The module: a stream of words for each inlet, ports of Written, and ``inlet`` (which one is read)."""
    memory = spec.memory("inputs")
    joins = not spec.pool and spec.npu.joined_words > 0
    forms = spec.sequencer.forms_lines
    registered = spec.sequencer.has_input_register
    one_inlet = "source" not in memory.widths
    of_inlet = " from the map's inlet alone," * (not one_inlet)
    row, inlets = ("how many words", "inlet") if one_inlet else ("which inlet, how many words", "inlets")
    text = (
        CONTRACT.format(row=row, inlets=f"{inlets} ".ljust(16, "-"))
        + JOINED * joins
        + FORMED * forms
        + REGISTERED * registered
    )
    latency = f"{'1 cycle' if registered else '0 cycles'} from an inlet to the write port"
    header = Header(text, rate="one word a cycle", latency=latency)
    context = Context.module(library, spec, "writer", spec.of_writer, header)
    b = context.b
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    inlets = {name: Stream.input(b, name, spec.sequencer.inlet_bits(name)) for name in spec.sequencer.inlets}
    out = Written.output(b, spec)
    shown = None if spec.pool else b.output("inlet", INLET_BITS, means=inlet_means(spec.npu))  # for register STATE

    # # #

    b.comment(f"The map that comes: {'its inlet and ' * (not one_inlet)}its words; the next one follows without a gap.")
    left = b.reg("words_left", memory.widths["words"])  # of the map that comes, the next word included
    final = b.reg("word_final", init=1)  # the next word is its map's last one: a register, since words come late
    loaded = b.reg("writer_loaded")  # a layer's row was taken: from the second cycle after reset on
    take = b.wire("take") if forms else out.write  # a word comes
    moves = b.wire("writer_moves", 1, any_of(~loaded, take))
    advance = b.wire("writer_advance", 1, any_of(~loaded, take & final))
    number = layer_counter(b, "writer_upcoming", last_layer, advance)
    row = InputRow(**context.memory("inputs", resize(number, bits_for(memory.depth - 1))))
    b.on(
        moves,
        (left, choose(final, row.words, sub(left, 1, width(left)), width(left))),
        (final, choose(final, eq(row.words, 1), eq(left, 2), 1)),
        (loaded, 1),
    )
    write_row = b.reg("next_row", spec.sequencer.address_bits)  # places are filled one after another, layer after layer
    b.on(out.write, (write_row, add(write_row, 1, spec.sequencer.address_bits)))
    out.write_row.assign(write_row)
    b.comment(f"Words are taken{of_inlet} while the ring has room.")
    formed = _formed(context, last_layer, out) if forms else None
    can = b.wire("can_write", 1, out.has_free if formed is None else loaded & formed.ready)
    if one_inlet:
        (inlet,) = inlets.values()
        inlet.ready.assign(can)
        valid, data = inlet.valid, inlet.data
        taken = valid & can
        place: Signal = None if spec.pool else const(SOURCES.index(spec.sequencer.inlets[0]), INLET_BITS)
    else:
        source = b.reg("source", width(row.source))
        if joins:
            _alternate(b, spec.npu, row, source, (advance, take))
        else:
            b.on(advance, (source, row.source))
        valid, data = _select(b, inlets, source, can)
        taken = can & valid
        place = _place(b, spec.npu, source)
    if formed is None:
        out.assign(write=taken, write_word=data)
    else:
        formed.valid.assign(loaded & valid)
        formed.data.assign(data)
        take.assign(taken)
    if shown is not None:
        shown.assign(place)
    return b


def _alternate(b: Block, npu: Npu, row: InputRow, source: Signal, when: tuple[Signal, Signal]) -> None:
    """Drives ``source``, the inlet that words are taken from, where a layer may take those of two maps in turn.
    ``when``: the next layer begins; a word is written."""
    advance, write = when
    b.comment("Of two maps side by side a tuple has words of the layer's inlet, and then of the skip store.")
    names = ("joins", "first_words_minus_1", "second_words_minus_1")
    joins, first, second = (b.reg(f"own_{name}", width(getattr(row, name)), init=None) for name in names)
    layer_source = b.reg("own_source", width(source), init=None)
    beside = b.reg("beside", init=None)  # the second map's words come
    # words of this tuple that are still to come from the map whose words come now, less 1
    part = b.reg("part_words_minus_1", width(first), init=None)
    turn = b.wire("turn", 1, write & joins & eq(part, 0))
    skip = _source(b, "skip", npu.sources.index("skip"), width(source))
    b.on(write, (part, sub(part, 1, width(part))))
    b.on(
        turn,
        (beside, ~beside),
        (part, choose(beside, first, second, width(part))),
        (source, choose(beside, layer_source, skip, width(source))),
    )
    b.on(advance, *((reg, getattr(row, name)) for reg, name in zip((joins, first, second), names)))
    b.on(advance, (layer_source, row.source), (source, row.source), (beside, 0), (part, row.first_words_minus_1))


def _formed(context: Context, last_layer: Signal, out: Written) -> Stream:
    """Stream of words into the line former, or into the register in front of the former; words that are formed go to
    the write port. Valid and data of the stream are to be assigned."""
    b = context.b
    spec = context.spec
    words = Stream.wires(b, "coming", spec.sequencer.widest_inlet)
    lines = Stream.wires(b, "formed", spec.sequencer.word_bits)
    block = context.library.get(line_former, context.library, spec)
    waiting = words
    if spec.sequencer.has_input_register:
        source = words.replace(last=const(0, 1))
        waiting = collected(b, context.library, "came", source, words.data_bits, 1, ("last",)).replace(last=None)
    ports = {**context.bus.to(block), **waiting.ports("in"), **lines.ports("out")}
    b.instance(block, "line_former", last_layer=last_layer, **ports)
    lines.ready.assign(out.has_free)
    out.assign(write=lines.valid & out.has_free, write_word=lines.data)
    return words


def _select(b: Block, inlets: Mapping[str, Stream], source: Signal, can: Signal) -> tuple[Signal, Signal]:
    """Takes words from the inlet with number ``source`` and from no other; (there is one, the word). What lies above a
    word that is narrower than others means nothing."""
    widest = max(inlets.values(), key=lambda inlet: inlet.data_bits)

    def word(inlet: Stream) -> Signal:
        """The word of the inlet, as wide as that of the widest one, by whose bits it is filled up: so these bits ask
        neither for the inlet nor for its word, which may come late."""
        w = inlet.data_bits
        filled = widest.data_bits - w
        return Cat(bits(widest.data, w, filled), inlet.data) if filled else inlet.data

    first = next(iter(inlets.values()))
    valid = first.valid
    data = word(first)
    for number, (name, inlet) in enumerate(inlets.items()):
        selected = b.wire(f"from_{name}", 1, eq(source, _source(b, name, number, width(source))))
        inlet.ready.assign(can & selected)
        if number:
            valid = choose(selected, inlet.valid, valid, 1)
            data = choose(selected, word(inlet), data, widest.data_bits)
    return valid, data


def _source(b: Block, name: str, number: int, w: int) -> Signal:
    """The number of an inlet among those of the NPU, as a constant ``SOURCE_<name>`` of the module."""
    return b.localparam(f"SOURCE_{name.upper()}", number, w)


def _place(b: Block, npu: Npu, source: Signal) -> Signal:
    """The place in SOURCES of the inlet with number ``source`` in ``npu``."""
    place: Signal = const(0, INLET_BITS)
    for number, name in enumerate(npu.sources):
        shown = b.localparam(f"INLET_{name.upper()}", SOURCES.index(name), INLET_BITS)
        place = choose(eq(source, _source(b, name, number, width(source))), shown, place, INLET_BITS)
    return place
