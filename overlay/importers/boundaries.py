"""From real boundaries to integers: where on the scale of a channel's sums each level of a quantiser begins, exactly.

A quantiser's level is at least j where its input x >= t_j, or x > t_j. What lies between the sums and the quantiser,
links (links.py), never turns such a condition into anything but another one of its kind:

    x * a + b >= t   is   x >= (t - b) / a  for a > 0,   x <= (t - b) / a  for a < 0,   always or never for a = 0
    min(max(x, low), high) >= t   is   always for t <= low,  never for t > high,  else  x >= t

So each condition is pulled back, in fractions: first to the real numbers that the sums are worth (`Steps`), which no
engine changes, then to the integers that an engine adds up (`Staircase`). Nothing is sampled and nothing is rounded:
the result holds for every sum that there is, ties included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np

from bitloom.golden.encoding import Array

from .links import Condition, Line, LinkChain, first_line, is_uniform
from .rationals import first_integer
from .rows import Boundaries, row_of

MOST_SUM = 1 << 61
"""No sum is as large as this; larger limits are cut to it."""


@dataclass(frozen=True)
class Staircase:
    """The level of a channel as its sum rises: at least j + 1 from ``limits[j]`` on."""

    limits: tuple[int | float, ...]
    """For each level above the lowest the first sum that has it; infinite where all sums have it, or none."""
    rising: bool
    """Whether levels rise with the sum; else "first" is the largest sum."""

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """The levels that some sums have and others don't, each with its first sum."""
        return [(level, limit) for level, limit in enumerate(self.limits, 1) if isinstance(limit, int)]

    @property
    def is_flat(self) -> bool:
        """Whether all integers have one level."""
        return not self.steps

    def level(self, sums: Array) -> Array:
        """The level of sums: integers -> int64."""
        total = np.zeros(np.shape(sums), np.int64)
        for limit in self.limits:
            total += (sums >= limit) if self.rising else (sums <= limit)
        return total

    def within(self, low: int, high: int) -> "Staircase":
        """This staircase, if it rises, for sums from ``low`` to ``high``: of steps outside the nearest are kept.

        If all sums have one level, it has no step. The nearest steps outside say where the levels inside end.
        """
        first, last = (sum(end >= limit for limit in self.limits) for end in (low, high))
        before, behind = (first - 1, last + 1) if first != last else (first, first)
        limits = (-inf,) * max(before, 0) + self.limits[max(before, 0) : behind]
        return Staircase(limits + (inf,) * (len(self.limits) - len(limits)), True)

    @property
    def lowest(self) -> int:
        """The lowest level that any integer has."""
        return self.limits.count(-inf if self.rising else inf)

    @property
    def highest(self) -> int:
        """The highest level that any integer has."""
        return self.lowest + len(self.steps)


@dataclass(frozen=True, eq=False)
class Limits:
    """From which real number x on a channel has each level."""

    limits: Sequence[Fraction | float]
    """sequence of (Fraction or float): for each level above the lowest where it begins; infinite where all x have it,
    or none."""
    reached: Sequence[bool]
    """Whether x has the level at the limit."""
    rising: bool = True
    """Whether levels rise with x."""
    slope: Fraction = Fraction(1)
    """By how much the quantiser's input rises with x between the limits."""

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest level that any x has."""
        lowest = sum(limit == (-inf if self.rising else inf) for limit in self.limits)
        return lowest, lowest + sum(isinstance(limit, Fraction) for limit in self.limits)

    def level(self, x: Fraction) -> int:
        """The level of a number."""
        steps = zip(self.limits, self.reached)
        return sum(hit if x == limit else (x > limit) == self.rising for limit, hit in steps)

    @cached_property
    def _ratios(self) -> list[tuple[int, int, bool] | float]:
        """Of each limit numerator, denominator and whether x has the level there; an infinite limit itself."""
        return [
            (limit.numerator, limit.denominator, hit) if isinstance(limit, Fraction) else limit
            for limit, hit in zip(self.limits, self.reached)
        ]

    def behind(self, slope: Fraction, offset: Fraction) -> Staircase:
        """The levels of integers s where x = slope * s + offset."""
        if slope == 0:
            level = self.level(offset)
            return Staircase((-inf,) * level + (inf,) * (len(self.limits) - level), True)
        rising = self.rising == (slope > 0) or not any(isinstance(limit, Fraction) for limit in self.limits)
        # In integers alone: fractions would take most of an import's time.
        left = offset.denominator * slope.denominator
        right = offset.numerator * slope.denominator
        below = offset.denominator * slope.numerator
        firsts: list[int | float] = []
        for ratio in self._ratios:
            if isinstance(ratio, float):
                firsts.append(ratio if rising == self.rising else -ratio)
                continue
            numerator, denominator, hit = ratio
            top = numerator * left - right * denominator
            bottom = denominator * below
            first = first_integer(top, bottom, hit) if rising else -first_integer(-top, bottom, hit)
            firsts.append(min(max(first, -MOST_SUM), MOST_SUM))
        return Staircase(tuple(firsts), rising)


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """Where the levels of a quantiser begin on what a chain in front of it reads."""

    line: Line
    """The beginning of the chain, up to its first bend."""
    bent: bool
    """Whether a bend follows."""
    rows: tuple[Limits, ...]
    """Where levels begin on what the line makes: of each channel, or one row for all channels."""
    straight: bool
    """Whether between the limits of each channel the chain is one straight line: no bend lies there."""

    @classmethod
    def of(cls, chain: LinkChain, boundaries: Boundaries, channels: int) -> "Steps":
        """Pull the boundaries of a quantiser back through a chain.

        Parameters
        ----------
        chain : LinkChain
            Links in front of the quantiser.
        boundaries : Boundaries
            The quantiser's.
        channels : int
        """
        line, links = first_line(chain, channels)
        hits = boundaries.reached.tolist()
        if not links:
            rows = [Limits(row, hits) for row in boundaries.limits]
            return cls(line=line, bent=False, rows=tuple(rows), straight=True)
        alike = boundaries.is_uniform and is_uniform(links)
        rows = []
        straight = True
        for channel in range(1 if alike else channels):
            given = row_of(boundaries.limits, channel)
            row = _pulled_back(links, given, hits, channel)
            straight = straight and _is_straight(row, given)
            rows.append(row)
        return cls(line=line, bent=True, rows=tuple(rows), straight=straight)

    def row(self, channel: int) -> Limits:
        """The limits of a channel, behind ``line``."""
        limits: Limits = row_of(self.rows, channel)
        return limits

    def staircases(self, sums: Line) -> list[Staircase]:
        """The levels of integers, of each channel, where ``sums`` says what an integer is worth."""
        line = self.line.after(sums)
        pairs = enumerate(zip(line.multiply, line.add))
        return [self.row(channel).behind(slope, offset) for channel, (slope, offset) in pairs]

    def slopes(self, sums: Line) -> list[Fraction]:
        """By how much the quantiser's input rises with such an integer between the limits, for each channel."""
        line = self.line.after(sums)
        return [self.row(channel).slope * slope for channel, slope in enumerate(line.multiply)]

    def ends_alike(self, scale: Array) -> bool:
        """Whether all channels that have several levels have the same ones, and others one of these.

        Parameters
        ----------
        scale : (channels,) array of Fraction
            Factors of the chain's input; a channel of 0 has one level.
        """
        ends = []
        for channel, (slope, offset) in enumerate(zip(self.line.multiply * scale, self.line.add)):
            row = self.row(channel)
            ends.append(row.ends if slope != 0 else (row.level(offset),) * 2)
        widest = min(low for low, _ in ends), max(high for _, high in ends)
        return all(low == high or (low, high) == widest for low, high in ends)


def _pulled_back(links: LinkChain, boundaries: Sequence[Fraction], reached: Sequence[bool], channel: int) -> Limits:
    """The boundaries of a channel's quantiser in front of links."""
    conditions: list[Condition] = []
    for limit, hit in zip(boundaries, reached):
        condition = Condition(limit, True, hit)
        for link in reversed(links):
            condition = link.before(condition, channel)
        conditions.append(condition)
    rising = all(condition.rising for condition in conditions if condition.limit is not None)
    limits = [
        (-inf if condition.rising == rising else inf) if condition.limit is None else condition.limit
        for condition in conditions
    ]
    known = [(x, t) for x, t in zip(limits, boundaries) if isinstance(x, Fraction)]
    if known and known[0][0] != known[-1][0]:
        slope = (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])
    else:
        slope = Fraction(1)
        for link in links:
            slope *= link.slope(channel)
    return Limits(limits=limits, reached=[c.reached for c in conditions], rising=rising, slope=slope)


def _is_straight(row: Limits, boundaries: Sequence[Fraction]) -> bool:
    """Whether the limits lie on one line with the boundaries that were pulled back to them."""
    known = [(x, t) for x, t in zip(row.limits, boundaries) if isinstance(x, Fraction)]
    return not known or (row.slope != 0 and all(t - known[0][1] == (x - known[0][0]) * row.slope for x, t in known))


def staircases(chain: LinkChain, boundaries: Boundaries, sums: Line) -> list[Staircase]:
    """The levels of every channel as its sum rises: `Steps` of a chain, and what an integer is worth in front of it."""
    return Steps.of(chain, boundaries, len(sums.multiply)).staircases(sums)


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
        rows.append([min(max(limit, ends[0]), ends[1]) for limit in stair.limits])
    direction = [1 if stair.rising else -1 for stair in stairs]
    return {"threshold": np.array(rows, np.int64), "direction": np.array(direction, np.int64)}
