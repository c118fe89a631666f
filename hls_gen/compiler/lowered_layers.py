"""Lowered layers: what one trip through an engine computes, by the engine's own rule. hls_gen/compiler/lowering.py
makes them.

Binary engine, which knows only bits:

    sum   = over valid taps, channels c and planes p of coefficient[p] * XNOR(feature[c, p], weight[o, tap, c, p])
    value = (2 if double else 1) * sum - tap_offset * valid taps
    bit t of channel o = value >= threshold[o, t], then OR over the pool window's valid taps

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

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import signed_sum
from bitloom.golden.layers.pool import rounded_quotient
from bitloom.golden.layers.requantise import rounded, rounded_shift
from bitloom.golden.window import Window

from .depthwise import Depthwise


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
    window : Window
        Of the convolution.
    visits : int
        Times that each valid tap is visited, one after another.
    weight : (out_channels, taps * visits, channels, planes) uint8
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
    """

    name: str
    reads: str
    height: int
    width: int
    window: Window
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

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def adds(self) -> str | None:
        """Name of the lowered layer whose result this one adds to its own: None, only integer layers do."""
        return None

    @property
    def raw(self) -> bool:
        """Whether values are the result."""
        return self.threshold is None

    @property
    def levels(self) -> int:
        """Bits that a kernel gives, 1 for values."""
        return 1 if self.threshold is None else int(self.threshold.shape[1])


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
    weight : (out_channels, taps, channels) int64
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
    value_range : tuple of int
        Smallest and largest sum, and sum plus bias, for any features; what is behind the point is cut off.
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
    window: Window
    weight: Array
    bias: Array | None
    multiplier: Array | None
    shift: Array | None
    low: int
    high: int
    pool: Window | None
    average: bool
    value_range: tuple[int, int]
    signs: bool = False
    addition: Addition | None = None
    fraction: int = 0
    rounding: str = "once"
    depthwise: Depthwise | None = None
    joins: str | None = None

    visits = 1

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def adds(self) -> str | None:
        """Name of the lowered layer whose result this one adds to its own; None where it adds none."""
        return self.addition.adds if self.addition else None

    @property
    def raw(self) -> bool:
        """Whether sums are the result."""
        return self.bias is None

    @property
    def levels(self) -> int:
        """Results that a kernel gives."""
        return 1 if self.bias is None else int(self.bias.shape[1])


def run_binary_layer(p: BinaryLayer, features: Array) -> Array:
    """Compute a lowered layer of the binary engine by the engine's own rule.

    Parameters
    ----------
    p : BinaryLayer
    features : (N, H, W, channels, planes) of 0 and 1

    Returns
    -------
    (N, H', W', out_channels) int64 or (N, H', W', out_channels * levels) uint8
        Values where the lowered layer is raw, else bits.
    """
    positions = p.window.positions(p.height, p.width)
    n = len(features)
    flat = features.reshape(n, p.height * p.width, *features.shape[3:])
    total = np.zeros((n, len(positions), p.out_channels), np.int64)
    for place in range(positions.shape[1] * p.visits):
        position = positions[:, place // p.visits]
        match = flat[:, position, None] == p.weight[:, place]  # (N, outputs, O, channels, planes)
        if p.word_channels:
            match = np.logical_or.reduceat(match, np.arange(0, match.shape[3], p.word_channels), axis=3)
        total += (match.sum(axis=3) @ p.coefficient) * (position >= 0)[:, None]
    if p.any_match:
        total = np.minimum(total, 1)
    value: Array = (1 + p.double) * total - p.tap_offset * p.visits * (positions >= 0).sum(axis=1)[:, None]
    rows, columns = p.window.output_size(p.height, p.width)
    value = value.reshape(n, rows, columns, p.out_channels)
    if p.threshold is None:
        return value
    bits: Array = (value[..., None] >= p.threshold).astype(np.uint8).reshape(n, rows, columns, -1)
    if p.pool is None:
        return bits
    taps = p.pool.positions(rows, columns)
    padded = np.concatenate([bits.reshape(n, rows * columns, -1), np.zeros((n, 1, bits.shape[3]), np.uint8)], axis=1)
    pooled: Array = padded[:, taps].max(axis=2)
    return pooled.reshape(n, *p.pool.output_size(rows, columns), -1)


def run_integer_layer(p: IntegerLayer, features: Array, added: Array | None = None) -> Array:
    """Compute a lowered layer of the integer engine by the engine's own rule.

    Parameters
    ----------
    p : IntegerLayer
    features : (N, H, W, channels) integers
    added : (N, H', W', out_channels) integers, optional
        What the addition adds, where the lowered layer has one.

    Returns
    -------
    (N, H', W', out_channels) int64 or (N, H', W', out_channels * levels) int64 or uint8
        Sums where the lowered layer is raw, else results, or bits that are 1 where a result is negative.
    """
    size, n = p.window.output_size(p.height, p.width), len(features)
    x = features.reshape(n, p.height * p.width, -1).astype(np.int64)
    padded = np.concatenate([x, np.zeros_like(x[:, :1])], axis=1)  # position -1: a tap that adds 0
    value = signed_sum(padded, p.window.positions(p.height, p.width), p.weight)  # (N, outputs, O)
    if p.bias is None or p.multiplier is None or p.shift is None:
        return value.reshape(n, *size, -1)
    biased = (value[..., None] << p.fraction) + p.bias  # (N, outputs, O, levels)
    scaled = rounded(biased * p.multiplier, p.shift, p.rounding)
    result: Array = np.clip(scaled, p.low, p.high).reshape(n, len(value[0]), -1)
    if p.addition is not None:
        assert added is not None  # the caller knows which map that is
        result = p.addition.forward(result, added.reshape(result.shape).astype(np.int64))
    if p.pool is not None and p.depthwise is not None:
        result = p.depthwise.forward(result, p.pool.positions(*size))
        size = p.pool.output_size(*size)
    elif p.pool is not None:
        taps = p.pool.positions(*size)  # (outputs, taps)
        low = p.low if p.addition is None else p.addition.low
        filler = 0 if p.average else low
        gathered = np.concatenate([result, np.full_like(result[:, :1], filler)], axis=1)[:, taps]
        count = (taps >= 0).sum(axis=1)[:, None]
        result = rounded_quotient(gathered.sum(axis=2), count) if p.average else gathered.max(axis=2)
        size = p.pool.output_size(*size)
    if p.signs:
        result = (result < 0).astype(np.uint8)
    return result.reshape(n, *size, -1)
