"""Pool unit of an NPU: what the taps of a window give is merged, word by word of their tuples.

    beat, word --> values --> merged <-> queue (a word of the tuple each) --last tap--> output FIFO --> out

The frame of every kind of pool unit; what a kind computes is its `Arithmetic`: pool_binary.py, pool_integer.py, and
with weights pool_depthwise.py.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import Arithmetic, PoolPorts
from .pool_binary import BinaryPool
from .pool_depthwise import DepthwisePool
from .pool_integer import IntegerPool


def pool_unit(library: Library, npu: Npu) -> Block:
    """The pool unit of an NPU: module ``pool_unit``, ``pool_unit_integer`` or ``pool_unit_depthwise``."""
    kind = _kind(npu)
    latency = timing.latencies(npu).pool
    fifo_size = timing.pool_fifo(npu)
    header = Header(
        kind.contract,
        rate="one word a cycle",
        latency=f"{latency} cycle{'s' * (latency > 1)} from a beat to the output FIFO",
        parameters={**npu.values(*kind.sizes), "fifo_words": fifo_size.words},
    )
    b = Block(library.name(kind.module, npu), header)
    ports = PoolPorts.of(b, library, npu, kind.memory)

    # # #

    arithmetic = kind(b, library, npu, ports)
    at = arithmetic.at
    so_far = b.wire("so_far", npu.pool_queue_bits)
    merged, leaving = arithmetic.row(so_far)
    b.instance(
        ram(library, npu.pool_queue_bits, 1 << present(npu.pool_unit).index_bits, latency=0),
        "queue",
        write=at.valid,
        write_row=at.index,
        write_data=merged,
        read_row=at.index,
        read_data=so_far,
    )
    emit = delayed(b, b.wire("emit", 1, at.valid & at.last), "emit", kind.cycles, init=0)[-1]
    side = delayed(b, at.side, "side", kind.cycles, npu.pool_side_bits)[-1]
    b.instance(
        fifo(library, npu.pool_out_bits, fifo_size.words, fifo_size.margin),
        "out_fifo",
        in_valid=emit,
        in_ready=b.wire("fifo_ready_unused"),  # ``room`` is kept: there is a place
        in_data=Cat(*arithmetic.above, side, leaving),
        **ports.out.ports("out"),
        room=ports.room,
    )
    return b


def _kind(npu: Npu) -> type[Arithmetic]:
    """Kind of the pool unit's arithmetic."""
    if npu.depthwise:
        return DepthwisePool
    return BinaryPool if npu.engine == "binary" else IntegerPool
