"""Tables: which of golden's layers computes what becomes of each level of a map (`sections.TableSection`).

    level of the map that is read --table--> level of the map that is made
          |                                        |
       integer ------------ golden's layer -----> integer

Layers are asked in turn, the ones that cost less first: the first one that has all results, exactly, is taken. Where
channels have rows of their own, no layer has the table, and ramps have it (ramps.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.lookup import ENTRIES, Lookup
from bitloom.golden.layers.roles import FeatureLayer

from .held import Held
from .ramps import Stepped
from .rows import LevelTable


@dataclass(frozen=True, kw_only=True)
class Table:
    """What becomes of each integer of a map."""

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
        """What becomes of integers in each channel, or in all: levels."""
        return [Stepped.of_values(self.source.zero, row) for row in self.levels.rows.tolist()]


TableLayer = tuple[FeatureLayer, dict[str, Array]]
"""A layer and its arrays."""


def lookup(table: Table, number: int) -> TableLayer | None:
    """The lookup, of a table with one row. Entries for integers that the map doesn't have are the lowest level's."""
    if not table.levels.is_uniform:
        return None
    entries = np.full(ENTRIES, table.target.zero)
    entries[table.integers % ENTRIES] = table.results[0]
    return Lookup(name=f"lookup_{number}", encoding=table.target.encoding), {"entries": entries}


LAYERS: tuple[Callable[[Table, int], TableLayer | None], ...] = (lookup,)
"""``of(table, number)`` of each kind of layer: layer ``number`` of the network; None if the kind doesn't have the
table's results. A lookup has those of all tables with one row, so that it stands last."""


def layer_of(table: Table, number: int) -> TableLayer | None:
    """The layer that computes a table, with the number that its name has; None if there is none."""
    return next((layer for layer in (of(table, number) for of in LAYERS) if layer is not None), None)
