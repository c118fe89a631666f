"""Factors of a layer that makes one map of two, with the right result for every pair of values.

An `Add` layer makes of x and y the integer ``round((x * m_1 + y * m_2 + bias) / 2^shift)``, a `MultiplyMaps` layer
``round((x * y * m +- bias) / 2^shift)``. Given the factors and the shift, each pair allows the bias an interval, and
all of them together leave one, or none: then the shift grows. What differs from layer to layer, the layer itself says
(`Pairwise` of golden), and the operation that it computes (`Pair` of operations.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import lcm

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.add import MAX_ADD_SHIFT, Pairwise

from .boundaries import staircases
from .errors import Unsupported
from .held import Held
from .links import Line
from .sections import PairSection

SHIFTS = range(6, MAX_ADD_SHIFT + 1)
"""Shifts that are tried."""
AROUND = 3
"""Factors that are tried on both sides of the nearest ones."""
FEW = (200, 4000)
"""Pairs that are checked first."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The results of all pairs of two maps' values."""

    layer: Pairwise
    """The layer whose factors are wanted."""
    x: Array
    y: Array
    """x, y: (m, 1), (1, n) int64: values of the maps."""
    wanted: Array
    """(m, n) int64: results."""
    slopes: tuple[Fraction, ...]
    """Exact factors of the layer, of which its integers are to be found."""
    offset: Fraction
    """Rounding and clips aside, a result is the layer's total with the factors ``slopes``, + offset."""

    def results(self, factors: "PairFactors") -> Array:
        """The layer's results of all pairs: (m, n) int64."""
        arrays = factors.arrays
        totals = self.layer.totals([self.x, self.y], arrays)
        return np.clip(self.layer.divided(totals, arrays["shift"]), self.layer.low, self.layer.high)


def pairs_of(
    section: PairSection, held_sources: Sequence[Held], held: Held, name: str, inputs: tuple[str, str]
) -> Pairs:
    """The results of all pairs of integers, exactly, with the quantiser behind the operation.

    Parameters
    ----------
    section : PairSection
    held_sources : sequence of Held
        How both maps are held.
    held : Held
        How what the quantiser makes is held.
    name : str
    inputs : (str, str)
        name, inputs: of the layer.
    """
    levels = section.map
    join = section.join
    sources = [(reading.source, held_map) for reading, held_map in zip(section.reads, held_sources)]
    x, y = (held_map.zero + np.arange(source.levels + 1) for source, held_map in sources)
    steps = [source.step for source, _ in sources]
    factors = join.factors(*steps)
    if join.table is not None:
        first, second = (int(source.base) - join.table.first for source, _ in sources)  # a clip may cut the lowest
        level = join.table.values[first : first + len(x), second : second + len(y)] - int(levels.base)
        slopes = join.table.slopes
        offset = join.table.offset - levels.base
    else:
        level = _levels_of_pairs(section)
        slope, offset = section.line
        slopes = (slope,) * len(factors)
    if not join.needs_zero:  # else the integer 0 is worth 0
        x_zero, y_zero = (source.base - step * held_map.zero for step, (source, held_map) in zip(steps, sources))
        offset += sum(slope * zero for slope, zero in zip(slopes, join.factors(x_zero, y_zero)))
    slopes = tuple(slope * factor for slope, factor in zip(slopes, factors))
    low = 0
    high = levels.levels
    if any(not isinstance(operation.link, Line) for operation in section.between):
        low, high = int(level.min()), int(level.max())  # a bend may end before the quantiser does
    layer = join.layer(name=name, inputs=inputs, encoding=held.encoding, clip=held.clip(low, high))
    return Pairs(layer, x[:, None], y[None], held.zero + level, slopes, offset + held.zero)


def _levels_of_pairs(section: PairSection) -> Array:
    """The level of each pair of levels, exactly: the operation makes integers of integers, for which it is worked out
    where levels begin."""
    quantiser = section.quantiser
    assert quantiser is not None
    sources = [reading.source for reading in section.reads]
    unit = Fraction(1, lcm(*(number.denominator for source in sources for number in (source.base, source.step))))
    x, y = (np.array([int(value / unit) for value in source.values], object) for source in sources)
    totals = np.asarray(section.join.function(x[:, None], y))
    common = max(np.gcd.reduce(totals.ravel()), 1)
    totals = totals // common  # so that most fit 64 bits
    if max(abs(totals.min()), abs(totals.max())) < 1 << 62:
        totals = totals.astype(np.int64)
    chain = [operation.link.placed(np.ravel).of_channel(0) for operation in section.between]
    worth = unit**section.join.degree * common
    line = Line(multiply=np.array([worth], object), add=np.array([Fraction(0)], object))
    (stair,) = staircases(chain, quantiser.boundaries, line)
    return stair.level(totals)


@dataclass(frozen=True)
class PairFactors:
    """The integers by which a layer multiplies two maps, adds and shifts."""

    multipliers: tuple[int, ...]
    bias: int
    shift: int
    wrong: tuple[int, int] = (0, 0)
    """Pairs that get another result, and by how much at most."""

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays of the layer."""
        columns = {"multiplier": self.multipliers, "bias": (self.bias,), "shift": (self.shift,)}
        return {key: np.array(values, np.int64) for key, values in columns.items()}


def fit_pairs(pairs: Pairs) -> PairFactors:
    """Find factors, the smallest shift with which all pairs are right first.

    Returns
    -------
    PairFactors
        Where no factors have the right result for all pairs, those with the fewest wrong ones.

    Raises
    ------
    Unsupported
        If a result is more than one step off, or no factors fit their width.
    """
    ranges = pairs.layer.array_ranges
    screens = _screens(pairs)
    best: PairFactors | None = None
    for factors, shift in _candidates(pairs):
        low, high = ranges["bias"]
        for screen in screens:
            low, high = screen.bias(pairs, factors, shift, low, high)
            if low > high:
                break
        else:
            return PairFactors(factors, min(max(0, low), high), shift)
    for factors, shift in _candidates(pairs, around=0):
        bias = min(max(ranges["bias"][0], round(pairs.offset * (1 << shift))), ranges["bias"][1])
        candidate = PairFactors(factors, bias, shift)
        off = np.abs(pairs.results(candidate) - pairs.wanted)
        candidate = replace(candidate, wrong=(int((off > 0).sum()), int(off.max())))
        if best is None or candidate.wrong < best.wrong:
            best = candidate
    if best is None:
        least, most = ranges["multiplier"]
        rule = f"factors of {least:,}..{most:,} over 2^{SHIFTS[0]}..2^{SHIFTS[-1]} must be the scales' ratios"
        ratios = " and ".join(f"{float(slope):g}" for slope in pairs.slopes)
        raise Unsupported(f"{rule}, got {ratios}", "choose scales that are nearer to each other")
    if best.wrong[1] > 1:
        raise Unsupported(f"no pair of values may be more than one level off, got {best.wrong[1]} levels")
    return best


@dataclass(frozen=True, eq=False)
class _Screen:
    """Some pairs and their results."""

    x: Array
    y: Array
    wanted: Array
    """x, y, wanted: (count,) int64."""

    def bias(self, pairs: Pairs, factors: Sequence[int], shift: int, low: int, high: int) -> tuple[int, int]:
        """The smallest and the largest bias from ``low`` to ``high`` with which these pairs have their results."""
        layer = pairs.layer
        inputs = [self.x, self.y]
        products = layer.products(inputs, factors)
        begin = layer.first_total(self.wanted, shift) - products
        end = layer.first_total(self.wanted + 1, shift) - products
        negative = layer.bias_signs(inputs) < np.zeros(len(self.wanted), np.int64)
        starts = self.wanted > layer.low
        ends = self.wanted < layer.high
        above = begin[starts & ~negative].max(initial=low), (1 - end)[ends & negative].max(initial=low)
        below = (end - 1)[ends & ~negative].min(initial=high), (-begin)[starts & negative].min(initial=high)
        return int(max(above)), int(min(below))


def _screens(pairs: Pairs) -> list[_Screen]:
    """The pairs nearest to a half, a few and more, and at last all: most candidates fail at the first."""
    real = pairs.layer.products([pairs.x, pairs.y], [*map(float, pairs.slopes)]) + float(pairs.offset)
    apart = 0.5 - np.abs(real - np.rint(real))
    apart[(real < pairs.layer.low - 1) | (real > pairs.layer.high + 1)] = 1
    nearest = np.argsort(apart, axis=None)
    x, y = np.broadcast_arrays(pairs.x, pairs.y)
    out = []
    for count in (*FEW, nearest.size):
        places = np.unravel_index(nearest[:count], apart.shape)
        out.append(_Screen(x[places], y[places], pairs.wanted[places]))
    return out


def _candidates(pairs: Pairs, around: int = AROUND) -> Iterator[tuple[tuple[int, ...], int]]:
    """Factors and shifts to try, those nearest to the slopes first."""
    least, most = pairs.layer.array_ranges["multiplier"]
    steps = sorted(range(-around, around + 1), key=abs)
    moves = sorted(product(steps, repeat=len(pairs.slopes)), key=lambda move: max(map(abs, move)))
    for shift in SHIFTS:
        nearest = [round(slope * (1 << shift)) for slope in pairs.slopes]
        if max(map(abs, nearest)) + around > most:
            return
        for move in moves:
            factors = tuple(factor + step for factor, step in zip(nearest, move))
            if min(factors) >= least:
                yield factors, shift
