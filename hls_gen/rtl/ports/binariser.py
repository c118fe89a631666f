"""On-line binariser: integer features of a frame become bits, in front of the NPU (spec A9).

    in[KFP x binariser_bits] --> >= threshold[KFP], a row for each word of a tuple --> register --> out[KFP]

A feature's bit is 1 where the feature is at least its threshold. Features are two's complement numbers; thresholds have
one bit more, so that there is one that no feature reaches. A network whose input is binary already sends its bits as 0
and 1, with threshold 1. Golden twin: golden/layers/threshold.py.
"""

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    any_of,
    bits,
    choose,
    eq,
    resize,
    side_by_side,
    sign_extend,
    signed_at_least,
)
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header


def binariser(library: Library, npu: Npu) -> Block:
    """The binariser of an NPU.

    Module ``binariser``. Streams ``in`` and ``out``; ``last_row`` is the number of words of a tuple, less 1.
    """
    sizes = {"kfp": npu.array.kfp, "binariser_bits": present(npu.ports.binariser).bits}
    header = Header(__doc__, rate="one word a cycle", latency="1 cycle from in to out", parameters=sizes)
    b = Block(library.name("binariser", npu), header)
    memory = memory_of(npu, "binariser")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    source = Stream.input(b, "in", npu.host_word_bits)
    out = Stream(b.output_reg("out_valid"), b.input("out_ready"), b.output_reg("out_data", npu.array.kfp, init=None))
    address = bits_for(memory.depth - 1)
    last = b.input("last_row", address)

    # # #

    row = b.reg("row", address)  # of the word that comes next; every tuple begins with row 0
    limits = library.loadable(b, memory, bus, row)["thresholds"]
    source.ready.assign(any_of(~out.valid, out.ready))
    take = b.wire("take", 1, source.taken)
    b.on(out.ready, (out.valid, 0))
    b.on(take, (out.valid, 1), (row, choose(eq(row, last), 0, add(row, 1, address), address)))
    lanes = [_lane(b, npu, k, source.data, limits) for k in range(npu.array.kfp)]
    b.on(take, (out.data, resize(side_by_side(lanes), npu.array.kfp)))
    return b


def _lane(b: Block, npu: Npu, k: int, features: Signal, limits: Signal) -> Signal:
    """The bit of lane ``k``: feature and threshold are compared in the width of the threshold."""
    w = present(npu.ports.binariser).bits
    feature = b.wire(f"feature_{k}", w, bits(features, k * w, w))
    wide = b.wire(f"wide_{k}", w + 1, sign_extend(feature, w + 1))
    limit = b.wire(f"limit_{k}", w + 1, bits(limits, k * (w + 1), w + 1))
    return b.wire(f"bit_{k}", 1, signed_at_least(wide, limit))
