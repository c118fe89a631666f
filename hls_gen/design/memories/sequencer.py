"""Memories of the sequencer: what it reads of each layer, and its tables of taps."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS, bits_for

from .memory import FieldWidths, Rows

TAP_FLAGS: FieldWidths = [("last", 1), ("new", 1), ("skip", 1)]
"""Row of a tap in a sequencer's table: last of its window; reads a tuple that arrives; only lets one come by. With a
table ``aheads`` the third one says that the tap claims what the table's next row has, beside its own tuple."""


def sequencer_memories(npu: Npu) -> dict[str, Rows]:
    """Memories of the array's sequencer."""
    sequencer = npu.sequencer
    layers = npu.loader.layers
    memories = {
        "inputs": Rows(layers, _input_fields(npu), read_at_once=True),
        "layers": Rows(layers, _layer_fields(npu), read_at_once=True),
        "flags": Rows(sequencer.taps, [*TAP_FLAGS, ("jump", 1)]),
        "olds": Rows(sequencer.olds, [("word", bits_for(sequencer.tuple_words - 1))]),
        "jumps": Rows(sequencer.jumps, [("row", npu.array.row_bits)]),
    }
    if sequencer.aheads:
        memories["aheads"] = Rows(sequencer.aheads, [("words", bits_for(sequencer.input_words))])
    return memories


def reading_fields(npu: Npu, index: int, ring: int, taps: int, olds: int, one_by_one: bool) -> FieldWidths:
    """Fields that both sequencers, the array's and the pool unit's, have of a layer.

    Parameters
    ----------
    npu
        The NPU.
    index
        Width of a word's number in its tuple.
    ring
        Width of a word's address in the tuple memory.
    taps, olds
        Rows of the sequencer's tables.
    one_by_one
        Whether tuples are claimed one at a time, so that tuples are counted; else words are counted.
    """
    return [
        ("words_minus_1", index),
        *([("hold_tuples", ring + 1)] if one_by_one else []),
        ("hold_words", ring + 1),
        ("direct", 1),
        ("window_taps_minus_1", bits_for(npu.sequencer.window_taps - 1)),
        ("windows_minus_1", bits_for(npu.sequencer.windows - 1)),
        ("flags_base", bits_for(taps - 1)),
        ("old_base", bits_for(olds - 1)),
    ]


def counter_fields(ring: int) -> FieldWidths:
    """Fields of a layer that counters run by (hls_gen/rtl/sequencer/raster.py); ``ring`` as in `reading_fields`."""
    fields: FieldWidths = [("by_counters", 1), ("x_room_end", SIDE_BITS)]
    for axis in "xy":
        fields += [(f"{axis}_{what}", PLACE_BITS) for what in ("kernel_minus_1", "stride", "lead", "fresh")]
        fields += [(f"{axis}_room", SIDE_BITS), (f"{axis}_step", ring), (f"{axis}_cross", ring)]
    return [*fields, ("line_words", ring), ("gap_words", ring + 1)]


def kernel_moves(row: int) -> FieldWidths:
    """Moves in kernel rows, whose addresses have ``row`` bits, for layers by counters."""
    return [(name, row) for name in ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")]


def _input_fields(npu: Npu) -> FieldWidths:
    """A layer to the side that writes the tuple memory: words of its map, and the inlet by which they come; of two maps
    side by side words of both, the inlet of the first, and how many words of a tuple are of each."""
    part = bits_for(npu.joined_words - 1) if npu.joined_words else 0
    return [
        ("words", bits_for(npu.sequencer.input_words)),
        *([("source", npu.source_bits)] if npu.source_bits else []),
        *([("joins", 1), ("first_words_minus_1", part), ("second_words_minus_1", part)] if part else []),
    ]


def _layer_fields(npu: Npu) -> FieldWidths:
    """A layer to the array's sequencer."""
    sequencer = npu.sequencer
    ring = bits_for(sequencer.tuple_words - 1)
    row = npu.array.row_bits
    binary = npu.engine == "binary"
    fields = [
        *reading_fields(npu, ring, ring, sequencer.taps, sequencer.olds, sequencer.claims_one_by_one),
        ("jump_base", bits_for(sequencer.jumps - 1)),
        *([("ahead_base", bits_for(sequencer.aheads - 1))] if sequencer.aheads else []),
        *((name, row) for name in ("start_row", "kernel_base", "group_rows")),
        ("groups_minus_1", bits_for(sequencer.groups - 1)),
        *_part_fields(npu),
        *([("tap_offset", npu.array.acc_bits)] if binary else []),
    ]
    if npu.array.accumulators > 1:
        fields += [("inner_groups_minus_1", npu.array.slot_bits), ("tap_rows_minus_1", row)]
    if npu.loader.stream_weights:
        fields.append(("kernel_stream", 1))
    if sequencer.raster:
        fields += [*counter_fields(ring), *([("twice", 1)] if binary else []), *kernel_moves(row)]
    return fields


def _part_fields(npu: Npu) -> FieldWidths:
    """Which words of each tuple the kernel groups of a layer read, in NPUs with capacity ``tuple_parts``
    (hls_gen/rtl/sequencer/tuple_parts.py): words that a kernel group reads of each tuple, less 1; words from the first
    one of some kernel groups to that of the next ones; how many kernel groups share it, less 1."""
    if not npu.sequencer.tuple_parts:
        return []
    ring = bits_for(npu.sequencer.tuple_words - 1)
    groups = bits_for(npu.sequencer.groups - 1)
    return [("part_words_minus_1", ring), ("part_step", ring), ("part_groups_minus_1", groups)]
