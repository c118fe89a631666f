"""Ramps: functions of one number that are two straight lines and their ends, as sums of requantisations.

A requantisation is one line a channel, and one clip for all channels. Where a channel bends, or ends at values of its
own, it is a sum of ramps: numbers that are 0 up to some place, and rise on one line from there on.

    y = base + ramp_1 - ramp_2           |              ______   end of the channel: a third ramp, taken off
                                         |             /
    ramp = max(round(line(x)), 0)        |  ----.__   /          ramp_1, of x
      or   max(round(line(-x)), 0)       |         ''+--------   base, and ramp_2, of -x

The first ramps are outputs of the weights themselves, of which each channel then has several; a convolution of 1 x 1
adds them up. So the integer engine has what bends without a unit of its own, exactly: steps of ramps are fitted as
those of any requantisation (requantise_fit.py).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from bitloom.golden.encoding import Array, Encoding

from .boundaries import Staircase
from .errors import Unsupported
from .requantise_fit import Fitted, fit

MOST_RAMP = 255
"""A ramp's highest value: it is a feature without a sign."""
MOST_RAMPS = 4
"""Ramps that any channel has at most: two, and one for each end of its own."""
SHARES = (0.5, 0.75, 0.9, 0.97)
"""Where between the least and the largest distance of a line's steps lines are tried."""
BEYOND = 1 << 62
"""Further than any sum of an engine."""
MOST_DENOMINATOR = 1 << 16
"""Of such a distance."""


@dataclass(frozen=True)
class Stepped:
    """A function of the whole numbers from ``low`` to ``high``, by the places where it rises or falls by 1."""

    low: int
    high: int
    first: int
    """Its value at ``low``."""
    places: tuple[int, ...]
    """The first number behind each step, rising; a place comes several times where a step is higher than 1."""
    signs: tuple[int, ...]
    """Of each step, 1 where it rises and -1 where it falls."""

    @classmethod
    def of_values(cls, low: int, values: Sequence[int]) -> "Stepped":
        """The function that has these values at ``low``, ``low`` + 1 and so on."""
        rises = np.diff(values)
        places = np.repeat(np.arange(low + 1, low + len(values)), np.abs(rises))
        signs = np.repeat(np.sign(rises), np.abs(rises))
        return cls(low, low + len(values) - 1, int(values[0]), tuple(places.tolist()), tuple(signs.tolist()))

    @classmethod
    def of_stairs(cls, stair: Staircase, low: int, high: int) -> "Stepped":
        """A staircase that rises."""
        first = int(stair.level(np.array(low)))
        places = tuple(limit for _, limit in stair.steps if low < limit <= high)
        return cls(low, high, first, places, (1,) * len(places))

    @property
    def values(self) -> Array:
        """Its values from the first one on, one behind each step."""
        return self.first + np.cumsum((0, *self.signs))

    @property
    def ends(self) -> tuple[int, int]:
        """Its lowest and its highest value."""
        return int(self.values.min()), int(self.values.max())


@dataclass(frozen=True)
class Ramp:
    """A number that is 0 and then rises."""

    reads: int
    """1 where it rises with x, -1 where it rises with -x."""
    sign: int
    """1 where it is added, -1 where it is taken off."""
    limits: tuple[int, ...]
    """From which ``reads * x`` on it has each value from 1 on; the last ones may lie beyond all x."""
    slope: Fraction
    """By how much it rises with x, about."""
    top: int
    """Its highest value."""

    @property
    def stair(self) -> Staircase:
        """The ramp as levels."""
        return Staircase(self.limits, True)


@dataclass(frozen=True)
class RampSum:
    """A function as a sum of ramps; behind it values are cut to ends."""

    base: int
    ramps: tuple[Ramp, ...]


NOTHING = Ramp(0, 0, (), Fraction(1), 0)
"""A ramp of no steps, for channels that have fewer than others."""


@dataclass(frozen=True)
class Ramps:
    """The functions of a map's channels as sums of ramps, as many in each channel."""

    sums: tuple[RampSum, ...]
    ends: tuple[int, int]
    """The lowest and the highest value of any channel."""
    cut_behind: bool
    """Whether what follows must cut each channel to its function's own ends."""

    @classmethod
    def of(cls, functions: Sequence[Stepped], sums: Encoding, *, most: int | None = None) -> tuple["Ramps", Fitted]:
        """The ramps of functions, and the factors of a requantisation that has them, as exactly as can be.

        Parameters
        ----------
        functions : sequence of Stepped
        sums : Encoding
            Of what the requantisation reads.
        most : int, optional
            Where a channel would have more ramps than this, or one that is too high, each function is cut behind the
            sum. By default none is.

        Raises
        ------
        Unsupported
            If one isn't two straight lines and their ends.
        """
        try:
            ramps = cls._with_fit(functions, sums, cut_behind=False)
        except Unsupported:
            if most is None:
                raise
        else:
            if most is None or ramps[0].count <= most:
                return ramps
        return cls._with_fit(functions, sums, cut_behind=True)

    @classmethod
    def _with_fit(cls, functions: Sequence[Stepped], sums: Encoding, *, cut_behind: bool) -> tuple["Ramps", Fitted]:
        """The ramps that need to be cut behind the sum, or those that don't."""
        ends = min(each.ends[0] for each in functions), max(each.ends[1] for each in functions)
        cut = [each.ends if cut_behind else ends for each in functions]
        reasons = list[Unsupported]()
        tried = list[tuple[Ramps, Fitted]]()
        for parity in (None, 0, 1):
            try:
                ramps = cls(tuple(_ramp_sum(each, at, parity) for each, at in zip(functions, cut)), ends, cut_behind)
                flat = ramps.flat
                fitted = fit([ramp.stair for ramp in flat], [ramp.slope for ramp in flat], 0, sums)
            except Unsupported as e:
                reasons.append(e)
            else:
                tried.append((ramps, fitted))
                if not fitted.wrong:
                    break
        if not tried:
            raise reasons[0]
        return min(tried, key=lambda each: each[1].wrong)

    def off(self, functions: Sequence[Stepped], fitted: Fitted) -> tuple[int, int]:
        """How many numbers of all channels get another value with these factors, and how far it is off at most: of
        every number, as between two steps of ramps and of functions nothing changes."""
        count = most = 0
        for channel, function in enumerate(functions):
            numbers = range(channel * self.count, (channel + 1) * self.count)
            if all(fitted.factors[number].exact for number in numbers):
                continue
            parts = [(self.flat[number], self._firsts(number, fitted)) for number in numbers]
            # Where a ramp of -x has a step, it is one higher than right of it.
            steps = [firsts if ramp.reads > 0 else 1 - firsts for ramp, firsts in parts]
            places = np.unique(np.clip([function.low, *function.places, *np.concatenate(steps)], function.low, None))
            places = places[places <= function.high]
            total = np.full(len(places), self.sums[channel].base)
            for ramp, firsts in parts:
                total += ramp.sign * np.searchsorted(firsts, ramp.reads * places, side="right")
            ends = function.ends if self.cut_behind else self.ends
            wanted = function.values[np.searchsorted(function.places, places, side="right")]
            far = np.abs(np.clip(total, *ends) - wanted)
            count += int((np.diff([*places, function.high + 1]) * (far > 0)).sum())
            most = max(most, int(far.max()))
        return count, most

    def _firsts(self, number: int, fitted: Fitted) -> Array:
        """From which number on a requantisation with these factors has each value from 1 on, for a ramp of `flat`."""
        highest = (1 << self.top.bit_length()) - 1 if self.flat[number].reads else 0
        firsts = [fitted.first_sum(number, level) for level in range(1, highest + 1)]
        return np.array([min(max(first, -BEYOND), BEYOND) for first in firsts], np.int64)

    @property
    def count(self) -> int:
        """How many ramps a channel has."""
        return max(1, max(len(each.ramps) for each in self.sums))

    @property
    def flat(self) -> list[Ramp]:
        """All ramps, a channel's side by side."""
        return [ramp for each in self.sums for ramp in (*each.ramps, *[NOTHING] * (self.count - len(each.ramps)))]

    @property
    def reads(self) -> Array:
        """(channels * count,) int64: 1 and -1 of ramps that rise with x and with -x, else 0."""
        return np.array([ramp.reads for ramp in self.flat], np.int64)

    @property
    def signs(self) -> Array:
        """(channels, count) int64: 1 and -1 of ramps that are added and taken off, else 0."""
        return np.array([ramp.sign for ramp in self.flat], np.int64).reshape(-1, self.count)

    @property
    def bases(self) -> Array:
        """(channels,) int64: what is added to the ramps."""
        return np.array([each.base for each in self.sums], np.int64)

    @property
    def top(self) -> int:
        """The highest value of any ramp, at least 1."""
        return max(1, max(ramp.top for ramp in self.flat))


@lru_cache(maxsize=4096)
def _ramp_sum(function: Stepped, ends: tuple[int, int], parity: int | None) -> RampSum:
    """The ramps of a function, whose values are then cut to some ends.

    Where halves are rounded to the even value, a ramp has the function's halves if its base is even as the file counts:
    ``parity`` is that of the bases, or None where no two numbers lie halfway.
    """
    places = np.array(function.places, np.int64)
    signs = np.array(function.signs, np.int64)
    count = len(places)
    mirrored = 1 - places[::-1]  # the steps from the right to the left, as -x rises
    # A part of a straight run of steps is straight, too: so the ends of both runs are found by bisection.
    right = count - _on_one_line(mirrored, signs[::-1], parity)
    left = _on_one_line(places, signs, parity)
    knees = [k for k in range(right, left + 1) if parity is None or function.values[k] % 2 == parity]
    if not knees:
        raise Unsupported("each channel must be two straight lines and their ends at most in front of a quantiser")
    # Lines have most room where both runs of steps go on; but one ramp is enough for what is one line.
    middle = min(knees, key=lambda k: abs(k - (right + left) / 2))
    sums = []
    for knee in (middle, *{0, count}.intersection(knees)):
        base = int(function.values[knee])
        ramps = [
            *_ramps(1, places[knee:], signs[knee:], function.high, base, ends, parity),
            *_ramps(-1, mirrored[count - knee :], -signs[:knee][::-1], -function.low, base, ends, parity),
        ]
        if all(ramp.top <= MOST_RAMP for ramp in ramps):
            sums.append(RampSum(base, tuple(ramps)))
    if not sums:
        raise Unsupported(f"a line in front of a quantiser must rise by at most {MOST_RAMP} levels")
    return min(sums, key=lambda each: len(each.ramps))


def _ramps(
    reads: int, limits: Array, signs: Array, end: int, base: int, ends: tuple[int, int], parity: int | None
) -> list[Ramp]:
    """The ramps of steps that lie on one line, up to the largest number ``end``: a second one takes off what the line
    rises behind the last step, unless the ends behind the sum cut that."""
    if not len(limits):
        return []
    sign = int(signs[0])
    steps = len(limits)
    is_cut = base + sign * steps == ends[sign > 0]
    line, slope = _line(limits, end, parity)
    top = sum(limit <= end for limit in line)
    if is_cut or top == steps:
        return [Ramp(reads, sign, line[: steps + 1], slope, steps)]
    return [Ramp(reads, sign, line, slope, top), Ramp(reads, -sign, line[steps:], slope, top - steps)]


def _line(limits: Array, end: int, parity: int | None) -> tuple[tuple[int, ...], Fraction]:
    """Steps on one line, and those that follow on it up to the first one behind ``end``: there is no other, where a
    line allows that. And by how much the line rises with x."""
    least, most = _distances(limits)
    most = min(most, least + 2 * (end - int(limits[0]) + 2))
    lines = []
    for share in SHARES if least < most else (0,):
        gap = Fraction(least + (most - least) * share).limit_denominator(MOST_DENOMINATOR)
        begins = limits * gap.denominator - np.arange(1, len(limits) + 1) * gap.numerator  # times the denominator
        lowest, highest = (Fraction(int(end), gap.denominator) for end in (begins.max(), begins.min()))
        lowest -= 1  # what is added to gap * number lies above it, and is at most the highest
        for part in (Fraction(1, 2), Fraction(4, 5)):
            offset = lowest + (highest - lowest) * part
            lines.append((gap, offset))
            beyond = _step(gap, offset, len(limits) + 1, parity)
            if beyond > end:
                return (*limits.tolist(), beyond), 1 / gap
    gap, offset = lines[0]
    line = limits.tolist()
    while line[-1] <= end and len(line) <= MOST_RAMP:
        line.append(max(line[-1], _step(gap, offset, len(line) + 1, parity)))
    return tuple(line), 1 / gap


def _step(gap: Fraction, offset: Fraction, number: int, parity: int | None) -> int:
    """The first whole number behind the place where a line has a step; one that lies there belongs to the step, but
    where halves are rounded to the even value only to an even one."""
    place = gap * number + offset
    return ceil(place) + (parity is not None and number % 2 and place.denominator == 1)


def _on_one_line(limits: Array, signs: Array, parity: int | None) -> int:
    """How many steps, from the first one on, lie on one line and all rise or all fall."""

    def are_apart(count: int) -> bool:
        least, most = _distances(limits[:count])
        return least > most or (parity is None and least == most)

    alike = int(np.argmin(np.append(signs == signs[:1], False)))
    return bisect_left(range(1, alike + 1), True, key=are_apart)


def _distances(limits: Array) -> tuple[float, float]:
    """Between which numbers the distance of steps on one line lies, where steps i < j, each a number wide, allow
    (limit_j - limit_i - 1) / (j - i) to (limit_j - limit_i + 1) / (j - i)."""
    if len(limits) < 2:
        return 0.0, np.inf
    numbers = np.arange(len(limits))
    apart = numbers - numbers[:, None]
    rise = (limits - limits[:, None])[apart > 0]
    apart = apart[apart > 0]
    return max(0.0, float(((rise - 1) / apart).max())), float(((rise + 1) / apart).min())
