"""Requantisation that equals a staircase for every sum: bias, multiplier and shift are searched until they do.

A `Requantise` layer makes of a sum x the level ``round((x * 2^f + bias) * m / 2^s)``, so level j begins where

    x >= (j - 1/2) * 2^e / m - bias / 2^f        with e = s - f

where halves are rounded to j (away from zero those of j > 0, to even those of even j), and x > that elsewhere. Given m
and e, each step of a staircase allows the bias an interval; all of them together leave one, in which there is a number
with f bits behind the point, or there is none and m gets more bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.layers.requantise import MAX_FRACTION, MAX_SHIFT, MULTIPLIER_BITS, SUM_BITS
from bitloom.golden.layers.rounding import PRODUCT_BITS

from .boundaries import Staircase
from .errors import Unsupported
from .rationals import first_integer

WIDTHS = (16, 24, 28, 30, 31)
"""Bits of multipliers that are tried."""
MOST_EXPONENT = MAX_SHIFT - MAX_FRACTION
"""e at most."""


@dataclass(frozen=True)
class Factors:
    """Bias, multiplier and shift of a channel, whose layer has a fraction of f bits."""

    bias: int
    multiplier: int
    shift: int
    """bias, multiplier, shift: the level of x is ``round((x * 2^f + bias) * multiplier / 2^shift)``, then clipped."""
    exact: bool
    """Whether it equals the staircase for every sum."""


@dataclass(frozen=True)
class _Search:
    """Multiplier and exponent of a channel, and the interval of its bias: ``least`` included, ``below`` excluded."""

    multiplier: int
    exponent: int
    least: Fraction
    below: Fraction

    def factors(self, fraction: int) -> Factors:
        """The factors with a bias of ``fraction`` bits behind the point: exact if there is one in the interval.

        Computed in integers: fractions would take a third of an import's time.
        """
        bias = -(-(self.least.numerator << fraction) // self.least.denominator)  # the least one
        exact = bias * self.below.denominator < self.below.numerator << fraction
        if not exact:
            unit = self._middle.denominator
            bias, rest = divmod(self._middle.numerator << fraction, unit)
            bias += (2 * rest, bias % 2) > (unit, 0)  # the nearest one, of two the even one
        return Factors(bias, self.multiplier, self.exponent + fraction, exact)

    @cached_property
    def _middle(self) -> Fraction:
        """Of the interval."""
        return (self.least + self.below) / 2


@dataclass(frozen=True)
class Fitted:
    """The factors of a layer."""

    factors: tuple[Factors, ...]
    """One a channel."""
    fraction: int
    """Bits of their biases behind the point."""
    half_even: bool
    """Whether halves are rounded to the even neighbour, not away from zero."""

    @property
    def wrong(self) -> int:
        """How many channels differ from their staircases."""
        return sum(not factors.exact for factors in self.factors)

    def first_sum(self, channel: int, level: int) -> int:
        """The first sum that a channel's factors take to a level or more. In integers alone, as it is asked often."""
        factors = self.factors[channel]
        top = (2 * level - 1 << factors.shift) - 2 * factors.bias * factors.multiplier
        bottom = 2 * factors.multiplier << self.fraction
        return first_integer(top, bottom, _reached(level, self.half_even))


def fit(stairs: Sequence[Staircase], slopes: Sequence[Fraction], low: int, sums: Encoding) -> Fitted:
    """Find the factors of a layer, which rounds halves away from zero unless more channels are exact with the even one.

    Parameters
    ----------
    stairs : sequence of Staircase
        Rising.
    slopes : sequence of Fraction
        Levels a unit of the sum, > 0, for each channel: about the distance of its steps, inverted.
    low : int
        The value of the level 0.
    sums : Encoding
        Of the sums.

    Returns
    -------
    Fitted
        As exact as can be; of those with the narrowest multipliers and the shortest fraction.

    Raises
    ------
    Unsupported
        If a scale fits no multiplier and shift.
    """
    best: Fitted | None = None
    channels = [_ChannelSteps(*each, low) for each in zip(stairs, slopes)]
    for whole in (False, True):
        for half_even in (False, True):
            tries = [_MultiplierTries(channel, sums, whole=whole, half_even=half_even) for channel in channels]
            fitted = _fit(tries, half_even)
            if fitted and not fitted.wrong:
                return fitted
            if fitted and (best is None or fitted.wrong < best.wrong):
                best = fitted
    if best is None:
        raise Unsupported("a scale must fit a multiplier and a shift", "scale the layer's weights")
    return best


class _ChannelSteps:
    """The steps of a channel, and slopes of lines through them."""

    def __init__(self, stair: Staircase, slope: Fraction, low: int):
        self.steps = [(low + level, limit) for level, limit in stair.steps]
        self.lowest = low + stair.lowest
        self.slope = slope

    @cached_property
    def middle_slope(self) -> Fraction | None:
        """As of `_middle_slope`."""
        return _middle_slope(self.steps)

    @cached_property
    def whole_slope(self) -> Fraction:
        """The slope with which a line with a whole bias passes through every step, as a kernel's does whose scale has
        more bits than a multiplier; ``slope`` where there is none."""
        if not self.steps:
            return self.slope
        middle = self.middle_slope or self.slope
        biases = [(level - Fraction(1, 2)) / middle - limit for level, limit in self.steps]  # each or up to 1 more
        return _slope_with(self.steps, round((min(biases) + max(biases) + 1) / 2), self.slope)


class _MultiplierTries:
    """The multipliers that are tried for a channel with one way to round halves, narrow ones first."""

    def __init__(self, channel: _ChannelSteps, sums: Encoding, *, whole: bool, half_even: bool):
        self._channel = channel
        self._slope = channel.whole_slope if whole else channel.slope
        self._sums = sums
        self._searches: list[_Search] = []
        self._chosen = dict[int, tuple[int, Factors | None]]()
        self._steps = _StepsByHalves(channel.steps, half_even=half_even)

    def widen(self, bits: int) -> None:
        """Try a multiplier of so many bits, too."""
        channel = self._channel
        if not channel.steps:  # one level: the caller gives such a channel weights of 0
            value = Fraction(channel.lowest)
            self._searches.append(_Search(1, 0, value, value + Fraction(1, 1 << MAX_FRACTION + 1)))
            return
        multiplier, exponent = _rounded(self._slope, bits)
        least, below = self._steps.bias_interval(multiplier, exponent)
        if least >= below:  # not with the slope of the file: with one that the steps themselves allow
            multiplier, exponent = _rounded(channel.middle_slope or self._slope, bits)
            least, below = self._steps.bias_interval(multiplier, exponent)
        self._searches.append(_Search(multiplier, exponent, least, below))

    def chosen(self, fraction: int) -> Factors | None:
        """The narrowest exact factors that a layer takes, else the widest ones; None if it takes none. The bias has
        ``fraction`` bits behind the point."""
        count, taken = self._chosen.get(fraction, (0, None))
        for search in self._searches[count:]:
            if taken and taken.exact:
                break
            factors = search.factors(fraction)
            taken = factors if fits(factors, fraction, self._sums) else taken
        self._chosen[fraction] = len(self._searches), taken
        return taken


class _StepsByHalves:
    """The steps of a channel, those apart at which halves are rounded to the level above."""

    def __init__(self, steps: Sequence[tuple[int, int]], *, half_even: bool):
        largest = max((abs(limit) for _, limit in steps), default=0)
        kind = np.int64 if largest < 1 << 29 else object  # a product with a multiplier of 31 bits has 62 at most
        little = Fraction(1, 1 << 1 + MULTIPLIER_BITS + MAX_FRACTION + 1)
        self._parts = list[tuple[Fraction, Array, Array]]()
        for hit in (True, False):
            part = [(2 * level - 1, limit) for level, limit in steps if _reached(level, half_even) == hit]
            if part:
                twice, limits = np.array(part, kind).T
                self._parts.append((Fraction(0) if hit else little, twice, limits))

    def bias_interval(self, multiplier: int, exponent: int) -> tuple[Fraction, Fraction]:
        """The numbers that bias / 2^f may be: from the first, and below the second.

        Level j of x begins at the place (j - 1/2) * 2^e / m - b. Where halves are rounded to j, limit - 1 < place <=
        limit; elsewhere the place itself doesn't belong to the level, and limit - 1 <= place < limit. An end that an
        interval leaves out, or takes in, is moved by less than the distance of a bias from any place that isn't its
        own.
        """
        # In units of 1 / (2 m), in which the beginnings are whole: fractions would take most of an import's time.
        unit = 2 * multiplier
        ends = list[tuple[Fraction, Fraction]]()
        for more, twice, limits in self._parts:
            rooms = (twice << exponent) - unit * limits
            least, most = int(rooms.max()), int(rooms.min())
            ends.append((Fraction(least, unit) + more, Fraction(most + unit, unit) + more))
        return max(least for least, _ in ends), min(below for _, below in ends)


def _fit(tries: Sequence[_MultiplierTries], half_even: bool) -> Fitted | None:
    """The factors of all channels; None where a scale fits no multiplier and shift."""
    best: Fitted | None = None
    for bits in WIDTHS:
        for of_channel in tries:
            of_channel.widen(bits)
        for fraction in range(MAX_FRACTION + 1):
            chosen = [of_channel.chosen(fraction) for of_channel in tries]
            known = [factors for factors in chosen if factors is not None]
            if len(known) < len(chosen):
                break
            fitted = Fitted(tuple(known), fraction, half_even)
            if not fitted.wrong:
                return fitted
            if best is None or fitted.wrong < best.wrong:
                best = fitted
    return best


def _middle_slope(steps: Sequence[tuple[int, int]]) -> Fraction | None:
    """The middle of the slopes of lines that pass through every step; None where there are none.

    A line that passes through steps i < j, each a sum wide, has a gap between (limit_j - limit_i - 1) / (j - i) and
    (limit_j - limit_i + 1) / (j - i).
    """
    if len(steps) < 2:
        return None
    places, limits = zip(*steps)
    inverse, others = _distances(places)
    rise = np.subtract.outer(*(np.array(limits, np.float64),) * 2).T
    least = float(((rise - 1) * inverse).max())
    most = float(((rise + 1) * inverse + others).min())
    return 1 / Fraction((least + most) / 2) if least + most > 0 and least < most else None


def _slope_with(steps: Sequence[tuple[int, int]], bias: int, slope: Fraction) -> Fraction:
    """The middle of the slopes with which a line with this bias passes through every step; ``slope`` where there are
    none. At a step's sum the line has half a level below the step or more, and less at the sum before."""
    least, most = [Fraction(0)], list[Fraction]()
    for level, limit in steps:
        for place, bounds in ((limit + bias, (least, most)), (limit + bias - 1, (most, least))):
            if place:
                bounds[place < 0].append(Fraction(2 * level - 1, 2 * place))
    return (max(least) + min(most)) / 2 if most and max(least) < min(most) else slope


@lru_cache(maxsize=8)
def _distances(places: tuple[int, ...]) -> tuple[Array, Array]:
    """1 / (j - i) for each pair of steps i < j, 0 for others; and 0 for such pairs, infinite for others."""
    apart = np.array(places)[None, :] - np.array(places)[:, None]
    after = apart > 0
    return np.where(after, 1 / np.where(after, apart, 1), 0.0), np.where(after, 0.0, np.inf)


def fits(factors: Factors, fraction: int, sums: Encoding) -> bool:
    """Whether a `Requantise` layer takes the factors."""
    largest = max(abs((end << fraction) + factors.bias) for end in (sums.low, sums.high))
    narrow = largest < 1 << SUM_BITS - 1 + fraction and largest * factors.multiplier < 1 << PRODUCT_BITS - 1
    return narrow and 0 <= factors.shift <= MAX_SHIFT


def _rounded(slope: Fraction, bits: int) -> tuple[int, int]:
    """(m, e) with m / 2^e nearest to the slope, m of ``bits`` bits at most; e may not be below 0. Of a slope that is
    too steep m is the largest one: each sum but a few is at an end with either."""
    length = slope.numerator.bit_length() - slope.denominator.bit_length()
    exponent = min(MOST_EXPONENT, max(bits - length + 1, 0))  # from there on the product has too many bits
    while slope * (1 << exponent) >= (1 << bits) - Fraction(1, 2) and exponent:
        exponent -= 1
    multiplier = min(max(1, round(slope * (1 << exponent))), (1 << bits) - 1)
    while exponent and multiplier % 2 == 0:
        multiplier = multiplier // 2
        exponent = exponent - 1
    return multiplier, exponent


def _reached(level: int, half_even: bool) -> bool:
    """Whether what lies halfway between a level and the one below it is rounded to the level."""
    return level % 2 == 0 if half_even else level > 0


def mismatch(stair: Staircase, number: int, fitted: Fitted, low: int, sums: tuple[int, int]) -> tuple[int, int]:
    """How far the factors of a channel are from its staircase.

    Parameters
    ----------
    stair : Staircase
    number : int
        The channel's.
    fitted : Fitted
        The layer's.
    low : int
        The value of the level 0.
    sums : (int, int)
        Smallest and largest sum.

    Returns
    -------
    tuple of int
        How many sums get another level, and by how many levels at most.
    """
    first = sums[0]
    behind = sums[1] + 1
    changes: list[tuple[int, int]] = []
    for level, limit in stair.steps:
        ends = sorted(min(max(x, first), behind) for x in (limit, fitted.first_sum(number, low + level)))
        changes += [(ends[0], 1), (ends[1], -1)]  # one more level is off from here, one less from there on
    count = most = off = 0
    for (here, change), (there, _) in zip(changes := sorted(changes), [*changes[1:], (behind, 0)]):
        off += change
        count = count + (there - here) * (off > 0)
        most = max(most, off * (there > here))
    return count, most


def arrays(factors_of_channels: Sequence[Factors]) -> dict[str, Array]:
    """The arrays of a `Requantise` layer."""
    keys = ("bias", "multiplier", "shift")
    return {key: np.array([getattr(factors, key) for factors in factors_of_channels], np.int64) for key in keys}
