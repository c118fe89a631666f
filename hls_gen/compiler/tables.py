"""Rows of a sequencer's memories: what a layer's schedule becomes (hls_gen/rtl/sequencer/sequencer.py;
hls_gen/compiler/schedule/tables.py).

    layers row --> taps, one after another: flags row (new tuple or old one, last of its window, ...)
                                            olds, jumps, aheads row where the flags say so

Every memory holds all layers, one after another; a layer's row says where its own part begins. Words are those of the
tuple memory (kfp or pfp bits); old addresses are relative to the first word of the layer.
"""

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bitloom.golden.encoding import Array

from .layout import Ints
from .schedule import Raster, StageTables

AXIS = ("kernel_minus_1", "stride", "lead", "fresh", "room", "step", "cross")
COMMON = ("by_counters", "x_room_end", *(f"{axis}_{what}" for axis in "xy" for what in AXIS), "line_words", "gap_words")
KERNEL = ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")
MODULAR = ("x_step", "x_cross", "y_step", "y_cross", "line_words", *KERNEL)
"""Fields that are added to addresses, and count modulo 2^width."""


def no_counters(kernel: bool) -> dict[str, int]:
    """Fields of a layer that has tables, or needs none.

    Parameters
    ----------
    kernel
        Whether they are those of the convolution's sequencer; else of the pool's.

    Returns
    -------
    dict
        Name of a field -> 0.
    """
    return dict.fromkeys((*COMMON, *(KERNEL if kernel else ())), 0)


def counter_fields(raster: Raster, words: int, tap_rows: int) -> dict[str, int]:
    """Fields of a layer by counters.

    Parameters
    ----------
    raster
        What the counters run by, in tuples.
    words
        Words of a tuple.
    tap_rows
        Kernel rows of a tap; 0 in a pool.

    Returns
    -------
    dict
        Name of a field -> its value.
    """
    line = raster.x.size * words
    out = {"by_counters": 1, "x_room_end": raster.x.room_end, "line_words": line, "gap_words": raster.gap * words}
    for name, axis, unit in (("x", raster.x, words), ("y", raster.y, line)):
        values = (axis.kernel - 1, axis.step, axis.lead, axis.fresh, axis.room, axis.step * unit, axis.cross * unit)
        out |= {f"{name}_{what}": value for what, value in zip(AXIS, values)}
    if tap_rows:
        line_rows = raster.x.kernel * tap_rows
        out |= {"x_lead_rows": raster.x.lead * tap_rows, "x_stride_rows": raster.x.step * tap_rows}
        out |= {"y_lead_rows": raster.y.lead * line_rows, "y_stride_rows": raster.y.step * line_rows}
        out["line_rows"] = line_rows
    return out


FLAGS = ("last", "new", "skip", "jump")
"""Columns of ``Tables.flags``."""


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
    def of(
        cls,
        tables: StageTables,
        *,
        visits: int = 1,
        reread: bool = False,
        kernel: bool = True,
        raster: bool = False,
        ahead: bool = False,
    ) -> "TapRows":
        """What a schedule takes; ``kernel``, ``raster`` and ``ahead`` as of `Tables`, others of `Tables.append`. It is
        counted once."""
        way = visits, reread, kernel, raster, ahead
        counted = _COUNTED.setdefault(tables, {})
        if way not in counted:
            counted[way] = cls._of(tables, visits=visits, reread=reread, kernel=kernel, raster=raster, ahead=ahead)
        return counted[way]

    @classmethod
    def _of(
        cls, tables: StageTables, *, visits: int, reread: bool, kernel: bool, raster: bool, ahead: bool
    ) -> "TapRows":
        """What a schedule takes."""
        tuples = len(tables.input_order)
        skips = tables.advance - tables.new
        weighted = kernel and tables.stage.kind == "conv"  # a pool without weights has no kernel rows
        about: dict[str, Any] = {
            "hold": min(tables.capacity(reread), tuples),
            "tuples": tuples,
            "windows": len(tables.output_order),
        }
        jumps = tables.stage.kind == "conv" and bool(tables.jump_mark.any())
        if visits == 1 and tables.new.all() and not skips.any() and not jumps and (taps := _alike(tables.last)):
            return cls(**about, window_taps=taps)  # there are no olds and no jumps either
        counters = Raster.of(tables) if raster and visits <= 2 else None  # hardware counts to two
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


_COUNTED: WeakKeyDictionary[StageTables, dict[tuple[int, bool, bool, bool, bool], TapRows]] = WeakKeyDictionary()
"""What schedules take, as long as they are there, by the way in which they are read: a search asks again and again."""


@dataclass
class Tables:
    """Rows of one sequencer's memories: ``inputs`` and ``layers`` by field, the others one array a layer."""

    kernel: bool
    """Whether the sequencer counts kernel rows and jumps: the convolution's, or that of a pool unit with weights."""
    raster: bool = False
    """Whether the NPU has counters, so that layers in raster order need no flags, olds and jumps."""
    ahead: bool = False
    """Whether taps claim tuples ahead by a table; else each tuple that a tap claims beside its own is a skip, a row of
    flags."""
    inputs: list[dict[str, int]] = field(default_factory=list)
    """Rows of memory ``inputs``, one a layer, by field."""
    layers: list[dict[str, int]] = field(default_factory=list)
    """Rows of memory ``layers``, one a layer, by field."""
    flags: list[Array] = field(default_factory=list)
    """(taps, 4) of 0 and 1, columns FLAGS."""
    olds: list[Ints] = field(default_factory=list)
    """(old taps,) the word that each reads, counted through the layer; its address is that modulo the tuple memory's
    capacity."""
    jumps: list[Ints] = field(default_factory=list)
    """(jumps,) the kernel row that each goes to, counted from the kernel group's first row; none in the pool's."""
    aheads: list[Ints] = field(default_factory=list)
    """(taps that claim ahead,) the words that each claims so."""

    def append(
        self, tables: StageTables, words: int, *, visits: int = 1, reread: bool = False, inner: int = 1, part: int = 0
    ) -> None:
        """Append the rows of a layer with windows.

        Parameters
        ----------
        tables
            The layer's schedule.
        words
            Words of a tuple.
        visits
            Beats of each word at a tap, one after another, each with a kernel row of its own.
        reread
            Whether a window is passed several times, so that its tuples must stay until the last pass ends.
        inner
            Kernel rows that use a word one after another (dataflow input_stationary).
        part
            Words of a tuple that a pass reads; 0: all.
        """
        tap_rows = (part or words) * visits * inner
        need = TapRows.of(
            tables, visits=visits, reread=reread, kernel=self.kernel, raster=self.raster, ahead=self.ahead
        )
        weighted = self.kernel and tables.stage.kind == "conv"
        flags, olds, aheads = _taps(tables, visits, self.ahead)
        jumps = tables.jump_target if weighted else tables.jump_target[:0]
        if need.window_taps or need.counters:
            flags = flags[:0]
            olds = olds[:0]
            jumps = jumps[:0]
            aheads = aheads[:0]
        rows_of = {"taps": flags, "olds": olds, "jumps": jumps, "aheads": aheads}
        assert all(len(made) == getattr(need, name) for name, made in rows_of.items()), tables.stage.name
        row = {
            "words_minus_1": words - 1,
            "hold_tuples": need.hold,
            "hold_words": need.hold * words,
            "direct": int(need.window_taps > 0),
            "window_taps_minus_1": max(need.window_taps - 1, 0),
            "windows_minus_1": need.windows - 1,
            "flags_base": base(self.flags, flags),
            "old_base": base(self.olds, olds),
        }
        if self.kernel:
            row["jump_base"] = base(self.jumps, jumps)
            row["start_row"] = (tables.leading_jump or 0) * tap_rows if weighted else 0
        if self.ahead:
            row["ahead_base"] = base(self.aheads, aheads)
        if self.raster:
            row |= no_counters(self.kernel)
            if need.counters:
                row |= counter_fields(need.counters, words, tap_rows if weighted else 0)
        if self.raster or self.ahead:
            del row["hold_tuples"]  # several tuples may be claimed at once: words are counted
        self.layers.append(row)
        self.inputs.append({"words": need.tuples * words})
        self.flags.append(flags)
        self.olds.append(olds * words)
        self.jumps.append(jumps * tap_rows)
        self.aheads.append(aheads * words)

    def append_straight(self, windows: int, words: int) -> None:
        """Append the rows of a pool layer without windows, which hands tuples on as they come.

        Parameters
        ----------
        windows
            How many tuples.
        words
            Words of a tuple.
        """
        zero = ("window_taps_minus_1", "flags_base", "old_base", *(("jump_base", "start_row") if self.kernel else ()))
        row = dict.fromkeys(zero, 0)
        row |= {
            "words_minus_1": words - 1,
            "hold_tuples": 1,
            "hold_words": words,
            "direct": 1,
            "windows_minus_1": windows - 1,
        }
        if self.raster:
            row |= no_counters(self.kernel)
            del row["hold_tuples"]
        self.layers.append(row)
        self.inputs.append({"words": windows * words})


def rows(parts: Sequence[Array]) -> int:
    """Count the rows of several parts of a memory together."""
    return sum(len(p) for p in parts)


def base(before: Sequence[Array], own: Sized) -> int:
    """Find the row at which a layer's part of a memory begins.

    Parameters
    ----------
    before
        Parts of the layers before it.
    own
        The layer's own part.

    Returns
    -------
    int
        The row; 0 if the part is empty, since the memory may end where it would begin.
    """
    return rows(before) if len(own) else 0


def _taps(tables: StageTables, visits: int, ahead: bool) -> tuple[Array, Ints, Ints]:
    """Flags of a layer's taps, (taps, 4), its olds, and the tuples that taps claim ahead.

    Each visit of a tap counts as a tap. Tuples that arrive before a tap's own and are not read by it: with ``ahead`` a
    flag of the tap says that there are some; else each is a skip, a row before the tap's.
    """
    tap = np.repeat(np.arange(len(tables.index)), visits)
    visit = np.tile(np.arange(visits), len(tables.index))
    final = visit == visits - 1
    new = tables.new[tap] & (visit == 0)
    columns = {"last": tables.last[tap] & final, "new": new, "skip": np.zeros_like(new), "jump": np.zeros_like(new)}
    if tables.stage.kind == "conv":
        columns["jump"] = tables.jump_mark[tap] & final
    flags: Array = np.stack([columns[name] for name in FLAGS], axis=1).astype(np.int64)
    skips = tables.advance - tables.new  # tuples that arrive before this tap's own
    firsts = np.flatnonzero(visit == 0)
    if ahead:
        flags[firsts[skips > 0], FLAGS.index("skip")] = 1
        return flags, tables.index[tap][~new], skips[skips > 0]
    skip = np.array([int(name in ("new", "skip")) for name in FLAGS])
    flags = np.insert(flags, np.repeat(firsts, skips), skip, axis=0)
    return flags, tables.index[tap][~new], skips[:0]


def _alike(last: Array) -> int:
    """Taps of a window where all windows have as many, else 0; ``last`` marks each window's last tap."""
    taps = int(last.argmax()) + 1
    return taps if (last == ((np.arange(len(last)) + 1) % taps == 0)).all() else 0
