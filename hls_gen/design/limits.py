"""Limits of designs: what NPUs ask of those who generate, compile or simulate them is held to bitloom.golden.limits
before work begins."""

from collections.abc import Sequence

from bitloom.golden.limits import LANES, MEMORY_BITS, WIDTH
from bitloom.hls_gen.design.memories.memory_map import memory_map

from .npu import Npu

SIDE_BY_SIDE = ("kfp", "kgp", "pfp")
"""Parts of a folding of which each is so many copies of something in the Verilog."""


def check_parallel(name: str, foldings: Sequence[Npu]) -> None:
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
        for key, value in folding.values(*SIDE_BY_SIDE).items():
            WIDTH.check(f"{name}: {key}", value)
        LANES.check(f"{name}: collect", folding.value("collect"))
    LANES.check(f"{name}: arrays", sum(folding.array.kfp * folding.array.kgp for folding in foldings))


def may_be_built(npus: Sequence[Npu]) -> bool:
    """Whether NPUs are no more parallel than `check_parallel` allows."""
    try:
        check_parallel("design", npus)
    except ValueError:
        return False
    return True


def check_memories(name: str, npus: Sequence[Npu]) -> None:
    """Refuse NPUs whose memories have more than ``MEMORY_BITS`` bits together.

    Parameters
    ----------
    name
        Whose they are; the message begins with it.
    npus
        All NPUs.

    Raises
    ------
    ValueError
        With both numbers.
    """
    bits = sum(memory.depth * memory.width for npu in npus for memory in memory_map(npu))
    buffers = sum(
        npu.array.word_bits * npu.sequencer.tuple_words
        + npu.array.map_bits * (npu.stores.map_words + 2 * npu.ports.buffer_words)
        for npu in npus
    )
    MEMORY_BITS.check(f"{name}: memories", bits + buffers)
