"""Pool unit: maximum of bipolar bits over a window's valid taps, which is OR (spec B13, B14).

    word[PFP] --> OR <-> queue (a word of the tuple each) --last tap--> output FIFO --> out[PFP and side bits]

Golden twin: golden/layers/pool.py. The sequencer gives words tap after tap, all words of a tap's tuple in turn; the
queue holds what the taps of this window gave so far. Nothing stalls inside: ``room`` tells the sequencer in time.
"""

from bitloom.hls_gen.rtl.primitives.block import Signal, choose, width

from .arithmetic import Arithmetic

CONTRACT = str(__doc__)


class BinaryPool(Arithmetic):
    """The pool unit of a binary NPU."""

    module = "pool_unit"
    contract = CONTRACT
    sizes = ("pfp",)

    def joined(self, left: Signal, right: Signal) -> Signal:
        return left | right

    def row(self, so_far: Signal) -> tuple[Signal, Signal]:
        w = width(so_far)
        merged = self.b.wire("merged", w, self.joined(self.at.word, choose(self.at.first, 0, so_far, w)))
        return merged, merged
