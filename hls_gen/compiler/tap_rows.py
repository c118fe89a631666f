"""How many rows of a sequencer's memories the taps of a map take; rows/sequencer.py makes them."""

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.sequencer_kind import SequencerKind

from .schedule import Raster, StageTables


@dataclass(frozen=True, kw_only=True)
class TapRows:
    """How many rows a map's taps take in a sequencer's memories, and how many tuples the tuple memory must hold. It is
    worked out without the rows.

    Attributes
    ----------
    hold
        Tuples that the windows keep.
    tuples, windows
        Tuples of the map; windows that read it.
    window_taps
        Taps of a window, if every tap is new and all windows are alike, so that no table is needed; else 0.
    taps, olds, jumps, aheads
        Rows of the tables of these names.
    counters
        What the counters run by that take the place of tables; None where tables are there, or none is needed.
    """

    hold: int
    tuples: int
    windows: int
    window_taps: int = 0
    taps: int = 0
    olds: int = 0
    jumps: int = 0
    aheads: int = 0
    counters: Raster | None = None

    @classmethod
    def of(cls, tables: StageTables, kind: SequencerKind, *, visits: int = 1, reread: bool = False) -> "TapRows":
        """What a schedule takes. A schedule is counted once for each way in which it is read. A copy of the schedule is
        counted, so that the arrays that are worked out for it are freed with the copy.

        Parameters
        ----------
        tables
            The schedule.
        kind
            How the sequencer finds and claims taps.
        visits
            Beats of each word at a tap, one after another, each with a kernel row of its own.
        reread
            Whether a window is passed several times, so that its tuples must stay until the last pass ends.
        """
        way = kind, visits, reread
        counted = _COUNTED.setdefault(tables, {})
        if way not in counted:
            counted[way] = cls._of(replace(tables), kind, visits=visits, reread=reread)
        return counted[way]

    @classmethod
    def _of(cls, tables: StageTables, kind: SequencerKind, *, visits: int, reread: bool) -> "TapRows":
        """What a schedule takes."""
        tuples = len(tables.input_order)
        skips = tables.advance - tables.new
        ahead = kind.claims_ahead  # else each tuple that a tap claims beside its own is a skip, a row of flags
        weighted = kind.kernel_rows and tables.stage.kind == "conv"  # a pool without weights has no kernel rows
        about: dict[str, Any] = {
            "hold": min(tables.capacity(reread), tuples),
            "tuples": tuples,
            "windows": len(tables.output_order),
        }
        jumps = tables.stage.kind == "conv" and bool(tables.jump_mark.any())
        if visits == 1 and tables.new.all() and not skips.any() and not jumps and (taps := _alike(tables.last)):
            return cls(**about, window_taps=taps)  # there are no olds and no jumps either
        counters = Raster.of(tables) if kind.counters and visits <= 2 else None  # hardware counts to two
        if counters:
            return cls(**about, counters=counters)
        return cls(
            **about,
            taps=len(tables.index) * visits + (0 if ahead else int(skips.sum())),
            olds=len(tables.index) * visits - int(tables.new.sum()),
            jumps=len(tables.jump_target) if weighted else 0,
            aheads=int((skips > 0).sum()) if ahead else 0,
        )

    @classmethod
    def straight(cls, windows: int) -> "TapRows":
        """Of a pool layer without windows, which hands tuples on as they come."""
        return cls(hold=1, tuples=windows, windows=windows, window_taps=1)

    @property
    def steady(self) -> int:
        """Tuples with which counters don't wait at the beginning of a row of windows, if words come fast enough: there
        is room for all that the row's first window claims. 0 without counters."""
        return self.hold + self.counters.burst if self.counters else 0

    def ring_words(self, words: int) -> int:
        """Words that the tuple memory must hold, with room for one more tuple; ``words`` are those of a tuple."""
        return max((self.hold + (self.hold < self.tuples)) * words, 2 * words if self.tuples > 1 else words)


def _alike(last: Array) -> int:
    """Taps of a window where all windows have as many, else 0; ``last`` marks each window's last tap."""
    taps = int(last.argmax()) + 1
    return taps if (last == ((np.arange(len(last)) + 1) % taps == 0)).all() else 0


_COUNTED: WeakKeyDictionary[StageTables, dict[tuple[SequencerKind, int, bool], TapRows]] = WeakKeyDictionary()
"""What schedules take, by the way in which they are read, as long as the schedules exist: a search asks for the same
schedule many times."""
