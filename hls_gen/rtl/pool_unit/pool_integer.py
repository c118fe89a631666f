"""Integer pool unit: maximum or average of a window's valid taps (spec B13, B14).

    word[PFP] --> compare or add <-> queue (a word of the tuple each) --last tap--> divide[PFP] --> output FIFO --> out

Golden twin: golden/layers/pool.py. ``average`` chooses for each layer. The sequencer gives words tap after tap, all
words of a tap's tuple in turn; the queue holds the maxima or sums of this window so far. Nothing stalls inside:
``room`` tells the sequencer in time.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.array.convolver import delayed
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, sign_extend, signed_at_least
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.results.step import join

from .divide import divide
from .pool_binary import PoolPorts, queue


def pool_unit_integer(library: Library, npu: Npu) -> Block:
    """The pool unit of an integer NPU.

    Parameters
    ----------
    library : Library
        Where further modules come from.
    npu : Npu
        The NPU that it is part of.

    Returns
    -------
    Block
        Module ``pool_unit_integer``.
    """
    pool_unit = present(npu.pool_unit)
    header = Header(
        __doc__,
        rate="one word a cycle",
        latency=f"{timing.latencies(npu).pool} cycles from a beat to the output FIFO",
        parameters={
            "pfp": pool_unit.pfp,
            "feature_bits": npu.array.feature_bits,
            "fifo_words": timing.pool_fifo_words(npu),
        },
    )
    b = Block(library.name("pool_unit_integer", npu), header)
    memory = memory_of(npu, "reciprocals")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    ports = PoolPorts.of(b, npu)

    # # #

    b.comment("What comes with a beat, in time with its word.")
    at_average = b.reg("at_average", init=None)
    count = b.reg("count", COUNT_BITS, init=None)
    b.on(None, (at_average, ports.beat.marks.average), (count, ports.beat.taps))
    reciprocal = library.loadable(b, memory, bus, count)["reciprocal"]
    b.comment("The queue's row with this beat, lane by lane; what leaves is divided where it is an average.")
    so_far = b.wire("so_far", pool_unit.pfp * npu.pool_sum_bits)
    merged = []
    quotients = []
    for k in range(pool_unit.pfp):
        merged.append(_merged(b, npu, k, ports, so_far, at_average))
        quotients.append(b.wire(f"quotient_{k}", npu.array.feature_bits))
        b.instance(
            library.get(divide, library, npu),
            f"divide_{k}",
            sum=merged[-1],
            count=count,
            average=at_average,
            reciprocal=reciprocal,
            quotient=quotients[-1],
        )
    queue(b, library, npu, ports, b.wire("merged", pool_unit.pfp * npu.pool_sum_bits, join(merged)), so_far)
    emit = delayed(b, b.wire("emit", 1, ports.valid & ports.last), "emit", timing.DIVIDE_LATENCY, init=0)[-1]
    late_side = delayed(b, ports.side, "side", timing.DIVIDE_LATENCY, npu.pool_side_bits)[-1]
    ports.emit(b, library, npu, emit, Cat(late_side, join(quotients)))
    return b


def _merged(b: Block, npu: Npu, k: int, ports: PoolPorts, so_far: Signal, average: Signal) -> Signal:
    """Lane ``k`` of the queue's row with this beat: its feature alone, the larger of both, or their sum."""
    w = npu.pool_sum_bits
    value = b.wire(
        f"feature_{k}", npu.array.feature_bits, bits(ports.word, k * npu.array.feature_bits, npu.array.feature_bits)
    )
    new = b.wire(f"new_{k}", w, sign_extend(value, w))
    old = b.wire(f"old_{k}", w, bits(so_far, k * w, w))
    larger = choose(signed_at_least(new, old), new, old, w)
    both = choose(average, old + new, larger, w)
    return b.wire(f"merged_{k}", w, choose(ports.first, new, both, w))
