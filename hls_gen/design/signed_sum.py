"""Sums of integers with signs that differ from processing element to processing element: which lane is added where.

A pair of lanes x, y has one of two values but for its sign, x + y or x - y, and both are worked out once for all
processing elements (hls_gen/rtl/array/lane_pairs.py). An adder's LUT has six inputs: a bit of a sum, the pair's two
bits, the weights of its lanes, and the weight of the sum's first lane, or what these say of the pair. So a row of LUTs
adds two lanes.

    lane 0 + pair --> + pair --> register --> + pair, + accumulator      7 lanes: three rows, and the accumulator's

A sum has the sign of its first lane taken out, which the last row puts back. Two rows follow one another in a stage;
sums of several first lanes are added up in later stages, a row for each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count

from .widths import bits_for

ROWS = 2
"""Additions in a stage, one behind the other; in the last one the accumulator's is the second."""
MOST_LANES = 10
"""Lanes of a sum of one stage and the last one: two first lanes, two pairs for each, and an addition of both."""


@dataclass(frozen=True)
class Lanes:
    """One lane, or a pair of lanes."""

    lanes: tuple[int, ...]

    @property
    def first(self) -> int:
        """The lane whose sign is taken out."""
        return self.lanes[0]


@dataclass(frozen=True)
class SignedSum:
    """A sum that is worked out in a stage."""

    stage: int
    """Its stage, from 1 on."""
    base: "Lanes | SignedSum"
    """The first summand: one lane, or a sum of the stage before."""
    added: "tuple[Lanes | SignedSum, ...]"
    """The further summands: lanes, or sums of the stage before."""

    @property
    def first(self) -> int:
        """The lane whose sign is taken out."""
        return self.base.first

    @property
    def lanes(self) -> tuple[int, ...]:
        """All of its lanes."""
        return sum((part.lanes for part in self.added), self.base.lanes)


def signed_stages(lanes: int) -> int:
    """Register stages of the sum of so many lanes in front of the last one, >= 1; a further one adds up three times as
    many lanes."""
    stages = 1
    while MOST_LANES * (ROWS + 1) ** (stages - 1) < lanes:
        stages += 1
    return stages


@cache
def signed_sum(lanes: int) -> SignedSum:
    """The sum of so many lanes with as few rows as its stages allow.

    Parameters
    ----------
    lanes
        How many there are, >= 1.

    Returns
    -------
    SignedSum
        The sum of the last stage, which leaves room for the accumulator's row.
    """
    stages = signed_stages(lanes)
    return next(tree for firsts in count(1) if (tree := _tree(lanes, stages, firsts)) is not None)


def _tree(lanes: int, stages: int, firsts: int) -> SignedSum | None:
    """The sum with so many first lanes; None where they are too few."""
    pool = [Lanes(tuple(range(k, min(k + 2, lanes)))) for k in range(firsts, lanes, 2)]
    sums: list[SignedSum] = []
    for k in range(firsts):
        taken, pool = tuple(pool[:ROWS]), pool[ROWS:]
        sums.append(SignedSum(1, Lanes((k,)), taken))
    for stage in range(2, stages + 1):
        heads = sums[: 2 * (ROWS + 1) ** (stages - stage)]
        others: list[Lanes | SignedSum] = [*sums[len(heads) :], *pool]
        sums = [SignedSum(stage, head, tuple(others[k * ROWS : (k + 1) * ROWS])) for k, head in enumerate(heads)]
        left = others[len(heads) * ROWS :]
        pool = [part for part in left if isinstance(part, Lanes)]
        if len(pool) < len(left):
            return None
    last: list[Lanes | SignedSum] = [*sums[1:], *pool]
    return SignedSum(stages + 1, sums[0], tuple(last)) if len(last) < ROWS else None


def uses(tree: "Lanes | SignedSum") -> Iterator[tuple[int, Lanes]]:
    """The stage in which each lane and each pair enters a sum, and which they are, in the order of their first lanes
    within a sum."""
    if isinstance(tree, SignedSum):
        for part in (tree.base, *tree.added):
            if isinstance(part, Lanes):
                yield tree.stage, part
            yield from uses(part)


def operand_widths(planes: int, lanes: int) -> list[int]:
    """Width of each operand of a sum, in the order of `uses`: an integer, or sum and difference of two."""
    return [planes if len(part.lanes) == 1 else 2 * (planes + 1) for _, part in uses(signed_sum(lanes))]


def sum_bits(planes: int, lanes: int) -> int:
    """Width of the sum of so many integers of ``planes`` bits, the first one with sign +, in two's complement."""
    return planes + (bits_for(lanes - 1) if lanes > 1 else 0)


def row_bits(planes: int, tree: "Lanes | SignedSum") -> list[int]:
    """Width of each addition of a sum of integers of ``planes`` bits."""
    if isinstance(tree, Lanes):
        return []
    widths = [w for part in (tree.base, *tree.added) for w in row_bits(planes, part)]
    lanes = len(tree.base.lanes)
    for part in tree.added:
        lanes += len(part.lanes)
        widths.append(sum_bits(planes, lanes))
    return widths


def register_bits(planes: int, tree: SignedSum) -> list[int]:
    """Width of each register behind a sum of a stage, in front of the last one."""
    sums = [part for part in (tree.base, *tree.added) if isinstance(part, SignedSum)]
    return [w for part in sums for w in (*register_bits(planes, part), sum_bits(planes, len(part.lanes)))]
