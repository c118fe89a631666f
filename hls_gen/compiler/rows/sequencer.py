"""Rows of the sequencers, the array's and the pool unit's: what a layer's schedule becomes
(hls_gen/rtl/sequencer/sequencer.py; hls_gen/compiler/schedule/tables.py).

    layers row --> taps, one after another: flags row (new tuple or old one, last of its window, ...)
                                            olds, jumps, aheads row where the flags say so

What is at hand stands in registers, for which a table is read a row ahead: so the row of a layer has what its tables
say first, and each row of a table what they say next. Words are those of the tuple memory (kfp or pfp bits); old
addresses are relative to the first word of the layer.
"""

import numpy as np

from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.compiler.schedule import Raster
from bitloom.hls_gen.compiler.sequencer_taps import OnSequencer
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.memories.sequencer import counter_fields, kernel_moves
from bitloom.hls_gen.design.npu import NpuSequencer

from .layer_rows import Columns, row
from .line_former import line_former_rows

AXIS = ("kernel_minus_1", "stride", "lead", "fresh", "room", "step", "cross")


def counter_values(raster: Raster, sequencer: NpuSequencer, words: int, tap_rows: int) -> dict[str, int]:
    """Fields of a layer by counters. What is added to addresses counts modulo the rows of the memory.

    Parameters
    ----------
    raster
        Counts of the counters, in tuples.
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
    ring = sequencer.tuple_memory_words
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
            "x_second_rows": max(0, raster.x.lead - raster.x.step) * tap_rows,
            "x_stride_rows": raster.x.step * tap_rows,
            "y_lead_rows": raster.y.lead * line_rows,
            "y_second_rows": max(0, raster.y.lead - raster.y.step) * line_rows,
            "y_stride_rows": raster.y.step * line_rows,
            "line_rows": line_rows,
        }
        out |= {name: count % (1 << sequencer.row_bits) for name, count in rows.items()}
    return out


def array_sequencer_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Rows by which the array's sequencer finds the taps of a layer."""
    npu = planned.npu
    part = planned.tuple_part
    rows = sequencer_rows(planned.on_array)
    groups = {
        "group_rows": planned.on_array.pass_rows if planned.passes > 1 else 0,
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


def sequencer_rows(on: OnSequencer) -> dict[str, Columns]:
    """Rows of a sequencer for a map, but for the rows at which its tables begin.

    Returns
    -------
    dict
        Rows by the name of their memory.
    """
    sequencer = on.sequencer
    kind = sequencer.kind
    counts = on.counts
    words = on.words
    tap_rows = on.tap_rows if on.taps.tables.stage.weighted else 0
    layer = {
        "words_minus_1": words - 1,
        "hold_words": counts.hold * words,
        "direct": int(counts.window_taps > 0),
        "window_taps_minus_1": max(counts.window_taps - 1, 0),
        "windows_minus_1": counts.windows - 1,
    }
    if kind.claims_one_by_one:
        layer["hold_tuples"] = counts.hold
    if kind.kernel_rows:
        layer["start_row"] = (on.taps.tables.leading_jump or 0) * tap_rows
    layer |= {name: 0 for name, _ in (*counter_fields(sequencer), *kernel_moves(sequencer))}
    if counts.counters:
        layer |= counter_values(counts.counters, sequencer, words, tap_rows)
    tables = _tables(on)
    layer |= {
        table.first(name): int(column[0]) if len(column) else 0
        for table in kind.tables
        for name, column in tables[table.name].items()
    }
    following = {table: {name: np.roll(column, -1) for name, column in rows.items()} for table, rows in tables.items()}
    rows = {"inputs": row({"words": on.coming_words}), "layers": row(layer), **following}
    return {sequencer.prefix + name: columns for name, columns in rows.items()} | line_former_rows(on)


def waiting_rows(sequencer: NpuSequencer) -> dict[str, Columns]:
    """Rows of a sequencer of an NPU without layers, by memory: a layer of one word, without tables, which never
    comes."""
    ones = {"words": 1, "hold_tuples": 1, "hold_words": 1, "direct": 1}
    memories = [memory_of(sequencer.npu, sequencer.prefix + name) for name in ("inputs", "layers")]
    return {memory.name: row({field.name: ones.get(field.name, 0) for field in memory.fields}) for memory in memories}


def _tables(on: OnSequencer) -> dict[str, Columns]:
    """Columns of a sequencer's tables for a layer, in the order of its taps; each visit of a tap counts as a tap. No
    rows where counters, or nothing, take the place of the tables.

    Before a tap's own tuple others may arrive that the tap doesn't read. Either a flag of the tap says that there are
    such tuples, and the table ``aheads`` how many; or each of them is a skip, a row before the tap's.
    """
    kind = on.sequencer.kind
    counts = on.counts
    tables = on.taps.tables
    visits = on.taps.visits
    tap = np.repeat(np.arange(len(tables.index) if counts.flags else 0), visits)
    visit = np.arange(len(tap)) % visits
    final = visit == visits - 1
    new = tables.new[tap] & (visit == 0)
    unread = tables.unread[tap] * (visit == 0)
    ahead = unread > 0
    flags = {"last": tables.last[tap] & final, "new": new}
    flags |= {"ahead": ahead} if kind.claims_ahead else {"skip": np.zeros_like(new)}
    if kind.kernel_rows:
        flags["jump"] = tables.jump_mark[tap] & final if tables.stage.weighted else np.zeros_like(new)
    skipped = np.repeat(np.arange(len(tap)), unread if counts.skips else 0)
    rows: dict[str, Columns] = {
        "flags": {
            name: np.insert(column, skipped, name in ("new", "skip")).astype(np.int64) for name, column in flags.items()
        },
        "olds": {"word": tables.index[tap][~new] * on.words % on.sequencer.tuple_memory_words},
    }
    if kind.kernel_rows:
        rows["jumps"] = {"row": tables.jump_target[: counts.jumps] * on.tap_rows}
    if kind.claims_ahead:
        rows["aheads"] = {"words": unread[ahead] * on.words}
    return rows
