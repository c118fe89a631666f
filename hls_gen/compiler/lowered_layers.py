"""Lowered layers: what one trip through an engine computes, by the engine's own rule. hls_gen/compiler/lowering.py
makes them, hls_gen/compiler/lowered_rules.py computes them.

Binary engine, which knows only bits:

    sum   = over valid taps, channels c and planes p of coefficient[p] * XNOR(feature[c, p], weight[o, tap, c, p])
    value = (2 if double else 1) * sum - tap_offset * valid taps
    bit t of channel o = value >= threshold[o, t], then OR over the pool window's valid taps

Where a residual network adds maps of integers, the value is requantised and another map is added to it before it is
compared with 0, as in a lowered layer of the integer engine (docs/decisions/0022).

A lowered layer that accumulates by OR has in place of the sum 1 where any XNOR of a valid tap is 1, else 0; the value
is that bit, its threshold 1. One that takes the OR of each word has as its sum the number of words, of valid taps, in
which any XNOR is 1.

Integer engine:

    sum    = over valid taps and channels of feature[c] * weight[o, tap, c]
    result = requantised sum (golden/layers/requantise.py), then, where the lowered layer adds a map, the addition
             (golden/layers/add.py), then maximum or average over the pool window's valid taps, or a depthwise
             convolution and its requantisation (hls_gen/compiler/depthwise.py)

What crosses from one engine to the other are bits: the integer engine gives the signs of its results, 1 where
negative, and reads a bit as +1 or -1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.requantise import rounded, rounded_shift
from bitloom.golden.window import Window

from .depthwise import Depthwise
from .summed_window import SummedWindow
from .tuple_parts import WeightedLanes
from .value_ranges import Range, with_any_biases, with_any_thresholds, with_biases


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryLayer:
    """One trip through the binary engine; the rule is in the module's text.

    Attributes
    ----------
    name : str
        The weighted layer's.
    reads : str
        Name of the lowered layer whose result this one reads, or `bitloom.golden.graph.INPUT`.
    joins : str or None
        Name of the lowered layer whose result it reads as well, whose channels follow at each position; None: none's.
    height, width : int
        Size of the map that the lowered layer reads.
    window : Window or SummedWindow
        Of the convolution, or of those whose sums are added up: their taps go through the places of the kernel again
        and again.
    visits : int
        Times that each valid tap is visited, one after another.
    weight : (out_channels, places * visits, channels, planes) uint8
        0 and 1, where 1 stands for +1.
    coefficient : (planes,) int64
        +-2^k of each plane.
    double : bool
        Whether the sum counts twice.
    tap_offset : int
        What each visit of a valid tap takes off the value.
    threshold : (out_channels, levels) int64 or None
        None: the values themselves are the result.
    pool : Window or None
        Of the max pool over the bits.
    value_range : tuple of int
        Smallest and largest value, for any features.
    any_match : bool
        Whether the products are accumulated by OR. Then double is False, tap_offset 0, and the threshold 1.
    word_channels : int
        Channels of a word whose products are ORed, the last word of a tap having what is left; 0: products are counted.
    scale : Scale or None
        How values become the integers of which the bits are the signs; then thresholds are 0. None: values are compared
        as they are.
    addition : Addition or None
        Of another map to these integers; None where there is none.
    magnitude : uint8 array or None
        Of a layer with real weights, in the shape of ``weight``: what a binariser of kernels is given beside the signs
        (hls_gen/compiler/fixed_kernels.py); nothing is computed with it. None: 1 and 0, as the weights are.
    """

    name: str
    reads: str
    height: int
    width: int
    window: Window | SummedWindow
    visits: int
    weight: Array
    coefficient: Array
    double: bool
    tap_offset: int
    threshold: Array | None
    pool: Window | None
    value_range: tuple[int, int]
    any_match: bool = False
    word_channels: int = 0
    joins: str | None = None
    scale: "Scale | None" = None
    addition: "Addition | None" = None
    magnitude: Array | None = None

    @cached_property
    def weighted(self) -> WeightedLanes | None:
        """The lanes for which kernels have weights; None where they have for all. A weight of 0 is +1 in one visit and
        -1 in the other: one match in each lane, whatever the feature is."""
        if self.visits != 2 or len(self.coefficient) > 1:
            return None
        visits = self.weight.reshape(self.out_channels, -1, 2, self.weight.shape[2])
        lanes: Array = (visits[:, :, 0] == visits[:, :, 1]).any(axis=1)
        return None if lanes.all() else WeightedLanes(lanes, same=True, even=not self.double)

    @property
    def magnitudes(self) -> Array:
        """Those of all weights."""
        return self.weight if self.magnitude is None else self.magnitude

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def adds(self) -> str | None:
        """Name of the lowered layer whose integers this one adds to its own; None where it adds none."""
        return self.addition.adds if self.addition else None

    @property
    def biased_range(self) -> Range:
        """Smallest and largest of all values, biases, and values with their bias, where values are requantised:
        a threshold is a bias of its negative then, and one that is never reached is value_range[1] + 1."""
        if self.scale is not None:
            return with_biases(self.value_range, self.scale.bias >> self.scale.fraction)
        if self.threshold is None:
            return with_biases(self.value_range, np.zeros(1, np.int64))
        return with_biases(self.value_range, np.append(-self.threshold, -1 - self.value_range[1]))

    @property
    def roomy_range(self) -> Range:
        """``biased_range`` with room for other biases and thresholds."""
        if self.scale is not None:
            return with_any_biases(self.value_range, self.scale.bias >> self.scale.fraction)
        return self.biased_range if self.threshold is None else with_any_thresholds(self.value_range)

    @property
    def raw(self) -> bool:
        """Whether values are the result."""
        return self.threshold is None

    @property
    def levels(self) -> int:
        """Bits that a kernel gives, 1 for values."""
        return 1 if self.threshold is None else int(self.threshold.shape[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Scale:
    """The requantisation of a binary layer's values.

    Attributes
    ----------
    bias, multiplier, shift : (out_channels, 1) int64
    fraction, rounding, low, high
        As of `IntegerLayer`.
    """

    bias: Array
    multiplier: Array
    shift: Array
    fraction: int
    rounding: str
    low: int
    high: int

    def forward(self, value: Array) -> Array:
        """Integers of (..., out_channels) values."""
        biased = (value << self.fraction) + self.bias[:, 0]
        scaled = rounded(biased * self.multiplier[:, 0], self.shift[:, 0], self.rounding)
        result: Array = np.clip(scaled, self.low, self.high)
        return result


@dataclass(frozen=True, kw_only=True)
class Addition:
    """The addition of a map to what a lowered layer has requantised:

        t = kept * factor_kept + added * factor_added + bias
        result = clip(t / 2^shift to the nearest integer, halves away from zero; low, high)

    Attributes
    ----------
    adds : str
        Name of the lowered layer whose result is added.
    factor_kept, factor_added, bias, shift : int
        As the arrays of `bitloom.golden.layers.add.Add`.
    low, high : int
        Smallest and largest result.
    """

    adds: str
    factor_kept: int
    factor_added: int
    bias: int
    shift: int
    low: int
    high: int

    def forward(self, kept: Array, added: Array) -> Array:
        """The result for two arrays of integers of one shape."""
        total = kept * self.factor_kept + added * self.factor_added + self.bias
        result: Array = np.clip(rounded_shift(total, np.asarray(self.shift)), self.low, self.high)
        return result


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerLayer:
    """One trip through the integer engine; the rule is in the module's text.

    Attributes
    ----------
    name, reads, joins, height, width, window
        As of `BinaryLayer`.
    weight : (out_channels, places, channels) int64
    bias, multiplier, shift : (out_channels, levels) int64 or None
        None: the sums themselves are the result.
    fraction : int
        Bits of the bias behind the point.
    rounding : str
        As of `bitloom.golden.layers.requantise.Requantise`.
    low, high : int
        Smallest and largest requantised sum.
    pool : Window or None
        Of the pool over the results, or of the depthwise convolution.
    average : bool
        Whether the pool is an average, not a maximum.
    sum_range : tuple of int
        Smallest and largest sum, for any features and weights.
    signs : bool
        Whether the results leave as bits, 1 where negative.
    addition : Addition or None
        Of another map to the requantised sums, in front of the pool; None where there is none.
    depthwise : Depthwise or None
        What the pool unit computes in place of a pool.
    """

    name: str
    reads: str
    height: int
    width: int
    window: Window | SummedWindow
    weight: Array
    bias: Array | None
    multiplier: Array | None
    shift: Array | None
    low: int
    high: int
    pool: Window | None
    average: bool
    sum_range: Range
    signs: bool = False
    addition: Addition | None = None
    fraction: int = 0
    rounding: str = "once"
    depthwise: Depthwise | None = None
    joins: str | None = None

    visits = 1

    @cached_property
    def weighted(self) -> WeightedLanes | None:
        """As of `BinaryLayer`."""
        lanes: Array = self.weight.any(axis=1)
        return None if lanes.all() else WeightedLanes(lanes, same=False, even=False)

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def adds(self) -> str | None:
        """Name of the lowered layer whose result this one adds to its own; None where it adds none."""
        return self.addition.adds if self.addition else None

    @property
    def value_range(self) -> Range:
        """Smallest and largest sum, and sum plus bias, for any features; what is behind the point is cut off."""
        return self.sum_range if self.bias is None else with_biases(self.sum_range, self.bias >> self.fraction)

    @property
    def roomy_range(self) -> Range:
        """``value_range`` with room for other biases."""
        return self.sum_range if self.bias is None else with_any_biases(self.sum_range, self.bias >> self.fraction)

    @property
    def raw(self) -> bool:
        """Whether sums are the result."""
        return self.bias is None

    @property
    def levels(self) -> int:
        """Results that a kernel gives."""
        return 1 if self.bias is None else int(self.bias.shape[1])
