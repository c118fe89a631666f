"""Addition of two maps, value by value: what joins the ways of a residual network.

Both maps count in steps of their own, so each is scaled, and the sum becomes a feature as in a requantisation
(golden/layers/requantise.py), with integers alone:

    t = x_1 * multiplier_1 + x_2 * multiplier_2 + bias       |t| < 2^62
    y = t / 2^shift                                          to the nearest integer, halves away from zero
    result = clip(y, low, high)
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.layer import Map

from .roles import FeatureLayer
from .rounding import PRODUCT_BITS, rounded_shift

FACTOR_BITS = 25
"""A multiplier fits so many bits in two's complement: the wide operand of a DSP block, a feature being the other."""
OFFSET_BITS = 40
"""The bias fits so many bits in two's complement."""
MAX_ADD_SHIFT = 39
"""The shift is 0 .. 39."""


@dataclass(frozen=True, kw_only=True)
class Pairwise(FeatureLayer):
    """Two maps of one size become one, value by value: a total of each pair is divided by 2^shift, rounded to the
    nearest, and clipped."""

    input_count: ClassVar[int] = 2
    factors: ClassVar[int]
    """Numbers of array ``multiplier``."""
    least_factor: ClassVar[int] = 1 - (1 << FACTOR_BITS - 1)
    least_bias: ClassVar[int] = -(1 << OFFSET_BITS - 1)
    """least_factor, least_bias: smallest multiplier and bias."""
    encoding: Encoding
    """Of the output, which results are clipped to: signed 2 to 9 bits or unsigned 1 to 8 bits."""
    clip: tuple[int, int] | None = field(default=None, metadata={"written_if_set": True})
    """(low, high) that results are clipped to, both of the encoding and low <= high; by default, None, the encoding's
    own ends."""

    def output_of(self, sources: Sequence[Map]) -> Map:
        first, second = sources
        if first.shape != second.shape:
            raise ValueError(f"{self.name}: maps must have one size, got {first.shape} and {second.shape}")
        return replace(first, encoding=self.encoding)

    def array_shapes_of(self, sources: Sequence[Map]) -> dict[str, tuple[int, ...]]:
        return {"multiplier": (self.factors,), "bias": (1,), "shift": (1,)}

    @property
    def array_ranges(self) -> dict[str, tuple[int, int]]:
        return {
            "multiplier": (self.least_factor, (1 << FACTOR_BITS - 1) - 1),
            "bias": (self.least_bias, (1 << OFFSET_BITS - 1) - 1),
            "shift": (0, MAX_ADD_SHIFT),
        }

    def check_arrays_of(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> None:
        super().check_arrays_of(arrays, sources)
        low, high = self.reach(arrays, sources)
        if max(-low, high) >= 1 << PRODUCT_BITS - 1:
            rule = f"sums must be < 2^{PRODUCT_BITS - 1} for all values of the maps"
            raise ValueError(f"{self.name}.multiplier: {rule}, got {max(-low, high)}")

    @abstractmethod
    def reach(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> tuple[int, int]:
        """Smallest and largest total for any values of the maps."""

    @abstractmethod
    def products(self, inputs: Sequence[Array], multipliers: Sequence[Any] | Array) -> Array:
        """The total of each pair of values without the bias: int64, or float64 of such multipliers."""

    def bias_signs(self, inputs: Sequence[Array]) -> Array | int:
        """1 for pairs of values to whose total the bias is added, -1 for those from whose total it is taken."""
        return 1

    @abstractmethod
    def divided(self, totals: Array, shift: Array) -> Array:
        """``totals / 2^shift``, rounded: int64."""

    @abstractmethod
    def first_total(self, results: Array, shift: int) -> Array:
        """The smallest total that `divided` makes at least each of these results of, with a shift >= 1: int64."""

    def totals(self, inputs: Sequence[Array], arrays: Mapping[str, Array]) -> Array:
        """The total of each pair of values: int64."""
        bias = self.bias_signs(inputs) * int(arrays["bias"][0])
        return np.asarray(self.products(inputs, arrays["multiplier"].astype(np.int64)) + bias)

    def forward_of(self, inputs: Sequence[Array], arrays: Mapping[str, Array], sources: Sequence[Map]) -> Array:
        totals = self.totals(inputs, arrays)  # (N, H, W, C)
        y: Array = np.clip(self.divided(totals, arrays["shift"].astype(np.int64)), self.low, self.high)
        return y


@dataclass(frozen=True, kw_only=True)
class Add(Pairwise):
    """Two maps of one size are added, each scaled by multiplier / 2^shift; the sum is rounded and clipped.

    Arrays: ``multiplier``, (2,), -2^24 + 1 .. 2^24 - 1, one for each map in the order of ``inputs``; ``bias``, (1,),
    40 bits signed, in parts 2^-shift of a result's step; ``shift``, (1,), 0 .. 39.
    """

    kind: ClassVar[str] = "add"
    factors: ClassVar[int] = 2

    def reach(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> tuple[int, int]:
        low = high = int(arrays["bias"][0])
        for source, factor in zip(sources, arrays["multiplier"].tolist()):
            ends = factor * source.encoding.low, factor * source.encoding.high
            low = low + min(ends)
            high = high + max(ends)
        return low, high

    def products(self, inputs: Sequence[Array], multipliers: Sequence[Any] | Array) -> Array:
        return np.asarray(inputs[0] * multipliers[0] + inputs[1] * multipliers[1])

    def divided(self, totals: Array, shift: Array) -> Array:
        return rounded_shift(totals, shift)

    def first_total(self, results: Array, shift: int) -> Array:
        return ((2 * results - 1) << shift - 1) + (results <= 0)  # halves below 0 are rounded down
