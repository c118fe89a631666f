"""Rows of a sequencer's memories: what a layer's schedule becomes (hls_gen/rtl/sequencer/sequencer.py;
hls_gen/compiler/schedule/tables.py).

    layers row --> taps, one after another: flags row (new tuple or old one, last of its window, ...)
                                            olds row, jumps row where the flags say so

Every memory holds all layers, one after another; a layer's row says where its own part begins. Words are those of the
tuple memory (kfp or pfp bits); old addresses are relative to the first word of the layer.
"""

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Array

from .layout import Ints
from .raster_rows import counter_fields, no_counters
from .schedule import Raster, StageTables

FLAGS = ("last", "new", "skip", "jump")
"""Columns of ``Tables.flags``."""


@dataclass
class Tables:
    """Rows of one sequencer's memories: ``inputs`` and ``layers`` by field, the others one array a layer.

    kernel : the convolution's sequencer, which counts kernel rows and jumps; else the pool's.
    raster : the NPU has counters, so that layers in raster order need no flags, olds and jumps.
    """

    kernel: bool
    raster: bool = False
    inputs: list[dict[str, int]] = field(default_factory=list)
    layers: list[dict[str, int]] = field(default_factory=list)
    flags: list[Array] = field(default_factory=list)
    """(taps, 4) of 0 and 1, columns FLAGS."""
    olds: list[Ints] = field(default_factory=list)
    """(old taps) word of the layer; the tuple memory's capacity is still to be taken off."""
    jumps: list[Ints] = field(default_factory=list)
    """(jumps) kernel row, counted from the first row of the kernel group; none in the pool's."""
    ring_words: int = 2
    """Words that the tuple memory must hold: the largest of the layers, with room for one more tuple."""
    hold_words: int = 0
    """Words that the layers' windows keep, the largest of the layers."""
    steady_words: int = 2
    """Words with which layers by counters need not wait at each new row of windows, if words come fast enough: room
    for what its first window claims."""

    def append(self, tables: StageTables, words: int, *, visits: int = 1, reread: bool = False, inner: int = 1) -> None:
        """Rows of a layer with windows.

        words : of a tuple.  visits : beats of each word at a tap, one after another, with a kernel row each.
        reread : a window is passed several times, so its tuples must stay until it ends.
        inner : kernel rows of a word, used one after another (dataflow input_stationary).
        """
        counters = Raster.of(tables) if self.raster and visits <= 2 else None  # hardware counts to two
        flags, olds = _taps(tables, visits)
        jumps = tables.jump_target if self.kernel else tables.jump_target[:0]
        window_taps = _plain_window(flags)
        if window_taps:
            flags = flags[:0]  # there are no olds and no jumps either
        elif counters:
            flags, olds, jumps = flags[:0], olds[:0], jumps[:0]
        tuples, windows = len(tables.input_order), len(tables.output_order)
        hold = min(tables.capacity(reread), tuples)
        row = {
            "words_minus_1": words - 1,
            "hold_tuples": hold,
            "hold_words": hold * words,
            "direct": int(window_taps > 0),
            "window_taps_minus_1": max(window_taps - 1, 0),
            "windows_minus_1": windows - 1,
            "flags_base": base(self.flags, flags),
            "old_base": base(self.olds, olds),
        }
        if self.kernel:
            row["jump_base"] = base(self.jumps, jumps)
            row["start_row"] = (tables.leading_jump or 0) * words * visits * inner
        if self.raster:
            row |= no_counters(self.kernel)
            if counters and not window_taps:
                row |= counter_fields(counters, words, words * visits * inner if self.kernel else 0)
                self.steady_words = max(self.steady_words, (hold + counters.burst) * words)
            del row["hold_tuples"]  # counters count words
        self.layers.append(row)
        self.inputs.append({"words": tuples * words})
        self.flags.append(flags)
        self.olds.append(olds * words)
        self.jumps.append(jumps * words * visits * inner)
        self.hold_words = max(self.hold_words, hold * words)
        self.ring_words = max(self.ring_words, (hold + (hold < tuples)) * words, 2 * words if tuples > 1 else words)

    def append_straight(self, windows: int, words: int) -> None:
        """Rows of a pool layer without windows: it hands ``windows`` tuples on."""
        row = dict.fromkeys(("window_taps_minus_1", "flags_base", "old_base"), 0)
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
        self.ring_words = max(self.ring_words, 2 * words)


def rows(parts: Sequence[Array]) -> int:
    """Rows of several parts of a memory together."""
    return sum(len(p) for p in parts)


def base(before: Sequence[Array], own: Sized) -> int:
    """Row at which a layer's part of a memory begins; 0 if it has none, since the memory may end where it would be."""
    return rows(before) if len(own) else 0


def _taps(tables: StageTables, visits: int) -> tuple[Array, Ints]:
    """Flags of each tap, each visit a tap of its own and a skip before it for each tuple that only comes by; olds."""
    tap = np.repeat(np.arange(len(tables.index)), visits)
    visit = np.tile(np.arange(visits), len(tables.index))
    final = visit == visits - 1
    new = tables.new[tap] & (visit == 0)
    columns = {"last": tables.last[tap] & final, "new": new, "skip": np.zeros_like(new), "jump": np.zeros_like(new)}
    if tables.stage.kind == "conv":
        columns["jump"] = tables.jump_mark[tap] & final
    flags: Array = np.stack([columns[name] for name in FLAGS], axis=1).astype(np.int64)
    skips = np.where(tables.new, tables.advance - 1, 0)  # tuples that arrive before this tap's own
    skip = np.array([int(name in ("new", "skip")) for name in FLAGS])
    flags = np.insert(flags, np.repeat(np.flatnonzero(visit == 0), skips), skip, axis=0)
    return flags, tables.index[tap][~new]


def _plain_window(flags: Array) -> int:
    """Taps of a window if every tap is new and all windows are alike, so that no table is needed; else 0."""
    last, new, skip, jump = flags.T
    taps = int(last.argmax()) + 1
    ends = (np.arange(len(flags)) + 1) % taps == 0
    return taps if new.all() and not skip.any() and not jump.any() and (last == ends).all() else 0
