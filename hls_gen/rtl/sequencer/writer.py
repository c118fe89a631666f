"""Writer of a tuple memory: takes the words of layer after layer from their source (part of
hls_gen/rtl/sequencer/sequencer.py)."""

from dataclasses import dataclass

from bitloom.hls_gen.design.npu import INLETS, Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, choose, const, eq, resize, sub
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus

from .kind import Kind, layer_counter


@dataclass(frozen=True)
class Writer:
    """``write`` puts ``word`` into the ring; the issuer drives ``has_free``."""

    write: Signal
    word: Signal
    has_free: Signal


def writer(b: Block, library: Library, npu: Npu, kind: Kind, bus: LoadBus, last_layer: Signal) -> Writer:
    """Takes the words of layer after layer from its source into the ring while there is free room."""
    w = kind.width(npu)
    memory = npu.memory(f"{kind.prefix}inputs")
    sources = ["in"] if kind.pool else list(npu.inlets)
    ports = {s: (b.input(f"{s}_valid"), b.output(f"{s}_ready"), b.input(f"{s}_data", w)) for s in sources}
    has_free = b.wire("has_free")
    left_bits = dict(memory.fields)["words"]
    left = b.reg("words_left", left_bits)
    loaded = b.reg("writer_loaded")
    take = b.wire("write")
    word = b.wire("write_word", w)
    final = b.wire("write_final", 1, take & eq(left, 1))
    advance = b.wire("writer_advance", 1, any_of(~loaded, final))
    upcoming = layer_counter(b, "writer_upcoming", last_layer, advance)
    part = library.loadable(b, memory, bus, resize(upcoming, bits_for(memory.depth - 1)))
    b.on(take, (left, sub(left, 1, left_bits)))
    b.on(advance, (left, part["words"]), (loaded, 1))
    can = b.wire("can_write", 1, loaded & has_free)
    if not kind.pool:  # the inlet that is read, for register STATE
        shown = b.output("inlet", 2)
    if len(sources) == 1:
        if not kind.pool:
            shown.assign(const(INLETS.index(sources[0]), 2))
        valid, ready, data = ports[sources[0]]
        ready.assign(can)
        take.assign(valid & can)
        word.assign(data)
        return Writer(take, word, has_free)
    source = b.reg("source", npu.source_bits)
    b.on(advance, (source, part["source"]))
    shown.assign(_inlet_number(npu, source))
    there: Signal = const(0, 1)
    chosen: Signal = const(0, w)
    for number, (valid, ready, data) in enumerate(ports.values()):
        mine = b.wire(f"from_{sources[number]}", 1, eq(source, number))
        ready.assign(can & mine)
        there = valid if number == 0 else choose(mine, valid, there, 1)
        chosen = data if number == 0 else choose(mine, data, chosen, w)
    take.assign(can & there)
    word.assign(chosen)
    return Writer(take, word, has_free)


def _inlet_number(npu: Npu, source: Signal) -> Signal:
    """The place in INLETS of the inlet with number ``source`` in ``npu``."""
    number: Signal = const(0, 2)
    for k, name in enumerate(npu.inlets):
        number = choose(eq(source, k), INLETS.index(name), number, 2)
    return number
