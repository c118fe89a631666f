"""Parts of tuples: which words of each tuple the kernel group at hand reads, where it doesn't read them all.

    kernel groups   0  1  2  3  4  5        part_groups 2, part_step 1, part_words 2:
    first word      0  0  1  1  2  2        of a tuple's words 0 .. 3 the last two groups read 2 and 3

Kernels of a grouped convolution have weights for some channels alone; words without any of them would meet zeros. A
tuple is claimed in the first pass over its window with all of its words, whichever of them that pass reads.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, choose, resize, sub, width
from bitloom.hls_gen.rtl.primitives.countdown import Countdown

from .claims import Ahead
from .layers import Layers
from .source import ALWAYS
from .tap_events import TapEvents


class TupleParts:
    """The part that the pass at hand reads, in the tap source of an array.

    Attributes
    ----------
    first : Signal
        Register: number of its first word in a tuple; address bits.
    """

    def __init__(self, b: Block, layers: Layers, events: TapEvents):
        b.comment("Which words of each tuple the kernel group at hand reads.")
        self._b = b
        now = layers.now.kernel.part
        upcoming = layers.upcoming.kernel.part
        w = width(now.step)
        self.first, self._rest = b.reg("part_first", w), b.reg("part_rest", w, init=None)
        b.on(events.begin, (self._rest, sub(layers.upcoming.words_minus_1, upcoming.words_minus_1, w)))
        groups = Countdown(b, "part_groups", width(now.groups_minus_1))
        limit = choose(events.change, upcoming.groups_minus_1, now.groups_minus_1, width(now.groups_minus_1))
        anew = any_of(events.change, events.window_end)
        groups.advance(events.passes, anew, limit, now.groups_minus_1)
        onward = choose(groups.last, self.first + now.step, self.first, w)
        b.on(events.passes, (self.first, choose(anew, 0, onward, w)))

    def claimed_beside(self, claim: Signal, ahead: Ahead) -> Ahead:
        """Words that the tap at hand claims and that its pass doesn't read: words ``ahead``, which are of other tuples,
        and, with a ``claim`` to the tap's own tuple, the words of this tuple outside the part."""
        w = width(ahead.words)
        rest = choose(claim, resize(self._rest, w), 0, w)
        others = choose(ahead.any, ahead.words, 0, w)
        return Ahead(ALWAYS, self._b.wire("words_beside", w, others + rest))
