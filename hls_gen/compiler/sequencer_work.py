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
from bitloom.hls_gen.design.sequencer_kind import SequencerKind

from .layout import Ints
from .schedule import StageTables
from .taps import Taps

TABLES_FOR_ALL = SequencerKind(claims_ahead=True)


@dataclass(frozen=True, eq=False)
class SequencerWork:
    """The windows that a sequencer reads in a frame.

    Attributes
    ----------
    taps
        (windows,) valid taps of each window; a tap that is visited twice counts as two.
    skips
        (windows,) tuples of each window that arrive and that its taps don't read. A sequencer that claims tuples one by
        one takes a cycle for each, in every pass. None: there are none, or nobody has counted them.
    """

    taps: Ints
    skips: Ints | None = None

    @classmethod
    def of(cls, tables: StageTables, visits: int = 1) -> "SequencerWork":
        """Of a schedule, each of whose taps is visited ``visits`` times."""
        return cls(tables.valid_taps * visits, np.bincount(tables.window, tables.skips).astype(np.int64))

    @classmethod
    def of_map(cls, window: Taps | Window, height: int, width: int) -> "SequencerWork":
        """Of the windows on a map, for which there is no schedule yet."""
        return cls((window.positions(height, width) >= 0).sum(axis=1))

    @classmethod
    def straight(cls, windows: int) -> "SequencerWork":
        """Of tuples that a pool unit hands on as they come: each is a window of one tap."""
        return cls(np.ones(windows, np.int64))

    @cached_property
    def _alike(self) -> list[tuple[int, int, int]]:
        """Different pairs of taps and skips, and how many windows have each."""
        skips = np.zeros_like(self.taps) if self.skips is None else self.skips
        pairs, windows = np.unique(np.stack([self.taps, skips], axis=1), axis=0, return_counts=True)
        return [(taps, skipped, count) for (taps, skipped), count in zip(pairs.tolist(), windows.tolist())]

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

    def cycles(self, words: int, least: int = 0, kind: SequencerKind = TABLES_FOR_ALL) -> int:
        """Cycles of a pass over all windows.

        Parameters
        ----------
        words
            Words of a tuple that a pass reads.
        least
            Cycles that each window takes at least, as its results need so many to leave.
        kind
            The sequencer; by default one for which no tuple is a skip.
        """
        one_by_one = int(kind.claims_one_by_one)
        return sum(max(taps * words + skips * one_by_one, least) * count for taps, skips, count in self._alike)
