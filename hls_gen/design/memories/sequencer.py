"""Memories of the sequencer: what it reads of each layer, and its tables of taps; those of the pool unit's sequencer,
too, but for the fields that it alone has."""

from collections.abc import Iterable

from bitloom.hls_gen.design.npu import Npu, NpuSequencer
from bitloom.hls_gen.design.sequencer_kind import (
    AHEADS,
    ALWAYS,
    FLAGS,
    JUMPS,
    OLDS,
    SOMETIMES,
    SequencerKind,
    TapTable,
)
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS, bits_for

from .line_former import line_former_memories
from .memory import FieldWidths, Rows


def sequencer_memories(npu: Npu) -> dict[str, Rows]:
    """Memories of the array's sequencer."""
    sequencer = npu.array_sequencer
    return reading_memories(sequencer, _input_fields(npu), _layer_fields(sequencer))


def reading_memories(sequencer: NpuSequencer, input_fields: FieldWidths, layer_fields: FieldWidths) -> dict[str, Rows]:
    """Memories of a sequencer: two with a row for each layer, which has these fields, the tables, and a row for each
    layer to a line former."""
    npu = sequencer.npu
    prefix = sequencer.prefix
    return {
        f"{prefix}inputs": Rows(npu.loader.layers, input_fields, read_at_once=True),
        f"{prefix}layers": Rows(npu.loader.layers, layer_fields, read_at_once=True),
        **{
            prefix + table.name: Rows(
                rows,
                table_fields(sequencer, table),
                counted_as=prefix + table.capacity,
                based_by=(f"{prefix}layers", table.base),
            )
            for table, rows in sequencer.table_rows.items()
        },
        **line_former_memories(sequencer),
    }


def table_fields(sequencer: NpuSequencer, table: TapTable) -> FieldWidths:
    """Fields of a row of a table."""
    if table == FLAGS:
        return _flags(sequencer.kind)
    name, width = {
        OLDS: ("word", sequencer.address_bits),
        JUMPS: ("row", sequencer.row_bits),
        AHEADS: ("words", bits_for(sequencer.npu.sequencer.input_words)),
    }[table]
    return [(name, width)]


def _flags(kind: SequencerKind) -> FieldWidths:
    """A tap to a sequencer: it is the last one of its window; it reads a tuple that arrives; it is a skip, or, with a
    table ``aheads``, it claims what the next row of that table has, beside its own tuple; the next row of ``jumps``
    says which kernel row follows."""
    unread = "ahead" if kind.claims_ahead else "skip"
    return [("last", 1), ("new", 1), (unread, 1), *([("jump", 1)] if kind.kernel_rows else [])]


def bases(sequencer: NpuSequencer, tables: Iterable[TapTable]) -> FieldWidths:
    """Fields of a layer that say where its rows begin in those of the tables that the sequencer has."""
    rows = sequencer.table_rows
    return [(table.base, bits_for(rows[table] - 1)) for table in tables if table in rows]


def starts(sequencer: NpuSequencer, tables: Iterable[TapTable]) -> FieldWidths:
    """Fields of a layer that say where its rows in those tables begin, and what they say first: a row has what
    follows."""
    tables = [table for table in tables if table in sequencer.table_rows]
    firsts = [(table.first(name), w) for table in tables for name, w in table_fields(sequencer, table)]
    return [*bases(sequencer, tables), *firsts]


def reading_fields(sequencer: NpuSequencer) -> FieldWidths:
    """Fields of a layer that each sequencer has."""
    counts = sequencer.npu.sequencer
    ring = sequencer.address_bits
    return [
        ("words_minus_1", sequencer.index_bits),
        *([("hold_tuples", ring + 1)] if sequencer.kind.claims_one_by_one else []),
        ("hold_words", ring + 1),
        ("direct", 1),
        ("window_taps_minus_1", bits_for(counts.window_taps - 1)),
        ("windows_minus_1", bits_for(counts.windows - 1)),
        *starts(sequencer, ALWAYS),
    ]


def counter_fields(sequencer: NpuSequencer) -> FieldWidths:
    """Fields of a layer that counters run by (hls_gen/rtl/sequencer/raster.py); none without counters."""
    if not sequencer.kind.counters:
        return []
    ring = sequencer.address_bits
    fields: FieldWidths = [("by_counters", 1), ("x_room_end", SIDE_BITS)]
    for axis in "xy":
        fields += [(f"{axis}_{what}", PLACE_BITS) for what in ("kernel_minus_1", "stride", "lead", "fresh")]
        fields += [(f"{axis}_room", SIDE_BITS), (f"{axis}_step", ring), (f"{axis}_cross", ring)]
    return [*fields, ("line_words", ring), ("gap_words", ring + 1)]


def kernel_moves(sequencer: NpuSequencer) -> FieldWidths:
    """Moves in kernel rows of a layer that counters run by; none without counters, and without kernel rows."""
    if not (sequencer.kind.counters and sequencer.kind.kernel_rows):
        return []
    axes = [f"{axis}_{what}_rows" for axis in "xy" for what in ("lead", "second", "stride")]
    return [(name, sequencer.row_bits) for name in (*axes, "line_rows")]


def _input_fields(npu: Npu) -> FieldWidths:
    """A layer to the side that writes the tuple memory: words of its map, and the inlet by which they come; of two maps
    side by side words of both, the inlet of the first, and how many words of a tuple are of each."""
    part = bits_for(npu.joined_words - 1) if npu.joined_words else 0
    return [
        ("words", bits_for(npu.sequencer.input_words)),
        *([("source", npu.source_bits)] if npu.source_bits else []),
        *([("joins", 1), ("first_words_minus_1", part), ("second_words_minus_1", part)] if part else []),
    ]


def _layer_fields(sequencer: NpuSequencer) -> FieldWidths:
    """A layer to the array's sequencer."""
    npu = sequencer.npu
    row = sequencer.row_bits
    offset = npu.array.offset_bits
    fields = [
        *reading_fields(sequencer),
        *starts(sequencer, SOMETIMES),
        *((name, row) for name in ("start_row", "kernel_base", "group_rows")),
        ("groups_minus_1", bits_for(npu.sequencer.groups - 1)),
        *_part_fields(npu),
        *([("tap_offset", offset)] if offset else []),
    ]
    if npu.array.accumulators > 1:
        fields += [("inner_groups_minus_1", npu.array.slot_bits), ("tap_rows_minus_1", row)]
    if npu.loader.stream_weights:
        fields.append(("kernel_stream", 1))
    twice = [("twice", 1)] if npu.array.most_visits > 1 and sequencer.kind.counters else []
    return [*fields, *counter_fields(sequencer), *twice, *kernel_moves(sequencer)]


def _part_fields(npu: Npu) -> FieldWidths:
    """Which words of each tuple the kernel groups of a layer read, in NPUs with capacity ``tuple_parts``
    (hls_gen/rtl/sequencer/tuple_parts.py): words that a kernel group reads of each tuple, less 1; words from the first
    one of some kernel groups to that of the next ones; how many kernel groups share it, less 1."""
    if not npu.sequencer.tuple_parts:
        return []
    ring = bits_for(npu.sequencer.tuple_words - 1)
    groups = bits_for(npu.sequencer.groups - 1)
    return [("part_words_minus_1", ring), ("part_step", ring), ("part_groups_minus_1", groups)]
