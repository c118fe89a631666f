"""Rows of one layer, by memory, and the rows of several layers one behind the other.

planned layer --array.py, results.py, ...--> LayerRows --memories.py, where layers begin--> words of each memory
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

Columns = Mapping[str, Array]
"""Rows of a memory: field -> (rows,) integers, or (rows, n) integers that lie side by side in the field, each of them
in as many bits as the others, the first one lowest."""


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Rows of a layer in each memory of its NPU, without those of other layers: at which row they begin is not said."""

    name: str
    """The layer's name."""
    memories: Mapping[str, Columns]
    """Name of a memory -> its rows."""

    def count(self, memory: str) -> int:
        """Rows in a memory; 0 where there are none."""
        columns = self.memories.get(memory, {})
        return len(next(iter(columns.values()))) if columns else 0

    def row(self, memory: str) -> dict[str, int]:
        """The one row in a memory that has a row for each layer, by field."""
        return {name: int(column[0]) for name, column in self.memories[memory].items()}


def row(fields: Mapping[str, int]) -> Columns:
    """One row with these fields."""
    return {name: np.array([value]) for name, value in fields.items()}
