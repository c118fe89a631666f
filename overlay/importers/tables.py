"""Tables: what becomes of each level of a map (`sections.TableSection`), as one of golden's layers.

    level of the map that is read --table--> level of the map that is made
          |                                        |
       integer ---------------- lookup ---------> integer

A lookup is the same for all channels. Where these have rows of their own, ramps compute the table (ramps.py).
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.lookup import ENTRIES, Lookup

from .held import Held
from .ramps import Stepped
from .rows import LevelTable


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that gives an integer for each integer of a map."""

    levels: LevelTable
    source: Held
    target: Held
    """source, target: the integers of the map that is read, and of the map that the table makes."""

    @property
    def integers(self) -> Array:
        """int64: the integer of each level that is read."""
        return self.source.zero + np.arange(self.levels.rows.shape[1])

    @property
    def results(self) -> Array:
        """(channels or 1, levels) int64: the integer that becomes of each of these."""
        return self.target.zero + self.levels.rows

    @property
    def functions(self) -> list[Stepped]:
        """Functions of integers in each channel, or one for all channels, whose results are levels."""
        return [Stepped.of_values(self.source.zero, row) for row in self.levels.rows.tolist()]


def layer_of(table: Table, number: int) -> tuple[Lookup, dict[str, Array]] | None:
    """Layer ``number`` of the network, which computes a table, and its arrays; None if channels have rows of their own.

    Entries for integers that the map doesn't have are the lowest level's.
    """
    if not table.levels.is_uniform:
        return None
    entries = np.full(ENTRIES, table.target.zero)
    entries[table.integers % ENTRIES] = table.results[0]
    return Lookup(name=f"lookup_{number}", encoding=table.target.encoding), {"entries": entries}
