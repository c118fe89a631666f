"""Integer pool unit: maximum or average of a window's valid taps (spec B13, B14).

    word[PFP] --> compare or add <-> queue (a word of the tuple each) --last tap--> divide[PFP] --> output FIFO --> out

Golden twin: golden/layers/pool.py. ``average`` chooses for each layer. The sequencer gives words tap after tap, all
words of a tap's tuple in turn; the queue holds the maxima or sums of this window so far. Nothing stalls inside:
``room`` tells the sequencer in time.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library

from .arithmetic import IntegerArithmetic, PoolPorts
from .divide import divide

CONTRACT = str(__doc__)


class IntegerPool(IntegerArithmetic):
    """The pool unit of an integer NPU without weights."""

    module = "pool_unit_integer"
    contract = CONTRACT
    sizes = ("pfp", "feature_bits")
    memory = "reciprocals"
    cycles = timing.DIVIDE_LATENCY

    def __init__(self, b: Block, library: Library, npu: Npu, ports: PoolPorts):
        super().__init__(b, library, npu, ports)
        b.comment("What comes with a beat, in time with its word.")
        self.hold(ports.beat.taps)
        if self.delay:
            b.comment("The same, in time with the values of all taps of the beat together.")
            self.at = ports.late(b, self.delay, "beat_")
        self.follow()
        row = library.loadable(b, memory_of(npu, self.memory), ports.bus, self.count)
        self._reciprocal = row["reciprocal"]
        b.comment("The queue's row with this beat, lane by lane; what leaves is divided where it is an average.")

    def leaving(self, k: int, merged: Signal) -> Signal:
        quotient = self.b.wire(f"quotient_{k}", self.npu.array.feature_bits)
        self.b.instance(
            self.library.get(divide, self.library, self.npu),
            f"divide_{k}",
            sum=merged,
            count=self.count,
            average=self.chosen("adds", self.delay),
            reciprocal=self._reciprocal,
            quotient=quotient,
        )
        return quotient
