"""Rows of the sequencers, the array's and the pool unit's: what a layer's schedule becomes
(hls_gen/rtl/sequencer/sequencer.py; hls_gen/compiler/schedule/tables.py).

    layers row --> taps, one after another: flags row (new tuple or old one, last of its window, ...)
                                            olds, jumps, aheads row where the flags say so

Words are those of the tuple memory (kfp or pfp bits); old addresses are relative to the first word of the layer.
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.compiler.layout import Ints
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.compiler.schedule import Raster, StageTables
from bitloom.hls_gen.compiler.tap_rows import TapRows
from bitloom.hls_gen.design.sequencer_kind import NpuSequencer, SequencerKind

from .layer_rows import Columns, row

AXIS = ("kernel_minus_1", "stride", "lead", "fresh", "room", "step", "cross")
COMMON = ("by_counters", "x_room_end", *(f"{axis}_{what}" for axis in "xy" for what in AXIS), "line_words", "gap_words")
KERNEL = ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")
FLAGS = ("last", "new", "skip", "jump")
"""Fields of memory ``flags``; without the last one where no kernel rows are counted."""


def no_counters(kind: SequencerKind) -> dict[str, int]:
    """Fields of a layer that has tables, or needs none: name of a field -> 0."""
    return dict.fromkeys((*COMMON, *(KERNEL if kind.kernel_rows else ())), 0)


def counter_fields(raster: Raster, sequencer: NpuSequencer, words: int, tap_rows: int) -> dict[str, int]:
    """Fields of a layer by counters. What is added to addresses counts modulo the rows of the memory.

    Parameters
    ----------
    raster
        What the counters run by, in tuples.
    sequencer
        The sequencer.
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
    ring = sequencer.ring_words
    out = {
        "by_counters": 1,
        "x_room_end": raster.x.room_end,
        "line_words": line % ring,
        "gap_words": raster.gap * words,
    }
    for name, axis, unit in (("x", raster.x, words), ("y", raster.y, line)):
        moves = (axis.step * unit % ring, axis.cross * unit % ring)
        values = (axis.kernel - 1, axis.step, axis.lead, axis.fresh, axis.room, *moves)
        out |= {f"{name}_{what}": value for what, value in zip(AXIS, values)}
    if tap_rows:
        line_rows = raster.x.kernel * tap_rows
        rows = {
            "x_lead_rows": raster.x.lead * tap_rows,
            "x_stride_rows": raster.x.step * tap_rows,
            "y_lead_rows": raster.y.lead * line_rows,
            "y_stride_rows": raster.y.step * line_rows,
            "line_rows": line_rows,
        }
        out |= {name: count % (1 << sequencer.row_bits) for name, count in rows.items()}
    return out


def array_sequencer_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Rows by which the array's sequencer finds the taps of a layer."""
    npu = planned.npu
    part = planned.part
    tap_rows = part.words * planned.layer.visits * planned.inner
    rows = sequencer_rows(
        npu.array_sequencer,
        planned.conv,
        planned.taps,
        planned.words,
        visits=planned.layer.visits,
        tap_rows=tap_rows,
    )
    groups = {
        "group_rows": planned.layer.weight.shape[1] * part.words if planned.passes > 1 else 0,
        "groups_minus_1": planned.passes - 1,
    }
    if npu.sequencer.tuple_parts:
        groups |= part.fields
    if npu.array.accumulators > 1:
        groups |= {
            "inner_groups_minus_1": planned.inner - 1,
            "tap_rows_minus_1": part.words * planned.inner - 1,
        }
    rows["layers"] = {**rows["layers"], **row(groups)}
    return rows


def pool_sequencer_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Rows by which the pool unit's sequencer finds the taps of a layer; none where its results don't pass one."""
    sequencer = planned.npu.pool_sequencer
    if sequencer is None or planned.pool_taps is None:
        return {}
    words = len(planned.pooled)
    return sequencer_rows(sequencer, planned.pool, planned.pool_taps, words, tap_rows=words)


def sequencer_rows(
    sequencer: NpuSequencer,
    tables: StageTables | None,
    taps: TapRows,
    words: int,
    *,
    visits: int = 1,
    tap_rows: int = 0,
) -> dict[str, Columns]:
    """Rows of a sequencer for a layer, but for the rows at which its tables begin.

    Parameters
    ----------
    sequencer
        The sequencer.
    tables
        The layer's schedule; None where a pool unit hands tuples on as they come.
    taps
        What the schedule takes.
    words
        Words of a tuple.
    visits
        Beats of each word at a tap, one after another, each with a kernel row of its own.
    tap_rows
        Kernel rows of a tap.

    Returns
    -------
    dict
        Rows by the name of their memory.
    """
    kind = sequencer.kind
    weighted = kind.kernel_rows and tables is not None and tables.stage.kind == "conv"
    layer = {
        "words_minus_1": words - 1,
        "hold_words": taps.hold * words,
        "direct": int(taps.window_taps > 0),
        "window_taps_minus_1": max(taps.window_taps - 1, 0),
        "windows_minus_1": taps.windows - 1,
    }
    if kind.claims_one_by_one:
        layer["hold_tuples"] = taps.hold
    if kind.kernel_rows:
        layer["start_row"] = (tables.leading_jump or 0) * tap_rows if tables is not None and weighted else 0
    if kind.counters:
        layer |= no_counters(kind)
        if taps.counters:
            layer |= counter_fields(taps.counters, sequencer, words, tap_rows if weighted else 0)
    rows: dict[str, Columns] = {"inputs": row({"words": taps.tuples * words}), "layers": row(layer)}
    of = _no_tables() if tables is None or taps.taps == 0 else _tap_tables(tables, visits, kind.claims_ahead)
    rows["flags"] = dict(zip(FLAGS if kind.kernel_rows else FLAGS[:-1], of.flags.T))
    rows["olds"] = {"word": of.olds * words % sequencer.ring_words}
    if kind.kernel_rows:
        rows["jumps"] = {"row": of.jumps * tap_rows if weighted else of.jumps[:0]}
    if kind.claims_ahead:
        rows["aheads"] = {"words": of.aheads * words}
    return {sequencer.prefix + name: columns for name, columns in rows.items()}


def _no_tables() -> "_TapTables":
    """Tables without rows: counters take their place, or none is needed."""
    none = np.zeros(0, np.int64)
    return _TapTables(np.zeros((0, len(FLAGS)), np.int64), none, none, none)


@dataclass(frozen=True, eq=False)
class _TapTables:
    """What the tables say of a layer's taps.

    Attributes
    ----------
    flags
        (taps, 4) of 0 and 1, columns FLAGS.
    olds
        (old taps,) the tuple that each reads, counted through the layer.
    jumps
        (jumps,) the tap of the kernel that each goes to.
    aheads
        (taps that claim ahead,) the tuples that each claims ahead.
    """

    flags: Array
    olds: Ints
    jumps: Ints
    aheads: Ints


def _tap_tables(tables: StageTables, visits: int, ahead: bool) -> _TapTables:
    """The tables of a layer's taps, each visit of which counts as a tap.

    Before a tap's own tuple others may arrive that the tap doesn't read. With ``ahead`` a flag of the tap says that
    there are such tuples; else each of them is a skip, a row before the tap's.
    """
    tap = np.repeat(np.arange(len(tables.index)), visits)
    visit = np.tile(np.arange(visits), len(tables.index))
    final = visit == visits - 1
    new = tables.new[tap] & (visit == 0)
    columns = {"last": tables.last[tap] & final, "new": new, "skip": np.zeros_like(new), "jump": np.zeros_like(new)}
    if tables.stage.kind == "conv":
        columns["jump"] = tables.jump_mark[tap] & final
    flags: Array = np.stack([columns[name] for name in FLAGS], axis=1).astype(np.int64)
    skips = tables.skips
    firsts = np.flatnonzero(visit == 0)
    if ahead:
        flags[firsts[skips > 0], FLAGS.index("skip")] = 1
        return _TapTables(flags, tables.index[tap][~new], tables.jump_target, skips[skips > 0])
    skip = np.array([int(name in ("new", "skip")) for name in FLAGS])
    flags = np.insert(flags, np.repeat(firsts, skips), skip, axis=0)
    return _TapTables(flags, tables.index[tap][~new], tables.jump_target, skips[:0])
