"""Rows: arrays with a row for each channel, or one row that all channels have; boundaries and tables as such rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import level_of

from .rationals import floats


def row_of(rows: Any, channel: int) -> Any:
    """The row of a channel, of a sequence or an array with a row for each channel, or one for all."""
    return rows[channel if len(rows) > 1 else 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Boundaries:
    """The numbers from which on a quantiser has each level above the lowest one."""

    limits: Array
    """(channels or 1, levels) array of Fraction: rising."""
    reached: Array
    """(levels,) bool: whether a number that is equal to the boundary has the level."""

    @classmethod
    def of(cls, limits: Sequence[Fraction], reached: bool | Sequence[bool] = True) -> "Boundaries":
        """The boundaries of all channels; ``reached`` is for all of them, or for each."""
        return cls(limits=np.array([limits], object), reached=np.broadcast_to(reached, len(limits)))

    @classmethod
    def halfway(cls, lowest: Fraction, step: Fraction, count: int) -> "Boundaries":
        """The boundaries of numbers that are rounded upwards to the nearest of ``count`` + 1, a step apart from the
        lowest one on."""
        return cls.of([lowest + step * (level - Fraction(1, 2)) for level in range(1, count + 1)])

    @property
    def count(self) -> int:
        """How many a channel has: the highest level."""
        return int(self.limits.shape[1])

    @property
    def is_uniform(self) -> bool:
        """Whether all channels have the same ones."""
        return len(self.limits) == 1

    @cached_property
    def in_floats(self) -> "Boundaries":
        """These boundaries, each as the nearest float64."""
        return Boundaries(limits=floats(self.limits), reached=self.reached)

    def level(self, x: Array) -> Array:
        """The level of numbers, which are compared as they are: (..., channels) -> int64."""
        return level_of(x, self.limits, self.reached)

    def of_channels(self, channels: Array) -> "Boundaries":
        """The boundaries of a map whose channels are these."""
        return Boundaries(limits=self.limits[channels], reached=self.reached)

    def kept(self, places: Sequence[int]) -> "Boundaries":
        """Those with these numbers."""
        return Boundaries(limits=self.limits[:, places], reached=self.reached[places])


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelTable:
    """A table that gives another level for each level of a map."""

    rows: Array
    """(channels or 1, levels) int64: the level that is made of each level, in each channel, or in all channels in one
    row. Channels that are alike have one row: see `of`."""

    @classmethod
    def of(cls, rows: Array) -> "LevelTable":
        """The table with a row for each channel, or with one row if all are alike."""
        return cls(rows=rows[:1] if (rows == rows[:1]).all() else rows)

    @property
    def is_uniform(self) -> bool:
        """Whether all channels have the same row."""
        return len(self.rows) == 1

    def through(self, following: "LevelTable") -> "LevelTable":
        """One table in place of two, this one and then ``following``; each must be the same in all channels."""
        return LevelTable.of(following.rows[:, self.rows[0]])

    def behind(self, kept: Sequence[int]) -> "LevelTable":
        """The table behind which a quantiser keeps some boundaries of the levels that are made, rising: these levels
        are counted by the boundaries that they have reached."""
        return LevelTable.of(np.searchsorted(np.asarray(kept), self.rows))
