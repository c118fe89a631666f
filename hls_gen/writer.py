"""Writer of a tuple memory: takes the words of layer after layer from their source (part of hls_gen/sequencer.py)."""

from dataclasses import dataclass

from .design import MAP_BITS, Npu
from .kind import Kind, layer_counter
from .memory import Library, LoadBus
from .rtl import Block, Signal, any_of, bits_for, choose, eq, fit, sub


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
    sources = ["in"] if kind.pool else ["host", "ring"]
    ports = {s: (b.input(f"{s}_valid"), b.output(f"{s}_ready"), b.input(f"{s}_data", w)) for s in sources}
    has_free = b.wire("has_free")
    left = b.reg("words_left", MAP_BITS)
    loaded = b.reg("writer_loaded")
    from_ring = None if kind.pool else b.reg("from_ring")
    take = b.wire("write")
    word = b.wire("write_word", w)
    final = b.wire("write_final", 1, take & eq(left, 1))
    advance = b.wire("writer_advance", 1, any_of(~loaded, final))
    upcoming = layer_counter(b, "writer_upcoming", last_layer, advance)
    part = library.loadable(b, memory, bus, fit(upcoming, bits_for(memory.depth - 1)))
    b.on(take, (left, sub(left, 1, MAP_BITS)))
    b.on(advance, (left, part["words"]), (loaded, 1))
    can = b.wire("can_write", 1, loaded & has_free)
    if kind.pool:
        valid, ready, data = ports["in"]
        ready.assign(can)
        take.assign(valid & can)
        word.assign(data)
    else:
        b.on(advance, (from_ring, part["from_ring"]))
        (host_valid, host_ready, host_data), (ring_valid, ring_ready, ring_data) = ports["host"], ports["ring"]
        host_ready.assign(can & ~from_ring)
        ring_ready.assign(can & from_ring)
        take.assign(can & choose(from_ring, ring_valid, host_valid, 1))
        word.assign(choose(from_ring, ring_data, host_data, w))
    return Writer(take, word, has_free)
