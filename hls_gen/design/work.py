"""What a design asks of those who generate, compile or simulate it: estimated first, against bitloom.golden.limits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bitloom.golden.limits import LANES, MEMORY_BITS, WIDTH

from .folding import Folding

if TYPE_CHECKING:
    from .design import Design

SIDE_BY_SIDE = ("kfp", "kgp", "pfp")
"""Parts of a folding of which each is so many copies of something in the Verilog."""


def check_parallel(name: str, foldings: Sequence[Folding]) -> None:
    """Refuse NPUs that are too parallel.

    Parameters
    ----------
    name
        Whose they are; the message begins with it.
    foldings
        Of all NPUs.

    Raises
    ------
    ValueError
        More than ``WIDTH`` of something side by side, or more than ``LANES`` lanes in all.
    """
    for folding in foldings:
        for key in SIDE_BY_SIDE:
            WIDTH.check(f"{name}: {key}", getattr(folding, key))
        LANES.check(f"{name}: collect", folding.collect)
    LANES.check(f"{name}: arrays", sum(folding.kfp * folding.kgp for folding in foldings))


def check_memories(design: "Design") -> None:
    """Refuse a design whose memories have more than ``MEMORY_BITS`` bits: ValueError with both numbers."""
    bits = sum(memory.depth * memory.width for npu in design.npus for memory in npu.memories())
    buffers = sum(npu.word_bits * (npu.tuple_words + npu.map_words + 2 * npu.buffer_words) for npu in design.npus)
    MEMORY_BITS.check(f"{design.name}: memories", bits + buffers)
