"""Work of a sequencer for a layer in a frame, counted by formula.

    cycles = sum over windows of valid taps x words of a tuple + skips, once for each pass over the windows

A sequencer, the array's or the pool unit's, gives one beat for one word of one tap. The count takes it that a word is
always there and that there is always room: it is a lower limit. Cycles of a layer are counted by it (layer_cycles.py).
When beats are given, and what they wait for, the flow model alone says (flow/), which is exact to the cycle.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.golden.window import Window

from .taps import Taps


@dataclass(frozen=True)
class SequencerWork:
    """The windows that a sequencer reads in a frame."""

    alike: tuple[tuple[int, int, int], ...]
    """(taps, skips, windows) for all windows with as many valid taps and skips. A tap that is visited twice counts as
    two. A skip is a tuple that arrives, that no tap of the window reads, and that costs the sequencer a cycle."""
    _cycles: dict[tuple[int, float, int], int] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results of ``cycles``, by its arguments: a search asks the same for many foldings."""

    @classmethod
    @lru_cache(maxsize=1024)
    def of_map(cls, window: Taps | Window | None, height: int, width: int) -> "SequencerWork":
        """Of the windows on a map, for which there is no schedule yet, so that no skips are known. None: the pool unit
        hands tuples on as they come, so that each is a window of one tap."""
        if window is None:
            return cls(((1, 0, height * width),))
        taps: Ints = (window.positions(height, width) >= 0).sum(axis=1)
        return cls.counted(taps, np.zeros_like(taps))

    @classmethod
    def counted(cls, taps: Ints, skips: Ints) -> "SequencerWork":
        """Of the taps and skips of each window, both (windows,)."""
        most = int(skips.max(initial=0)) + 1
        pairs, windows = np.unique(taps * most + skips, return_counts=True)  # a pair as one number
        return cls(tuple((*divmod(pair, most), count) for pair, count in zip(pairs.tolist(), windows.tolist())))

    def cycles(self, words: int, least: float = 0, passes: int = 1) -> int:
        """Cycles of a frame.

        Parameters
        ----------
        words
            Words of a tuple that a pass reads.
        least
            Cycles that each window takes at least, on average, as its results need so many to leave.
        passes
            How often each window is passed.
        """
        key = words, least, passes
        if key not in self._cycles:
            each = (max((taps * words + skips) * passes, least) * windows for taps, skips, windows in self.alike)
            self._cycles[key] = ceil(sum(each))
        return self._cycles[key]
