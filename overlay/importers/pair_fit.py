"""Factors of a sum or a product of two maps that has the right result for every pair of values.

An `Add` layer makes of x and y the integer ``round((x * m_1 + y * m_2 + bias) / 2^shift)``, a `MultiplyMaps` layer
``round((x * y * m +- bias) / 2^shift)``. Given the factors and the shift, each pair allows the bias an interval, and
all of them together leave one, or none: then the shift grows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import lcm

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.add import MAX_ADD_SHIFT, Pairwise
from bitloom.golden.layers.multiply import MultiplyMaps

from .boundaries import staircases
from .errors import Unsupported
from .held import Held
from .links import Line
from .operations import Product, Sum
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
    """One for each of ``terms``."""
    offset: Fraction
    """Rounding and clips aside, a result is the sum of the terms times their slopes, + offset."""

    @property
    def terms(self) -> list[Array]:
        """What factors are multiplied with: x and y of a sum, their product of a product; (m, n) int64."""
        if isinstance(self.layer, MultiplyMaps):
            return [self.x * self.y]
        return list(np.broadcast_arrays(self.x, self.y))

    def results(self, factors: "PairFactors") -> Array:
        """What the layer makes of all pairs: (m, n) int64."""
        arrays = factors.arrays
        totals = self.layer.totals([self.x, self.y], arrays)
        return np.clip(self.layer.divided(totals, arrays["shift"]), self.layer.low, self.layer.high)


def pairs_of(
    section: PairSection, held_sources: Sequence[Held], held: Held, name: str, inputs: tuple[str, str]
) -> Pairs:
    """The results of all pairs of integers, exactly, with the quantiser behind the sum or the product.

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
    sources = [(reading.source, held_map) for reading, held_map in zip(section.reads, held_sources)]
    x, y = (held_map.zero + np.arange(source.levels + 1) for source, held_map in sources)
    table = section.join.table if isinstance(section.join, Sum) else None
    if table is not None:
        first, second = (int(source.base) - table.first for source, _ in sources)  # a clip may have cut the lowest
        level = table.values[first : first + len(x), second : second + len(y)] - int(levels.base)
        slopes: tuple[Fraction, ...] = table.slopes
        offset = table.offset - levels.base
        worths = [(Fraction(1), source.base - held_map.zero) for source, held_map in sources]
    else:
        level = _levels_of_pairs(section)
        slope, offset = section.line
        slopes = slope, slope
        worths = [(source.step, source.base - source.step * held_map.zero) for source, held_map in sources]
    if isinstance(section.join, Product):  # 0 is worth 0
        slopes = (slopes[0] * worths[0][0] * worths[1][0],)
    else:
        offset += sum(slope * add for slope, (_, add) in zip(slopes, worths))
        slopes = slopes[0] * worths[0][0], slopes[1] * worths[1][0]
    low = 0
    high = levels.levels
    if any(not isinstance(operation.link, Line) for operation in section.between):
        low, high = int(level.min()), int(level.max())  # a bend may end before the quantiser does
    clip = held.zero + low, held.zero + high
    full = (held.encoding.low, held.encoding.high) == clip
    layer = section.join.layer(name=name, inputs=inputs, encoding=held.encoding, clip=None if full else clip)
    return Pairs(layer, x[:, None], y[None], held.zero + level, slopes, offset + held.zero)


def _levels_of_pairs(section: PairSection) -> Array:
    """The level of each pair of levels, exactly: sums or products of integers, for which it is worked out where levels
    begin."""
    quantiser = section.quantiser
    assert quantiser is not None
    first, second = (reading.source for reading in section.reads)
    if isinstance(section.join, Product):
        units = [source.step / (source.base / source.step).denominator for source in (first, second)]
        worth = units[0] * units[1]
    else:
        worth = Fraction(1, lcm(*(number.denominator for each in (first, second) for number in (each.base, each.step))))
        units = [worth, worth]
    x, y = (
        np.array([int(value / unit) for value in source.values], object) for source, unit in zip((first, second), units)
    )
    totals = section.join.run(x[:, None], y)
    if max(abs(totals.min()), abs(totals.max())) < 1 << 62:
        totals = totals.astype(np.int64)
    chain = [operation.link.placed(np.ravel).of_channel(0) for operation in section.between]
    line = Line(multiply=np.array([worth], object), add=np.array([Fraction(0)], object))
    (stair,) = staircases(chain, quantiser.boundaries, quantiser.reached, line)
    return stair.level(totals)


@dataclass(frozen=True)
class PairFactors:
    """What a layer multiplies by, adds and shifts."""

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

    terms: list[Array]
    wanted: Array
    """(count,) int64, and each of ``terms``."""

    def bias(self, pairs: Pairs, factors: Sequence[int], shift: int, low: int, high: int) -> tuple[int, int]:
        """The smallest and the largest bias from ``low`` to ``high`` with which these pairs have their results.

        A result is at least k from t = (2 k - 1) * 2^(shift - 1) on; of a sum with k <= 0, whose halves are rounded
        down, from the next t on. The bias of a product below 0 is taken off.
        """
        total = sum(factor * term for factor, term in zip(factors, self.terms))
        wanted = self.wanted
        begin = ((2 * wanted - 1) << shift - 1) - total
        end = ((2 * wanted + 1) << shift - 1) - total
        negative = np.zeros(len(wanted), bool)
        if isinstance(pairs.layer, MultiplyMaps):
            negative = self.terms[0] < 0
        else:
            begin = begin + (wanted <= 0)
            end = end + (wanted + 1 <= 0)
        starts = wanted > pairs.layer.low
        ends = wanted < pairs.layer.high
        above = begin[starts & ~negative].max(initial=low), (1 - end)[ends & negative].max(initial=low)
        below = (end - 1)[ends & ~negative].min(initial=high), (-begin)[starts & negative].min(initial=high)
        return int(max(above)), int(min(below))


def _screens(pairs: Pairs) -> list[_Screen]:
    """The pairs nearest to a half, a few and more, and at last all: most candidates fail at the first."""
    terms = pairs.terms
    real = sum(term * float(slope) for term, slope in zip(terms, pairs.slopes)) + float(pairs.offset)
    apart = 0.5 - np.abs(real - np.rint(real))
    apart[(real < pairs.layer.low - 1) | (real > pairs.layer.high + 1)] = 1
    nearest = np.argsort(apart, axis=None)
    out = []
    for count in (*FEW, nearest.size):
        places = np.unravel_index(nearest[:count], apart.shape)
        out.append(_Screen([term[places] for term in terms], pairs.wanted[places]))
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
