"""Pool unit: maximum of bipolar bits over a window's valid taps, which is OR (spec B13, B14).

    word[PFP] --> OR <-> queue (a word of the tuple each) --last tap--> output FIFO --> out[PFP and side bits]

Golden twin: golden/layers/pool.py. The sequencer gives words tap after tap, all words of a tap's tuple in turn; the
queue holds what the taps of this window gave so far. Nothing stalls inside: ``room`` tells the sequencer in time.
"""

from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.block import Signal

from .arithmetic import Arithmetic

CONTRACT = str(__doc__)


class BinaryPool(Arithmetic):
    """The pool unit of a binary NPU."""

    module = "pool_unit"
    contract = CONTRACT
    sizes = ("pfp",)

    @property
    def lanes(self) -> int:
        """One lane, all bits of a word; where lines may share lanes, one for each line's part."""
        return present(self.npu.pool_unit).lane_lines

    def merged(self, left: Signal, right: Signal, cycles: int) -> Signal:
        return left | right
