"""Rows: arrays with a row for each channel, or one row that all channels have; and tables of a map as such rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array


def row_of(rows: Any, channel: int) -> Any:
    """The row of a channel, of a sequence or an array with a row for each channel, or one for all."""
    return rows[channel if len(rows) > 1 else 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelTable:
    """What becomes of each level of a map."""

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
        """The table that has what another one makes of the levels that this one makes, both the same in all
        channels."""
        return LevelTable.of(following.rows[:, self.rows[0]])

    def behind(self, kept: Sequence[int]) -> "LevelTable":
        """The table behind which a quantiser keeps some boundaries of the levels that are made, rising: these levels
        are counted by the boundaries that they have reached."""
        return LevelTable.of(np.searchsorted(np.asarray(kept), self.rows))
