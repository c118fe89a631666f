"""On-line binariser: integer features of a frame become bits, in front of the NPU (spec A9).  Golden twin:
golden/layers/threshold.py.

    in[KFP x binariser_bits] --> >= threshold[KFP], a row for each word of a tuple --> register --> out[KFP]

Features are two's complement, thresholds one bit wider, so that one is never reached. One word a cycle, latency 1
cycle. A network whose input is binary already sends its bits as 0 and 1 with threshold 1.
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    add,
    any_of,
    bits,
    choose,
    eq,
    resize,
    sign_extend,
    signed_at_least,
)
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.results.step import join


def binariser(library: Library, npu: Npu) -> Block:
    """The binariser of ``npu``."""
    sizes = {"kfp": npu.kfp, "binariser_bits": npu.binariser_bits}
    header = Header(__doc__ or "", rate="one word a cycle", latency="1 cycle from in to out", parameters=sizes)
    b = Block(library.name("binariser", npu), header)
    memory = npu.memory("binariser")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    valid, ready, data = b.input("in_valid"), b.output("in_ready"), b.input("in_data", npu.host_word_bits)
    out_valid, out_ready, out_data = (
        b.output_reg("out_valid"),
        b.input("out_ready"),
        b.output_reg("out_data", npu.kfp, init=None),
    )
    address, w = bits_for(memory.depth - 1), npu.binariser_bits
    last = b.input("last_row", address)

    # # #

    row = b.reg("row", address)
    limits = library.loadable(b, memory, bus, row)["thresholds"]
    ready.assign(any_of(~out_valid, out_ready))
    take = b.wire("take", 1, valid & ready)
    b.on(out_ready, (out_valid, 0))
    b.on(take, (out_valid, 1), (row, choose(eq(row, last), 0, add(row, 1, address), address)))
    verdicts = []
    for k in range(npu.kfp):
        feature = b.wire(f"feature_{k}", w, bits(data, k * w, w))
        wide = b.wire(f"wide_{k}", w + 1, sign_extend(feature, w + 1))
        limit = b.wire(f"limit_{k}", w + 1, bits(limits, k * (w + 1), w + 1))
        verdicts.append(b.wire(f"bit_{k}", 1, signed_at_least(wide, limit)))
    b.on(take, (out_data, resize(join(verdicts), npu.kfp)))
    return b
