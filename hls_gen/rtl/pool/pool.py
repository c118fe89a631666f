"""Pool unit: maximum of bipolar bits over a window's valid taps, which is OR (spec B13, B14).  Golden twin:
golden/layers/pool.py.

    word[PFP] --> OR <-> queue (a word of the tuple each) --last tap--> out[PFP]

One word a cycle. Latency 1 cycle to the output FIFO. The sequencer gives words tap after tap, all words of a tap's
tuple in turn; the queue holds what the taps of this window gave so far. ``room`` goes back to the sequencer; nothing
stalls inside.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library, ram


def side_inputs(b: Block, npu: Npu) -> list[Signal]:
    """Ports of the bits that go with a word (``Npu.pool_side_bits``): last of its tuple, last of its map, outlet."""
    target = [b.input("target", npu.target_bits)] if npu.target_bits else []
    return [b.input("tuple_last"), b.input("map_last"), *target]


def pool_unit(library: Library, npu: Npu) -> Block:
    """The max pool unit of ``npu``."""
    b = Block(library.name("pool_unit", npu))
    beat, first, last = b.input("beat"), b.input("first"), b.input("last")
    flags, side_width = side_inputs(b, npu), npu.pool_side_bits
    index = b.input("index", npu.pool_index_bits)
    word = b.input("word", npu.pfp)
    room = b.output("room")
    out_valid, out_ready, out_data = (
        b.output("out_valid"),
        b.input("out_ready"),
        b.output("out_data", npu.pfp + side_width),
    )

    # # #

    valid = b.reg("valid")
    b.on(None, (valid, beat))
    here = {name: b.reg(f"at_{name}", init=None) for name in ("first", "last")}
    side = b.reg("side", side_width, init=None)
    place = b.reg("place", npu.pool_index_bits, init=None)
    b.on(None, (here["first"], first), (here["last"], last), (side, Cat(*reversed(flags))), (place, index))
    so_far = b.wire("so_far", npu.pfp)
    merged = b.wire("merged", npu.pfp, word | choose(here["first"], 0, so_far, npu.pfp))
    b.instance(
        library.get(ram, npu.pfp, 1 << npu.pool_index_bits, latency=0),
        "queue",
        write=valid,
        write_row=place,
        write_data=merged,
        read_row=place,
        read_data=so_far,
    )
    ready = b.wire("fifo_ready_unused")
    b.instance(
        library.get(fifo, library, npu.pfp + side_width, timing.pool_fifo_words(npu)),
        "out_fifo",
        in_valid=b.wire("emit", 1, valid & here["last"]),
        in_ready=ready,
        in_data=Cat(side, merged),
        out_valid=out_valid,
        out_ready=out_ready,
        out_data=out_data,
        room=room,
    )
    return b
