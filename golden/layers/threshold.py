"""Thresholds: an accumulator becomes one bipolar bit per threshold (spec A11).

Batch normalisation followed by binarisation is an integer threshold and a direction per channel;
golden/layers/batch_norm.py makes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import MOST_BITS, Array, bipolar, signed
from bitloom.golden.layer import Map

from .roles import Activation


@dataclass(frozen=True, kw_only=True)
class Threshold(Activation):
    """Each of k thresholds gives +1 or -1; the output is their sum, a bipolar value of k bits.

    Bit t of a channel is 1, and stands for +1, where ``x >= threshold[t]`` if the channel's direction is +1, and where
    ``x <= threshold[t]`` if the direction is -1. A threshold that no x reaches makes a constant.

    Arrays are ``threshold``, (channels, levels) integers that fit 32 bits signed, and ``direction``, (channels,) of +1
    and -1.
    """

    kind: ClassVar[str] = "threshold"
    levels: int = 1
    """k, the thresholds of a channel, 1 to MOST_BITS."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.levels) is not int or not 1 <= self.levels <= MOST_BITS:
            raise ValueError(f"{self.name}: levels must be 1..{MOST_BITS}, got {self.levels!r}")

    def output(self, source: Map) -> Map:
        return replace(source, encoding=bipolar(self.levels))

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"threshold": (source.channels, self.levels), "direction": (source.channels,)}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        super().check_arrays(arrays, source)
        t = arrays["threshold"]
        d = arrays["direction"]
        signed(32).check(f"{self.name}.threshold", t)
        if not np.isin(d, (-1, 1)).all():
            raise ValueError(f"{self.name}.direction: values must be -1 or 1, got {d[~np.isin(d, (-1, 1))][0]}")

    def bits(self, x: Array, arrays: Mapping[str, Array]) -> Array:
        """Results of the comparators: (..., C) integers -> (..., C, levels) uint8 of 0 and 1."""
        threshold = arrays["threshold"].astype(np.int64)
        direction = arrays["direction"].astype(np.int64)
        bits: Array = x[..., None] * direction[:, None] >= threshold * direction[:, None]
        return bits.astype(np.uint8)

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        total: Array = (2 * self.bits(x, arrays).astype(np.int64) - 1).sum(axis=-1)
        return total
