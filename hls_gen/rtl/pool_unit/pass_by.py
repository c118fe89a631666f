"""Way past the pool unit: maps without a pool pass a pool unit with weights by (part of
hls_gen/rtl/shell/pool_unit.py).

    in --+--> to_pool: maps with a pool
         `--> while no map is in the pool unit --+--> out
    pooled: what the pool unit makes ------------'

A map that passes by waits until the maps before it have left the pool unit, so that maps leave in the order of their
layers. A map has entered the pool unit with its last step, and a map behind it comes no earlier: so two maps are never
offered at a time, and the pool unit waits for ``out`` alone.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, add, all_of, any_of, bits, choose, eq, sub
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header


def maps_inside(npu: Npu) -> int:
    """Maps that lie in the pool unit at most, of a word each: those of its tuple memory, its FIFO and its pipelines."""
    return present(npu.pool_unit).words + 2 * timing.pool_fifo(npu).words


def pass_by(library: Library, npu: Npu) -> Block:
    """The way past the pool unit of an NPU whose pool unit has weights.

    Module ``pass_by``. Streams of steps of OL features: ``in``, whose side bits are last of its map, where the map
    goes, and whether it has a pool; ``to_pool``; ``pooled`` and ``out``, whose side bits lack that.
    """
    sizes = npu.values("ol", "feature_bits")
    header = Header(__doc__, rate="a step a cycle", latency="0 cycles from in and pooled to out", parameters=sizes)
    b = Block(library.name("pass_by", npu), header)
    w = npu.results.ol * npu.array.feature_bits
    side = npu.map_mark_bits
    source = Stream.input(b, "in", w, last=True, side_bits=side + 1)
    to_pool = Stream.output(b, "to_pool", w, last=True)
    pooled = Stream.input(b, "pooled", w, last=True, side_bits=side)
    out = Stream.output(b, "out", w, last=True, side_bits=side)

    # # #

    b.comment("Maps in the pool unit: entered with their last step, and not left.")
    count_bits = bits_for(maps_inside(npu))
    count = b.reg("maps", count_bits)
    empty = b.reg("empty", init=1)
    has_pool = b.wire("has_pool", 1, bits(source.side, side, 1))
    passes = b.wire("passes", 1, all_of(source.valid, ~has_pool, empty))
    enters = b.wire("enters", 1, all_of(source.valid, has_pool, to_pool.ready, source.last, bits(source.side, 0, 1)))
    leaves = b.wire("leaves", 1, all_of(pooled.valid, pooled.ready, pooled.last, bits(pooled.side, 0, 1)))
    b.on(enters & ~leaves, (count, add(count, 1, count_bits)), (empty, 0))
    b.on(leaves & ~enters, (count, sub(count, 1, count_bits)), (empty, eq(count, 1)))
    b.comment("A step goes to the pool unit, or past it; what the pool unit makes goes on.")
    to_pool.valid.assign(source.valid & has_pool)
    to_pool.data.assign(source.data)
    to_pool.last.assign(source.last)
    source.ready.assign(choose(has_pool, to_pool.ready, empty & out.ready, 1))
    pooled.ready.assign(out.ready)
    out.valid.assign(any_of(passes, pooled.valid))
    # whether a step passes comes late, and the many bits of a step would wait for it
    out.data.assign(choose(pooled.valid, pooled.data, source.data, w))
    ends = choose(pooled.valid, Cat(pooled.side, pooled.last), Cat(bits(source.side, 0, side), source.last), side + 1)
    ends = b.wire("ends", side + 1, ends)
    out.last.assign(bits(ends, 0, 1))
    out.side.assign(bits(ends, 1, side))
    return b
