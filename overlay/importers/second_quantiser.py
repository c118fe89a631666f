"""Two quantisers, one behind the other, with nothing but links between them.

    quantiser --levels of the map--> links --> quantiser

A map has one quantiser. So the second one becomes part of the first, whose boundaries it keeps some of
(`KeptBoundaries`); or the levels of the map become others behind it, by weights that copy the map, where a line in each
channel has them, else by a table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from bitloom.golden.layers.lookup import ENTRIES

from .boundaries import Steps, staircases
from .errors import Unsupported
from .links import Line, LinkChain, bend_name, first_line, is_looked_up, is_uniform, worth_in
from .operations import Levels
from .rows import LevelTable
from .sections import MOST_THERMOMETER, Quantised
from .weights import MOST_WEIGHT


def quantised_by(levels: Levels) -> Quantised:
    """The map that a quantiser makes."""
    return Quantised(
        name=levels.name,
        base=levels.base,
        step=levels.step,
        boundaries=levels.boundaries,
        levels=levels.levels,
        rule=levels.rule,
    )


@dataclass(frozen=True, kw_only=True)
class KeptBoundaries:
    """The boundaries of a first quantiser that are left where both are one."""

    base: Fraction
    """Real number of the map's lowest level then."""
    places: tuple[int, ...]
    """Numbers of the boundaries, rising: each begins another level."""

    def has_all(self, first: Quantised) -> bool:
        """Whether the first quantiser keeps all levels, each one step apart."""
        return list(self.places) == list(range(first.levels))

    @property
    def is_even(self) -> bool:
        """Whether the boundaries are evenly apart, as those of a requantisation are."""
        return len({after - before for before, after in pairwise(self.places)}) <= 1


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondQuantiser:
    """A quantiser of a quantised map."""

    first: Quantised
    """The map."""
    verb: str
    """For messages, what the section that makes the map does with those that it reads."""
    links: LinkChain
    """Links between both quantisers."""
    levels: Levels
    """The second quantiser: its numbers of channels are in the order of golden's map."""
    channels: int
    """Of the map."""

    def kept(self) -> KeptBoundaries:
        """The boundaries of the first one that are left if both become one; Unsupported if no boundaries do."""
        first = self.first
        if first.boundaries is None:
            raise Unsupported(f"what was {self.verb} must be quantised once, got a second time")
        if not self.levels.is_uniform or not is_uniform(self.links):
            raise Unsupported("what lies between two quantisers must be the same in every channel")
        line = Line(multiply=np.array([first.step], object), add=np.array([first.base], object))
        chain = [link.of_channel(0) for link in self.links]
        (stair,) = staircases(chain, self.levels.boundaries, line)
        if not stair.rising:
            raise Unsupported("a second quantiser must rise with the first one")
        base = self.levels.base
        places = []
        for limit in stair.limits:
            if limit < 1:  # the lowest level has reached it: it counts into the base
                base += self.levels.step
            elif limit <= first.levels:
                places.append(int(limit) - 1)
        if not places:
            raise Unsupported("a second quantiser must leave two levels at least")
        return KeptBoundaries(base=base, places=tuple(places))

    def rounds_means_first(self, kept: KeptBoundaries) -> bool:
        """Whether means are rounded to the values of the first one, and only then come those of the second one."""
        now = len(kept.places), kept.base, self.levels.step
        return self.first.averaged and now != (self.first.levels, self.first.base, self.first.step)

    def is_bent(self, kept: KeptBoundaries) -> bool:
        """Whether both in one would have levels of any width, as thresholds may be, and more than thermometer bits
        have, or levels that a kernel's rule doesn't have, but for fewer ones in a row."""
        ruled = self.first.rule is not None and self.first.rule.needs_sums and self.merged(kept).rule is None
        return len(kept.places) > MOST_THERMOMETER and (not kept.is_even or ruled)

    def merged(self, kept: KeptBoundaries) -> Quantised:
        """The map that both make as one."""
        first = self.first
        assert first.boundaries is not None
        places = list(kept.places)
        cut = places == list(range(places[0], places[0] + len(places))) and self.levels.step == first.step
        rule = None
        if first.rule is not None and cut and kept.base == first.base + first.step * places[0]:
            rule = replace(first.rule, low=first.rule.low + places[0])  # the kernel's, cut to fewer levels
        return replace(
            first,
            base=kept.base,
            step=self.levels.step,
            boundaries=first.boundaries.kept(places),
            levels=len(places),
            rule=rule,
        )

    @property
    def is_straight(self) -> bool:
        """Whether a line in each channel makes the second quantiser's levels of those of the map."""
        if is_looked_up(self.links):
            return False
        return Steps.of(self.links, self.levels.boundaries, self.channels).straight

    @property
    def multiplies_by_more(self) -> bool:
        """Whether a kernel multiplies by one whole number that is no weight, in all channels alike."""
        first = self.links[0] if self.links else None
        if self.levels.rule is None or not isinstance(first, Line) or not first.is_uniform:
            return False
        factor = first.multiply[0]
        return bool(factor.denominator == 1 and abs(factor) > MOST_WEIGHT)

    def table(self) -> LevelTable:
        """The level that the second quantiser gives each level of the map."""
        source = self.first
        if source.levels >= ENTRIES:
            name = bend_name(self.links)
            raise Unsupported(f"{name} must read at most {ENTRIES} values, got {source.levels + 1}")
        alike = is_uniform(self.links) and self.levels.is_uniform
        channels = range(1 if alike else self.channels)
        values = [[worth_in(self.links, value, channel) for channel in channels] for value in source.values]
        levels = self.levels.boundaries.level(np.array(values, object))
        return LevelTable.of(levels.T)


def rounded_mean(source: Quantised, links: LinkChain, levels: Levels, counts: Sequence[int]) -> Quantised | None:
    """The means of a map as golden's average pool makes them, of windows with these ``counts`` of values; None where a
    quantiser rounds means to other values than those of the map.

    Golden rounds halves away from 0. Where the quantiser doesn't, the map says how many means are off.

    Parameters
    ----------
    source : Quantised
        The map.
    links : sequence of Link
        Links between the map and the quantiser.
    levels : Levels
        The quantiser.
    counts : sequence of int
        Each once.
    """
    line, bent = first_line(links, 1) if is_uniform(links) else (None, ())
    if source.averaged or line is None or bent or not levels.is_uniform or line.multiply[0] <= 0:
        return None
    lowest = line.value(source.base, 0)
    step = line.multiply[0] * source.step
    limits = levels.boundaries.limits[0].tolist()
    first = sum(limit < lowest for limit in limits)  # the quantiser may have more values below and above
    last = first + source.levels
    middles = [lowest + step * (level - Fraction(1, 2)) for level in range(1, source.levels + 1)]
    if limits[first:last] != middles or any(limit <= middles[-1] + step / 2 for limit in limits[last:]):
        return None
    base = levels.base + levels.step * first
    integer = base / levels.step
    if integer.denominator != 1:
        return None
    away = [integer + level > 0 for level in range(1, source.levels + 1)]
    others = int((levels.boundaries.reached[first:last] != away).sum())
    even = sum(count % 2 == 0 for count in counts)
    return replace(source, base=base, step=levels.step, averaged=True, halves=even > 0, means_off=even * others)
