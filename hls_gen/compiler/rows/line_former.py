"""Rows of the line formers, the array's and the pool unit's (hls_gen/rtl/sequencer/line_former.py)."""

from bitloom.hls_gen.compiler.sequencer_taps import OnSequencer
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.memories.line_former import line_fields
from bitloom.hls_gen.design.npu import NpuSequencer

from .layer_rows import Columns, row


def line_former_rows(on: OnSequencer) -> dict[str, Columns]:
    """The row of the line former in front of a sequencer for a map, by the name of its memory; none where there is no
    line former."""
    return {f"{on.sequencer.prefix}lines": row(line_values(on.lines, on.sequencer))} if on.lines else {}


def line_values(lines: FormedLines, sequencer: NpuSequencer) -> dict[str, int]:
    """Values of a layer's row in the memory of the line former in front of a sequencer, by the fields' names."""
    return {field.name: field.value(lines) for field in line_fields(sequencer)}
