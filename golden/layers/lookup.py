"""Lookup: each feature becomes the entry that a table has for it, as for activations that are no straight lines.

    result = entries[x mod 256]

Example: with entries[k] = k for k up to 99, and 99 for all others, 200 becomes 99, and so does -1, whose entry is 255.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.layer import Map, OneInput

from .roles import FEATURE_WIDTHS, FeatureLayer

ENTRIES = 256
"""Entries of a table: one for each value of 8 bits."""


@dataclass(frozen=True, kw_only=True)
class Lookup(OneInput, FeatureLayer):
    """Each value for itself becomes an entry of a table, the same table in all channels.

    The array ``entries``, (256,), are integers of the output's encoding. A value x has entry x mod 256, so that each of
    256 neighbouring values has an entry of its own, whatever the smallest of them is. Of a map of 9 bits, values that
    are 256 apart have one entry. The map that is read has signed 1 to 9 bits or unsigned 1 to 8 bits.
    """

    kind: ClassVar[str] = "lookup"
    encoding: Encoding
    """Of the output: signed 2 to 9 bits or unsigned 1 to 8 bits."""

    def output(self, source: Map) -> Map:
        _, most = FEATURE_WIDTHS.get(source.encoding.kind, (0, 0))
        if source.encoding.bits > most:
            rule = " or ".join(f"{kind} 1..{most} bit" for kind, (_, most) in FEATURE_WIDTHS.items())
            raise ValueError(f"{self.name}: a lookup must read {rule}, got {source.encoding}")
        return replace(source, encoding=self.encoding)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"entries": (ENTRIES,)}

    @property
    def array_ranges(self) -> dict[str, tuple[int, int]]:
        return {"entries": (self.low, self.high)}

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        y: Array = arrays["entries"].astype(np.int64)[x % ENTRIES]  # (N, H, W, C)
        return y
