"""Factors of an addition of two maps that has the right result for every pair of values.

An `Add` layer makes of x and y the integer ``round((x * m_1 + y * m_2 + bias) / 2^shift)``. Given the factors and the
shift, each pair allows the bias an interval, and all of them together leave one, or none: then the shift grows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import level_of
from bitloom.golden.layers.add import FACTOR_BITS, OFFSET_BITS
from bitloom.golden.layers.requantise import rounded_shift

from .errors import Unsupported
from .held import Held
from .operations import Elementwise, Levels, Scaling
from .rationals import same
from .sections import Quantised, SumSection

SHIFTS = range(6, 33)
"""Shifts that are tried."""
AROUND = 3
"""Factors that are tried on both sides of the nearest ones."""
FEW = (200, 4000)
"""Pairs that are checked first."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The results of all pairs of two maps' values."""

    x: Array
    y: Array
    """x, y: (m,), (n,) int64: values of the maps."""
    wanted: Array
    """(m, n) int64: results."""
    slopes: tuple[Fraction, Fraction]
    """(Fraction, Fraction)."""
    offset: Fraction
    """Rounding and clips aside, a result is slopes[0] * x + slopes[1] * y + offset."""
    low: int
    high: int
    """low, high: what results are clipped to."""


def pairs_of(section: SumSection, held_sources: Sequence[Held], held: Held) -> Pairs:
    """The results of all pairs of integers, exactly, with the quantiser behind the sum.

    Parameters
    ----------
    section : SumSection
    held_sources : sequence of Held
        How both maps are held.
    held : Held
        How what the sum's quantiser makes is held.
    """
    levels = section.map
    table = section.sum.table
    sources = [(reading.source, held_map) for reading, held_map in zip(section.reads, held_sources)]
    x, y = (held_map.zero + np.arange(source.levels + 1) for source, held_map in sources)
    if table is not None:
        slopes = table.slopes
        offset = table.offset + held.zero - levels.base
        first, second = (int(source.base) - table.first for source, _ in sources)  # a clip may have cut the lowest
        level = table.values[first : first + len(x), second : second + len(y)] - int(levels.base)
        worths = [(Fraction(1), source.base - held_map.zero) for source, held_map in sources]
    else:
        worths = [(source.step, source.base - source.step * held_map.zero) for source, held_map in sources]
        level, slope, add = _levels_of_sums(section, [source for source, _ in sources])
        slopes = (slope, slope)
        offset = add + held.zero
    offset += sum(slope * add for slope, (_, add) in zip(slopes, worths))
    slopes = slopes[0] * worths[0][0], slopes[1] * worths[1][0]
    low = 0
    high = levels.levels
    if any(isinstance(operation, Elementwise) for operation in section.operations):
        low, high = int(level.min()), int(level.max())  # a bend may end before the quantiser does
    return Pairs(x, y, held.zero + level, slopes, offset, held.zero + low, held.zero + high)


def _levels_of_sums(section: SumSection, sources: Sequence[Quantised]) -> tuple[Array, Fraction, Fraction]:
    """(the level of each pair of levels, exactly; what levels rise by with the sum, and from where on, clips aside)."""
    totals = np.array([[a + b for b in sources[1].values] for a in sources[0].values], object)
    slope = Fraction(1)
    add = Fraction(0)
    *between, quantiser = section.operations[1:]  # scales and bends: else the sum was refused where it was cut
    assert isinstance(quantiser, Levels)
    for operation in between:
        if isinstance(operation, Scaling):
            multiply = same(operation.multiply.ravel())
            more = same(operation.add.ravel())
            if multiply is None or more is None:
                raise Unsupported("between a sum and its quantiser channels must be scaled alike")
            totals = totals * multiply + more
            slope = slope * multiply
            add = add * multiply + more
        else:
            assert isinstance(operation, Elementwise)
            totals = np.vectorize(operation.bend.of, otypes=[object])(totals)
    if len(quantiser.boundaries) > 1:
        raise Unsupported("a sum of two maps must be quantised alike in all channels")
    limits = quantiser.boundaries[0]
    gap = (limits[-1] - limits[0]) / (len(limits) - 1) if len(limits) > 1 else Fraction(1)
    level = _levels(totals, limits, quantiser.reached)
    return level, slope / gap, (add - limits[0]) / gap + Fraction(1, 2)


def _levels(values: Array, limits: Array, reached: Array) -> Array:
    """How many of the rising limits each fraction has reached, in integers of a common denominator: that is faster."""
    unit = lcm(*{value.denominator for value in (*values.flat, *limits)})
    whole, rising = (np.vectorize(lambda x: int(x * unit), otypes=[object])(x) for x in (values, limits))
    return level_of(whole, rising[None], reached)


@dataclass(frozen=True)
class SumFactors:
    """What an `Add` layer multiplies by, adds and shifts."""

    multipliers: tuple[int, int]
    bias: int
    shift: int
    wrong: tuple[int, int] = (0, 0)
    """Pairs that get another result, and by how much at most."""

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays of the layer."""
        columns = {"multiplier": self.multipliers, "bias": (self.bias,), "shift": (self.shift,)}
        return {key: np.array(values, np.int64) for key, values in columns.items()}

    def results(self, pairs: Pairs) -> Array:
        """What the layer makes of all pairs: (m, n) int64."""
        total = pairs.x[:, None] * self.multipliers[0] + pairs.y[None, :] * self.multipliers[1] + self.bias
        return np.clip(rounded_shift(total, np.array(self.shift)), pairs.low, pairs.high)


def fit_sum(pairs: Pairs) -> SumFactors:
    """Find factors, the smallest shift with which all pairs are right first.

    Returns
    -------
    SumFactors
        Where no factors have the right result for all pairs, those with the fewest wrong ones.

    Raises
    ------
    Unsupported
        If a result is more than one step off, or no factors fit their width.
    """
    screens = _screens(pairs)
    best: SumFactors | None = None
    for factors, shift in _candidates(pairs):
        low = 0
        high = 0
        for screen in screens:
            low, high = screen.bias(pairs, factors, shift)
            if low > high:
                break
        bias = min(max(0, low), high)
        if low <= high and abs(bias) < 1 << OFFSET_BITS - 1:
            return SumFactors(factors, bias, shift)
    for factors, shift in _candidates(pairs, around=0):
        candidate = SumFactors(factors, round(pairs.offset * (1 << shift)), shift)
        off = np.abs(candidate.results(pairs) - pairs.wanted)
        candidate = SumFactors(candidate.multipliers, candidate.bias, shift, (int((off > 0).sum()), int(off.max())))
        if best is None or candidate.wrong < best.wrong:
            best = candidate
    if best is None:
        raise Unsupported("the sum's factors must fit 25 bits", "choose scales that are nearer to each other")
    if best.wrong[1] > 1:
        raise Unsupported(f"no pair of values may be more than one level off, got {best.wrong[1]} levels")
    return best


@dataclass(frozen=True, eq=False)
class _Screen:
    """Some pairs and their results, each (count,) int64."""

    x: Array
    y: Array
    wanted: Array

    def bias(self, pairs: Pairs, factors: tuple[int, int], shift: int) -> tuple[int, int]:
        """The smallest and the largest bias with which these pairs have their results.

        A result is at least k from t = (2 k - 1) * 2^(shift - 1) on for k > 0; below, where halves are rounded down,
        from the next t on.
        """
        total = self.x * factors[0] + self.y * factors[1]
        wanted = self.wanted
        begin = ((2 * wanted - 1) << shift - 1) + (wanted <= 0)
        end = ((2 * wanted + 1) << shift - 1) + (wanted + 1 <= 0)
        above = (begin - total)[wanted > pairs.low]
        below = (end - 1 - total)[wanted < pairs.high]
        most = 1 << OFFSET_BITS
        return int(above.max(initial=-most)), int(below.min(initial=most))


def _screens(pairs: Pairs) -> list[_Screen]:
    """The pairs nearest to a half, a few and more, and at last all: most candidates fail at the first."""
    first, second = (float(slope) for slope in pairs.slopes)
    real = pairs.x[:, None] * first + pairs.y[None, :] * second + float(pairs.offset)
    apart = 0.5 - np.abs(real - np.rint(real))
    apart[(real < pairs.low - 1) | (real > pairs.high + 1)] = 1
    nearest = np.argsort(apart, axis=None)
    out = []
    for count in (*FEW, nearest.size):
        places = np.unravel_index(nearest[:count], apart.shape)
        out.append(_Screen(pairs.x[places[0]], pairs.y[places[1]], pairs.wanted[places]))
    return out


def _candidates(pairs: Pairs, around: int = AROUND) -> Iterator[tuple[tuple[int, int], int]]:
    """Factors and shifts to try, those nearest to the slopes first."""
    steps = sorted(range(-around, around + 1), key=abs)
    moves = sorted(((a, b) for a in steps for b in steps), key=lambda move: max(map(abs, move)))
    for shift in SHIFTS:
        first, second = (round(slope * (1 << shift)) for slope in pairs.slopes)
        if max(abs(first), abs(second)) + around >= 1 << FACTOR_BITS - 1:
            return
        yield from (((first + a, second + b), shift) for a, b in moves)
