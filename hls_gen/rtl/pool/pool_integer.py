"""Integer pool unit: maximum or average of a window's valid taps (spec B13, B14).  Golden twin: golden/layers/pool.py.

    word[PFP] --> compare or add <-> queue (a word of the tuple each) --last tap--> divide[PFP] --> out FIFO

One word a cycle. Chosen per layer by ``average``. Latency 1 cycle and that of hls_gen/rtl/pool/divide.py to the output
FIFO; ``room`` goes back to the sequencer, nothing stalls inside.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.array.convolver import delayed
from bitloom.hls_gen.rtl.primitives.block import Block, bits, choose, sign_extend, signed_at_least
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, ram
from bitloom.hls_gen.rtl.results.step import join

from .divide import divide
from .pool import side_inputs


def pool_unit_integer(library: Library, npu: Npu) -> Block:
    """The integer pool unit of ``npu``."""
    b = Block(library.name("pool_unit_integer", npu))
    memory = npu.memory("reciprocals")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    beat, first, last, average = b.input("beat"), b.input("first"), b.input("last"), b.input("average")
    flags, side_width = side_inputs(b, npu), npu.pool_side_bits
    index, taps = b.input("index", npu.pool_index_bits), b.input("taps", COUNT_BITS)
    word = b.input("word", npu.pool_word_bits)
    room = b.output("room")
    out_valid, out_ready = b.output("out_valid"), b.input("out_ready")
    out_data = b.output("out_data", npu.pool_word_bits + side_width)

    # # #

    w = npu.pool_sum_bits
    valid = b.reg("valid")
    b.on(None, (valid, beat))
    here = {name: b.reg(f"at_{name}", init=None) for name in ("first", "last", "average")}
    count, place = b.reg("count", COUNT_BITS, init=None), b.reg("place", npu.pool_index_bits, init=None)
    side = b.reg("side", side_width, init=None)
    b.on(
        None,
        (here["first"], first),
        (here["last"], last),
        (here["average"], average),
        (count, taps),
        (place, index),
        (side, Cat(*reversed(flags))),
    )
    so_far = b.wire("so_far", npu.pfp * w)
    reciprocal = library.loadable(b, memory, bus, count)["reciprocal"]
    merged, quotients = [], []
    for k in range(npu.pfp):
        value = b.wire(f"feature_{k}", npu.feature_bits, bits(word, k * npu.feature_bits, npu.feature_bits))
        new = b.wire(f"new_{k}", w, sign_extend(value, w))
        old = b.wire(f"old_{k}", w, bits(so_far, k * w, w))
        larger = choose(signed_at_least(new, old), new, old, w)
        both = choose(here["average"], old + new, larger, w)
        merged.append(b.wire(f"merged_{k}", w, choose(here["first"], new, both, w)))
        quotient = b.wire(f"quotient_{k}", npu.feature_bits)
        b.instance(
            library.get(divide, library, npu),
            f"divide_{k}",
            sum=merged[-1],
            count=count,
            average=here["average"],
            reciprocal=reciprocal,
            quotient=quotient,
        )
        quotients.append(quotient)
    b.instance(
        library.get(ram, npu.pfp * w, 1 << npu.pool_index_bits, latency=0),
        "queue",
        write=valid,
        write_row=place,
        write_data=b.wire("merged", npu.pfp * w, join(merged)),
        read_row=place,
        read_data=so_far,
    )
    emit = delayed(b, b.wire("emit", 1, valid & here["last"]), "emit", timing.DIVIDE_LATENCY, init=0)[-1]
    late_side = delayed(b, side, "side", timing.DIVIDE_LATENCY, side_width)[-1]
    ready = b.wire("fifo_ready_unused")
    words, margin = timing.pool_fifo_words(npu), timing.pool_fifo_margin(npu)
    b.instance(
        library.get(fifo, library, npu.pool_word_bits + side_width, words, margin),
        "out_fifo",
        in_valid=emit,
        in_ready=ready,
        in_data=Cat(late_side, join(quotients)),
        out_valid=out_valid,
        out_ready=out_ready,
        out_data=out_data,
        room=room,
    )
    return b
