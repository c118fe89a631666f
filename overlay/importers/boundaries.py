"""From real boundaries to integers: where on the scale of a channel's sums each level of a quantiser begins, exactly.

A quantiser's level is at least j where its input x >= t_j, or x > t_j. What lies between the sums and the quantiser,
affine steps and clips, never turns such a condition into anything but another one of its kind:

    x * a + b >= t   is   x >= (t - b) / a  for a > 0,   x <= (t - b) / a  for a < 0,   always or never for a = 0
    min(max(x, low), high) >= t   is   always for t <= low,  never for t > high,  else  x >= t

So each condition is pulled back, in fractions, to one on integers. Nothing is sampled and nothing is rounded: the
result holds for every sum that there is, ties included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np

from bitloom.golden.encoding import Array

from .rationals import bounded

MOST_SUM = 1 << 61
"""No sum is as large as this; larger limits are cut to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """x * multiply + add, for each channel.

    Attributes
    ----------
    multiply, add : (channels,) array of Fraction
    """

    multiply: Array
    add: Array

    def after(self, first: "Line") -> "Line":
        """This line behind another one, as one line."""
        multiply = first.multiply * self.multiply
        add = first.add * self.multiply + self.add
        return Line(multiply=bounded(multiply), add=bounded(add))


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The clip min(max(x, low), high); an end may be missing."""

    low: Fraction | None
    high: Fraction | None

    def of(self, x: Fraction) -> Fraction:
        """The clip of a number."""
        x = x if self.low is None else max(x, self.low)
        return x if self.high is None else min(x, self.high)

    def run(self, x: Array) -> Array:
        """The clip of float64 numbers."""
        if self.low is not None:
            x = np.maximum(x, float(self.low))
        return x if self.high is None else np.minimum(x, float(self.high))

    @property
    def bends(self) -> list[Fraction]:
        """The numbers at which it bends."""
        return [end for end in (self.low, self.high) if end is not None]


Bend = Ends
"""A function of each value that never falls, the same in every channel."""
Link = Line | Bend
Chain = Sequence[Link]
"""What lies between sums and a quantiser, in the order in which it is computed."""


def joined(chain: Chain) -> list[Link]:
    """A chain with lines that follow each other as one."""
    out: list[Link] = []
    for link in chain:
        before = out[-1] if out else None
        if isinstance(link, Line) and isinstance(before, Line):
            out[-1] = link.after(before)
        else:
            out.append(link)
    return out


@dataclass(frozen=True)
class Condition:
    """x >= limit, x > limit, x <= limit or x < limit; or always, or never.

    Attributes
    ----------
    limit : Fraction or None
        None where the condition doesn't depend on x.
    rising : bool
        Whether it holds above the limit; where there is no limit, whether it always holds.
    reached : bool
        Whether it holds at the limit.
    """

    limit: Fraction | None
    rising: bool
    reached: bool = True

    def before(self, link: Link, channel: int) -> "Condition":
        """The condition on x that holds where this condition holds for ``link`` of x."""
        if self.limit is None:
            return self
        if isinstance(link, Line):
            slope = link.multiply[channel]
            offset = link.add[channel]
            if slope == 0:
                return Condition(None, self._holds(offset))
            return Condition((self.limit - offset) / slope, self.rising == (slope > 0), self.reached)
        # The upper end first: it is the outer one, and decides where a file's ends are crossed.
        if link.high is not None and (
            self.limit > link.high or (self.limit == link.high and self.reached != self.rising)
        ):
            return Condition(None, not self.rising)
        if link.low is not None and (self.limit < link.low or (self.limit == link.low and self.reached == self.rising)):
            return Condition(None, self.rising)
        return self

    def _holds(self, x: Fraction) -> bool:
        """Whether it holds at x."""
        assert self.limit is not None
        return self.reached if x == self.limit else (x > self.limit) == self.rising

    @property
    def integer(self) -> int | None:
        """The first integer for which it holds: the smallest one if it is rising, else the largest; None without a
        limit."""
        if self.limit is None:
            return None
        if self.rising:
            limit = ceil(self.limit) if self.reached else floor(self.limit) + 1
        else:
            limit = floor(self.limit) if self.reached else ceil(self.limit) - 1
        return min(max(limit, -MOST_SUM), MOST_SUM)


@dataclass(frozen=True)
class Staircase:
    """The level of a channel as its sum rises: at least j + 1 from ``limits[j]`` on.

    Attributes
    ----------
    limits : tuple of int or None
        For each level above the lowest the first sum that has it; None where all sums have it, or none.
    always : tuple of bool
        Where there is no limit, whether all sums have the level.
    rising : bool
        Whether levels rise with the sum; else "first" is the largest sum.
    """

    limits: tuple[int | None, ...]
    always: tuple[bool, ...]
    rising: bool

    def level(self, sums: Array) -> Array:
        """The level of sums: integers -> int64."""
        total = np.zeros(np.shape(sums), np.int64)
        for limit, always in zip(self.limits, self.always):
            if limit is None:
                total += always
            else:
                total += (sums >= limit) if self.rising else (sums <= limit)
        return total

    def within(self, low: int, high: int) -> "Staircase":
        """The same staircase, if it rises, for sums from ``low`` to ``high``: of steps outside the nearest are kept.

        If all sums have one level, it has no step. The nearest steps outside say where the levels inside end.
        """
        steps = list(zip(self.limits, self.always))
        first, last = (sum(always if t is None else end >= t for t, always in steps) for end in (low, high))
        keep = range(first - 1, last + 1) if first != last else range(0)
        return Staircase(
            tuple(limit if place in keep else None for place, limit in enumerate(self.limits)),
            tuple(always if place in keep else place < first for place, always in enumerate(self.always)),
            True,
        )

    @property
    def lowest(self) -> int:
        """The lowest level that any integer has."""
        return sum(limit is None and always for limit, always in zip(self.limits, self.always))

    @property
    def highest(self) -> int:
        """The highest level that any integer has."""
        return sum(limit is not None or always for limit, always in zip(self.limits, self.always))


def staircases(chain: Chain, boundaries: Array, reached: Array, channels: int) -> list[Staircase]:
    """The levels of every channel as its sum rises.

    Parameters
    ----------
    chain : Chain
        What lies between the sums and the quantiser.
    boundaries : (channels or 1, levels) array of Fraction
        The quantiser's, rising.
    reached : (levels,) bool
        Whether a value that equals a boundary has reached it.
    channels : int

    Returns
    -------
    list of Staircase
        One a channel.
    """
    links = joined(chain)[::-1]
    out = []
    for channel in range(channels):
        rounded = []
        limits = boundaries[channel if len(boundaries) > 1 else 0]
        if len(links) == 1 and isinstance(links[0], Line) and links[0].multiply[channel] > 0:
            out.append(_rising(links[0].multiply[channel], links[0].add[channel], limits, reached))
            continue
        for limit, hit in zip(limits, reached.tolist()):
            condition = Condition(limit, True, hit)
            for link in links:
                condition = condition.before(link, channel)
            rounded.append(condition)
        rising = all(c.rising for c in rounded if c.limit is not None)
        limits = tuple(c.integer for c in rounded)
        out.append(Staircase(limits, tuple(c.limit is None and c.rising for c in rounded), rising))
    return out


def _rising(slope: Fraction, offset: Fraction, limits: Array, reached: Array) -> Staircase:
    """The staircase behind a single rising line, as `Condition` gives it, by integers alone; most channels are so."""
    least = []
    for limit, hit in zip(limits, reached.tolist()):
        top = (limit.numerator * offset.denominator - offset.numerator * limit.denominator) * slope.denominator
        bottom = limit.denominator * offset.denominator * slope.numerator
        least.append(-(-top // bottom) if hit else top // bottom + 1)
    return Staircase(tuple(least), (False,) * len(least), True)


def threshold_arrays(stairs: Sequence[Staircase], low: int, high: int) -> dict[str, Array]:
    """The arrays of a `Threshold` layer that equals staircases for all sums from ``low`` to ``high``.

    Parameters
    ----------
    stairs : sequence of Staircase
    low, high : int
        Smallest and largest sum.

    Returns
    -------
    dict of str to array
        ``threshold``, (channels, levels), and ``direction``, (channels,). A level that every sum has begins at the
        first one; one that no sum has, behind the last.
    """
    rows = []
    for stair in stairs:
        first, never = (low, high + 1) if stair.rising else (high, low - 1)
        ends = (min(first, never), max(first, never))
        row = [
            (first if always else never) if limit is None else min(max(limit, ends[0]), ends[1])
            for limit, always in zip(stair.limits, stair.always)
        ]
        rows.append(row)
    direction = [1 if stair.rising else -1 for stair in stairs]
    return {"threshold": np.array(rows, np.int64), "direction": np.array(direction, np.int64)}
