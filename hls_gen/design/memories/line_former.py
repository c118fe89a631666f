"""Memories of a line former: what it knows of each layer, and the words that it holds
(hls_gen/rtl/sequencer/line_former.py).

A field says once its name, its width and its value of what is formed: rows (hls_gen/compiler/rows/line_former.py) and
area (overlay/area_model/line_former.py) follow. The area of words that are held follows, too.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.npu import NpuSequencer
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS, bits_for

from .memory import Rows


class LineField(NamedTuple):
    """A field of a layer's row."""

    name: str
    width: int
    value: Callable[[FormedLines], int]
    """Of what is formed of the layer's map."""
    begins: bool = False
    """Whether the field is looked at only as the layer begins, so that no register holds it."""


def line_counts(sequencer: NpuSequencer) -> list[LineField]:
    """The fields that counters run by: words of a position, lines of the map that come, steps and positions of a line,
    each less 1; steps before the one with which a line's first window is complete; columns from one window to the next,
    less 1; and where lines are kept, lines before the first one that completes windows, and lines from one window to
    the next, less 1."""
    kept = [
        LineField("first_line", PLACE_BITS, lambda formed: formed.first_line, begins=True),
        LineField("line_stride_minus_1", PLACE_BITS, lambda formed: formed.line_stride - 1),
    ]
    lines = bits_for(sequencer.npu.sequencer.input_words - 1)
    return [
        LineField("words_minus_1", sequencer.position_bits, lambda formed: formed.words - 1),
        LineField("lines_minus_1", lines, lambda formed: formed.lines - 1, begins=True),
        LineField("steps_minus_1", SIDE_BITS, lambda formed: formed.positions_through - 1),
        LineField("positions_minus_1", SIDE_BITS, lambda formed: formed.positions - 1),
        LineField("first", PLACE_BITS, lambda formed: formed.first),
        LineField("stride_minus_1", PLACE_BITS, lambda formed: formed.stride - 1),
        *(kept if sequencer.beat.most_rows > 1 else []),
    ]


def line_fields(sequencer: NpuSequencer) -> list[LineField]:
    """All fields: counts; which of the positions before the one at hand are taps, the latest lowest, and of the lines
    before its own; whether lines share lanes; in front of a pool unit of integers what values beside the map are
    (`Beside`); in front of the array whether words come whole, from the host."""
    before = [
        LineField(name, count - 1, partial(_all_but_last, axis))
        for axis, (name, count) in enumerate(
            [("lines_before", sequencer.beat.most_rows), ("taps_before", sequencer.beat.columns)]
        )
        if count > 1
    ]
    shares = LineField("shares_lanes", 1, lambda formed: int(sequencer.beat.shares_lanes(formed.window)))
    return [
        *line_counts(sequencer),
        *before,
        *([shares] if sequencer.beat.lane_lines > 1 else []),
        *(LineField(flag, 1, partial(_has_flag, flag)) for flag in sequencer.line_flags),
    ]


def _all_but_last(axis: int, formed: FormedLines) -> int:
    """A bit for each row, or column, of the taps, but for the last one."""
    return (1 << formed.window.kernel[axis] - 1) - 1


def _has_flag(flag: str, formed: FormedLines) -> int:
    """Whether a flag is 1."""
    return int(flag in formed.flags)


def held_words(sequencer: NpuSequencer) -> dict[str, tuple[int, int]]:
    """The RAMs of words that a line former holds: bits of a row, and rows, by name. "words_before": a row for each word
    of a position, with that word of all positions before the one at hand of which a tap may be, and of the lines before
    theirs. "lines_before": a row for each word of a line, with that word of all lines before the one at hand of which a
    tap may be, or of lines that share lanes with the part of it that has values."""
    rows, columns, shares = sequencer.beat
    sizes = {
        "words_before": ((columns - 1) * rows * sequencer.map_bits, 1 << sequencer.position_bits),
        "lines_before": ((rows * shares - 1) * sequencer.map_bits // shares, sequencer.line_words),
    }
    return {name: size for name, size in sizes.items() if size[0]}


def line_former_memories(sequencer: NpuSequencer) -> dict[str, Rows]:
    """A row for each layer to the line former of a sequencer that has one."""
    if not sequencer.forms_lines:
        return {}
    widths = [(field.name, field.width) for field in line_fields(sequencer)]
    return {f"{sequencer.prefix}lines": Rows(sequencer.npu.loader.layers, widths, read_at_once=True)}
