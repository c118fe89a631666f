"""Parts of tuples: which words of each tuple the kernel groups of a layer read, in NPUs with capacity ``tuple_parts``
(hls_gen/rtl/sequencer/tuple_parts.py, hls_gen/compiler/tuple_parts.py)."""

from typing import TYPE_CHECKING

from .widths import bits_for

if TYPE_CHECKING:
    from .npu import Npu


def part_fields(npu: "Npu") -> list[tuple[str, int]]:
    """Fields of a layer's row, low bits first: words that a kernel group reads of each tuple, less 1; words from the
    first one of some kernel groups to that of the next ones; how many kernel groups share it, less 1."""
    ring = bits_for(npu.sequencer.tuple_words - 1)
    fields = [
        ("part_words_minus_1", ring),
        ("part_step", ring),
        ("part_groups_minus_1", bits_for(npu.sequencer.groups - 1)),
    ]
    return fields if npu.sequencer.tuple_parts else []
