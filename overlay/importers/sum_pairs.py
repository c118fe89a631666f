"""What a sum of two maps makes of every pair of their levels, exactly, with the quantiser behind it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import takewhile
from math import lcm

import numpy as np

from bitloom.golden.encoding import Array

from .boundaries import Ends
from .choose import Held
from .errors import Unsupported
from .joins import Sum
from .operations import Clip, Levels, Operation, Scaling
from .rationals import same
from .sections import Quantised
from .sum_fit import Pairs
from .ways import Way


def pairs_of(way: Way, sources: Sequence[tuple[Quantised, Held]], made: Quantised, held: Held) -> Pairs:
    """The results of all pairs of integers.

    Parameters
    ----------
    way : Way
        It begins with the sum.
    sources : sequence of (Quantised, Held)
        Both maps.
    made : Quantised
        What the sum's quantiser makes.
    held : Held
        How that is held.
    """
    join = way.join
    assert isinstance(join, Sum)
    x, y = (held_.zero + np.arange(source.levels + 1) for source, held_ in sources)
    if join.table is not None:
        slopes, offset = join.table.slopes, join.table.offset + held.zero - made.base
        first, second = (int(source.base) - join.table.first for source, _ in sources)  # a clip may have cut the lowest
        level = join.table.values[first : first + len(x), second : second + len(y)] - int(made.base)
        worths = [(Fraction(1), source.base - held_.zero) for source, held_ in sources]
    else:
        worths = [(source.step, source.base - source.step * held_.zero) for source, held_ in sources]
        level, slope, add = _levels_of_sums(way, [source for source, _ in sources])
        slopes, offset = (slope, slope), add + held.zero
    offset += sum(slope * add for slope, (_, add) in zip(slopes, worths))
    slopes = slopes[0] * worths[0][0], slopes[1] * worths[1][0]
    low, high = 0, made.levels
    if join.table is None and any(isinstance(operation, Clip) for operation in _up_to_levels(way)):
        low, high = int(level.min()), int(level.max())  # a clip may end before the quantiser does
    return Pairs(x, y, held.zero + level, slopes, offset, held.zero + low, held.zero + high)


def _up_to_levels(way: Way) -> Iterator[Operation]:
    """What lies between a sum and its quantiser."""
    return takewhile(lambda operation: not isinstance(operation, Levels), way.operations[1:])


def _levels_of_sums(way: Way, sources: Sequence[Quantised]) -> tuple[Array, Fraction, Fraction]:
    """(the level of each pair of levels, exactly; what levels rise by with the sum, and from where on, clips aside)."""
    values = [[source.base + source.step * level for level in range(source.levels + 1)] for source in sources]
    totals = np.array([[a + b for b in values[1]] for a in values[0]], object)
    slope, add = Fraction(1), Fraction(0)
    for operation in way.operations[1:]:
        if isinstance(operation, Levels):
            if len(operation.boundaries) > 1:
                raise Unsupported("a sum of two maps must be quantised alike in all channels")
            limits = operation.boundaries[0]
            level = _reached(totals, limits, operation.reached)
            gap = (limits[-1] - limits[0]) / (len(limits) - 1) if len(limits) > 1 else Fraction(1)
            return level, slope / gap, (add - limits[0]) / gap + Fraction(1, 2)
        if isinstance(operation, Scaling):
            multiply, more = same(operation.multiply.ravel()), same(operation.add.ravel())
            if multiply is None or more is None:
                raise Unsupported("between a sum and its quantiser channels must be scaled alike")
            totals, slope, add = totals * multiply + more, slope * multiply, add * multiply + more
        elif isinstance(operation, Clip):
            ends = Ends(low=operation.low, high=operation.high)
            totals = np.vectorize(ends.of, otypes=[object])(totals)
        else:
            raise Unsupported("between a sum and its quantiser only scales and clips may lie")
    raise Unsupported("a sum of two maps must be quantised", "quantise before the next layer")


def _reached(values: Array, limits: Array, reached: Array) -> Array:
    """How many of the rising limits each value has reached; all are integers here, in units of a common denominator."""
    unit = lcm(*{value.denominator for value in (*values.flat, *limits)})
    rising, whole = [int(limit * unit) for limit in limits], [int(value * unit) for value in values.flat]
    counts = []
    for value in whole:
        below, upto = bisect_left(rising, value), bisect_right(rising, value)
        counts.append(below + int(np.count_nonzero(reached[below:upto])))
    return np.array(counts, np.int64).reshape(values.shape)
