"""The taps that a sequencer goes through for a map: what a schedule becomes on a sequencer of some kind.

    schedule, kind, visits --SequencerTaps--> counts: tuples kept, rows of tables    needs.py
                                              work: cycles by formula                sequencer_work.py
                                              table rows                             rows/sequencer.py
                                              reading: what claims what, and when    flow/of_plan.py

A schedule says which tuples arrive and are read in which order (schedule/tables.py). A sequencer runs through it by
counters where it can, and else by tables; a layer whose windows are all alike needs neither. By tables, tuples that
arrive and that no tap reads are claimed ahead, any number at once, or each of them is a *skip*: a row of memory
``flags``, and a cycle in every pass over the window.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.npu import NpuSequencer
from bitloom.hls_gen.design.sequencer_kind import SequencerKind

from .schedule import Raster, Stage, StageTables, schedule
from .sequencer_work import SequencerWork


@dataclass(frozen=True, kw_only=True)
class TapCounts:
    """Counts of the taps, windows and tuples of a map, from which a sequencer's work follows; none needs the rows of
    its tables."""

    hold: int
    """Tuples that the windows keep."""
    tuples: int
    windows: int
    """tuples, windows: tuples of the map; windows that read it."""
    taps: int
    """Valid taps of all windows; a tap that is visited twice counts as two."""
    skips: int
    """Tuples each of which costs a cycle in every pass over its window, as they arrive and no tap reads them."""
    window_taps: int
    """Taps of a window, if every tap is new and all windows are alike, so that no table is needed; else 0."""
    flags: int
    olds: int
    jumps: int
    aheads: int
    """flags, olds, jumps, aheads: rows of the tables of these names."""
    counters: Raster | None
    """Counters that take the place of tables; None where tables are there, or none is needed."""
    work: SequencerWork
    """The sequencer's work."""

    @property
    def steady(self) -> int:
        """Tuples with which counters don't wait at the beginning of a row of windows, if words come fast enough: there
        is room for all that the row's first window claims. 0 without counters."""
        return self.hold + self.counters.burst if self.counters else 0

    def tuple_memory_words(self, words: int) -> int:
        """Words that the tuple memory must hold, with room for one more tuple; ``words`` are those of a tuple."""
        return max((self.hold + (self.hold < self.tuples)) * words, 2 * words if self.tuples > 1 else words)


@dataclass(frozen=True)
class SequencerTaps:
    """A schedule on a sequencer."""

    tables: StageTables
    """The schedule."""
    kind: SequencerKind
    """How the sequencer finds and claims taps."""
    visits: int = 1
    """Beats of each word at a tap, one after another, each with a kernel row of its own."""
    reread: bool = False
    """Whether a window is passed several times, so that its tuples must stay until the last pass ends."""

    @classmethod
    def straight(cls, windows: int, kind: SequencerKind) -> "SequencerTaps":
        """Of a pool unit that hands tuples on as they come: each is a window of one tap."""
        return cls(_straight(windows), kind)

    @property
    def counts(self) -> TapCounts:
        """The counts of the taps.

        A schedule is counted once for each way in which it is read. A copy of the schedule is counted, so that the
        arrays that are worked out for it are freed with the copy.
        """
        way = self.kind, self.visits, self.reread
        counted = _COUNTED.setdefault(self.tables, {})
        if way not in counted:
            counted[way] = replace(self, tables=replace(self.tables))._counted()
        return counted[way]

    def _counted(self) -> TapCounts:
        """The counts of the taps, counted anew."""
        tables = self.tables
        unread = tables.unread
        taps = len(tables.index) * self.visits
        windows = len(tables.output_order)
        jumps = tables.stage.weighted and bool(tables.jump_mark.any())
        direct = self.visits == 1 and tables.new.all() and not unread.any() and not jumps
        window_taps = _alike(tables.last) if direct else 0
        countable = self.kind.counters and self.visits <= 2 and not window_taps  # hardware counts to two
        counters = Raster.of(tables) if countable else None
        by_tables = not (window_taps or counters)
        one_by_one = by_tables and not self.kind.claims_ahead
        skipped = np.bincount(tables.window, unread * one_by_one, windows).astype(np.int64)
        return TapCounts(
            hold=min(tables.capacity(self.reread), len(tables.input_order)),
            tuples=len(tables.input_order),
            windows=windows,
            taps=taps,
            skips=int(skipped.sum()),
            window_taps=window_taps,
            flags=taps + int(skipped.sum()) if by_tables else 0,
            olds=taps - int(tables.new.sum()) if by_tables else 0,
            jumps=len(tables.jump_target) if by_tables and tables.stage.weighted else 0,
            aheads=int((unread > 0).sum()) if by_tables and self.kind.claims_ahead else 0,
            counters=counters,
            work=SequencerWork.counted(self.window_taps, skipped),
        )

    @property
    def window_taps(self) -> Ints:
        """(windows,) valid taps of each window; a tap that is visited twice counts as two."""
        return self.tables.valid_taps * self.visits


@dataclass(frozen=True, kw_only=True)
class OnSequencer:
    """A map on a sequencer of an NPU."""

    sequencer: NpuSequencer
    """The sequencer."""
    taps: SequencerTaps
    """Its taps."""
    words: int
    """Words of a tuple."""
    tap_rows: int
    """Rows of weights that a tap meets, all its words and visits together."""
    lines: FormedLines | None = None
    """Lines that a line former makes of the map in front of the sequencer; None where there is none."""

    @cached_property
    def counts(self) -> TapCounts:
        """The counts of the taps."""
        return self.taps.counts

    @property
    def coming_words(self) -> int:
        """Words of the map that come, in front of a line former where there is one."""
        return self.lines.coming_words if self.lines else self.counts.tuples * self.words

    @property
    def pass_rows(self) -> int:
        """Rows of weights that all places of the kernel have in a pass over a window."""
        stage = self.taps.tables.stage
        return stage.places * self.tap_rows if stage.weighted else 0


def _alike(last: Array) -> int:
    """Taps of a window where all windows have as many, else 0; ``last`` marks each window's last tap."""
    taps = int(last.argmax()) + 1
    return taps if (last == ((np.arange(len(last)) + 1) % taps == 0)).all() else 0


@lru_cache(maxsize=32)
def _straight(windows: int) -> StageTables:
    """The schedule of tuples that are handed on as they come."""
    stage = Stage(name="straight", weighted=False, height=1, width=windows, window=Taps(Window(kernel=(1, 1))))
    return schedule([stage], "pull").tables[0]


_COUNTED: WeakKeyDictionary[StageTables, dict[tuple[SequencerKind, int, bool], TapCounts]] = WeakKeyDictionary()
"""Counts of schedules, by how a schedule is read, kept as long as the schedules exist: a search asks for the same
schedule many times."""
