"""Area of a line former, in front of the array's sequencer or of the pool unit's."""

from collections.abc import Iterator

from bitloom.hls_gen.design.memories.line_former import held_words, line_counts
from bitloom.hls_gen.design.npu import NpuSequencer

from .area_block import AreaBlock
from .store import Store


def line_former_blocks(sequencer: NpuSequencer, n: int) -> Iterator[AreaBlock]:
    """The line former of a sequencer that has one, by rule: a LUT for each bit of a tap, which may lie beside the map,
    or come whole, one for each bit of a line whose lanes may be shared, and counters."""
    if sequencer.forms_lines:
        counted = sum(field.width for field in line_counts(sequencer))
        shared = sequencer.map_bits * sequencer.beat.rows * (sequencer.beat.lane_lines > 1)
        lut = sequencer.word_bits + shared + 3 * counted
        yield AreaBlock("line_former", sequencer.prefix + "line_former", {}, n, lut=lut, ff=2 * counted)


def line_former_stores(sequencer: NpuSequencer) -> Iterator[Store]:
    """The words that the line former of a sequencer holds; none without one."""
    if sequencer.forms_lines:
        yield from (Store(name, *size, 0) for name, size in held_words(sequencer).items())
