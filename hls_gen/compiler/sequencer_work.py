"""What a sequencer has to do for a layer in a frame, counted by formula.

    beats = sum over windows of valid taps x words of a tuple, once for each pass over the windows

A sequencer, the array's or the pool unit's, gives one beat for one word of one tap. The count takes it that a word is
always there and that there is always room: it is a lower limit. It serves where a layer must be judged before there is
a program: chains are cut by it (layer_cycles.py), networks that are planned are judged by it, and a search leaves out
foldings that are too slow by it (overlay/explore/layer_demand.py). When beats are given, and what they wait for, the
flow model alone says (flow/), which is exact to the cycle.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bitloom.golden.window import Window

from .layout import Ints
from .schedule import StageTables
from .taps import Taps


@dataclass(frozen=True, eq=False)
class SequencerWork:
    """The windows that a sequencer reads in a frame.

    Attributes
    ----------
    taps
        (windows,) valid taps of each window; a tap that is visited twice counts as two.
    """

    taps: Ints

    @classmethod
    def of(cls, tables: StageTables, visits: int = 1) -> "SequencerWork":
        """Of a schedule, each of whose taps is visited ``visits`` times."""
        return cls(tables.valid_taps * visits)

    @classmethod
    def of_map(cls, window: Taps | Window, height: int, width: int) -> "SequencerWork":
        """Of the windows on a map, for which there is no schedule yet."""
        return cls((window.positions(height, width) >= 0).sum(axis=1))

    @classmethod
    def straight(cls, windows: int) -> "SequencerWork":
        """Of tuples that a pool unit hands on as they come: each is a window of one tap."""
        return cls(np.ones(windows, np.int64))

    @cached_property
    def _alike(self) -> list[tuple[int, int]]:
        """Different numbers of taps, and how many windows have each."""
        taps, windows = np.unique(self.taps, return_counts=True)
        return list(zip(taps.tolist(), windows.tolist()))

    def beats(self, words: int, passes: int = 1) -> int:
        """Beats of a frame.

        Parameters
        ----------
        words
            Words of a tuple that a pass reads.
        passes
            Passes over each window: kernel groups of the array, 1 of the pool unit.
        """
        return self.cycles(words) * passes

    def cycles(self, words: int, least: int = 0) -> int:
        """Cycles of a pass over all windows, where each window takes at least ``least``, as its results need so many to
        leave."""
        return sum(max(taps * words, least) * windows for taps, windows in self._alike)
