"""Lowered layers: what one trip through an engine computes, by the engine's own rule. hls_gen/compiler/lowering.py
makes them.

    features --arithmetic--> sums --action--> ... --action--> map

The arithmetic is that of an engine. The binary one knows bits alone:

    sum   = over valid taps, channels c and planes p of coefficient[p] * XNOR(feature[c, p], weight[o, tap, c, p])
    value = (2 if double else 1) * sum - tap_offset * valid taps

A layer that accumulates by OR has in place of the sum 1 where any XNOR of a valid tap is 1, else 0; the value is that
bit. One that takes the OR of each word has as its sum the number of words, of valid taps, in which any XNOR is 1.

The integer engine multiplies:

    sum   = over valid taps and channels of feature[c] * weight[o, tap, c]

The actions behind the sums stand in a list, in the order in which they are computed:

    thresholds, pool                               bits of sums
    scale, addition, sign, pool                    signs of integers, which the binary engine hands on
    scale, entries, addition, pool                 integers
    scale, pool, sign                              bits of the integer engine, where a binary engine reads them

Each but the first may be missing, and without any action the sums are the map. Thresholds make bits of sums: bit t of
channel o is sum >= limit[o, t]. A scale makes integers of them, as golden/layers/requantise.py does. Each of these
may become an entry of a table (golden/layers/lookup.py), and to these another map may be added (golden/layers/add.py).
The binary engine hands on which integers are at least 0, as bits (docs/decisions/0022); the integer engine hands on
bits that are 1 where an integer is below 0, and reads a bit as +1 or -1.

A pool takes the largest of each window's valid taps, which is the OR of bits, or their average; or a pool unit with
weights computes a depthwise convolution in its place.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import signed_sum
from bitloom.golden.layers.lookup import ENTRIES
from bitloom.golden.layers.multiply import scaled_product
from bitloom.golden.layers.pool import rounded_quotient
from bitloom.golden.layers.requantise import rounded, rounded_shift, rounded_up
from bitloom.golden.window import Window

from .margins import Range, held_bits, signed_bits, with_any_biases, with_any_thresholds, with_biases
from .parts import MapReader

ActionKind = TypeVar("ActionKind", bound="Action")


@dataclass(frozen=True, kw_only=True, eq=False)
class Xnor:
    """The arithmetic of the binary engine; the rule is in the module's text."""

    weight: Array
    """(out_channels, places * visits, channels, planes) uint8: 0 and 1, where 1 stands for +1."""
    coefficient: Array
    """(planes,) int64: +-2^k of each plane."""
    visits: int
    """Times that each valid tap is visited, one after another."""
    double: bool
    """Whether the sum counts twice."""
    tap_offset: int
    """What each visit of a valid tap takes off the value."""
    accumulate: str = "popcount"
    """"popcount", "or" or "or_words", as of `bitloom.golden.layers.conv.Weighted`. With "or" double is False, and
    tap_offset 0."""
    word_channels: int = 0
    """Channels of a word whose products are ORed, the last word of a tap having what is left; 0: products are
    counted."""
    magnitude: Array | None = None
    """uint8 array or None: of a layer with real weights, in the shape of ``weight``: what a binariser of kernels is
    given beside the signs (hls_gen/compiler/fixed_kernels.py); nothing is computed with it. None: 1 and 0, as the
    weights are."""

    @property
    def magnitudes(self) -> Array:
        """Magnitudes of all weights."""
        return self.weight if self.magnitude is None else self.magnitude

    def values(self, features: Array, positions: Array) -> Array:
        """Compute the values of windows.

        Parameters
        ----------
        features : (N, positions of the map, channels, planes) of 0 and 1
        positions : (windows, taps) int64
            Position of each tap, -1 for an invalid one.

        Returns
        -------
        (N, windows, out_channels) int64
        """
        total = np.zeros((len(features), len(positions), len(self.weight)), np.int64)
        for place in range(positions.shape[1] * self.visits):
            position = positions[:, place // self.visits]
            match = features[:, position, None] == self.weight[:, place % self.weight.shape[1]]
            if self.word_channels:
                match = np.logical_or.reduceat(match, np.arange(0, match.shape[3], self.word_channels), axis=3)
            total += (match.sum(axis=3) @ self.coefficient) * (position >= 0)[:, None]
        if self.accumulate == "or":
            total = np.minimum(total, 1)
        valid = (positions >= 0).sum(axis=1)[:, None]
        value: Array = (1 + self.double) * total - self.tap_offset * self.visits * valid
        return value


@dataclass(frozen=True, kw_only=True, eq=False)
class Multiply:
    """The arithmetic of the integer engine."""

    weight: Array
    """(out_channels, places, channels) int64."""
    visits: ClassVar[int] = 1
    accumulate: ClassVar[str] = "popcount"
    word_channels: ClassVar[int] = 0

    def values(self, features: Array, positions: Array) -> Array:
        """The sums of windows; as of `Xnor`, of (N, positions of the map, channels) integers."""
        x = features.astype(np.int64)
        padded = np.concatenate([x, np.zeros_like(x[:, :1])], axis=1)  # position -1: a tap that adds 0
        repeated = positions.shape[1] // self.weight.shape[1]
        return signed_sum(padded, positions, np.tile(self.weight, (1, repeated, 1)))


class Action(ABC):
    """What a lowered layer computes behind its sums, one action of several."""

    @property
    def needs(self) -> dict[str, int]:
        """What the action needs of an NPU's capacities, by name (hls_gen/compiler/needs.py)."""
        return {}

    @abstractmethod
    def forward(self, values: Array, added: Array | None = None) -> Array:
        """What the action makes of (N, H, W, channels) values; ``added`` is the map that an addition adds to them."""


class FeatureAction(Action):
    """An action that makes integers, which it clips: ``low`` and ``high`` are the smallest and the largest."""

    low: int
    high: int

    @property
    def needs(self) -> dict[str, int]:
        return {"skip_bits": held_bits([(self.low, self.high)])}


@dataclass(frozen=True, eq=False)
class Thresholds(Action):
    """Bits of sums."""

    limit: Array
    """(out_channels, levels) int64: a bit is 1 where the sum is at least that."""

    @property
    def levels(self) -> int:
        """Bits that a kernel gives."""
        return int(self.limit.shape[1])

    def forward(self, values: Array, added: Array | None = None) -> Array:
        """(..., out_channels * levels) uint8 bits of (..., out_channels) sums."""
        bits: Array = (values[..., None] >= self.limit).astype(np.uint8).reshape(*values.shape[:-1], -1)
        return bits

    def biased_range(self, sums: Range) -> Range:
        """Smallest and largest of sums in a range, biases, and sums with their bias: a limit is a bias of its negative,
        and one that is never reached is one more than the largest sum."""
        return with_biases(sums, np.append(-self.limit, -1 - sums[1]))

    def roomy_range(self, sums: Range) -> Range:
        """``biased_range`` with room for other limits."""
        return with_any_thresholds(sums)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scale(FeatureAction):
    """Requantisation of sums."""

    bias: Array
    multiplier: Array
    shift: Array
    """bias, multiplier, shift: (out_channels, levels) int64."""
    fraction: int = 0
    """Bits of the bias behind the point."""
    rounding: str = "once"
    """As of `bitloom.golden.layers.requantise.Requantise`."""
    low: int
    high: int
    """low, high: smallest and largest result."""

    @property
    def levels(self) -> int:
        """Results that a kernel gives."""
        return int(self.bias.shape[1])

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Multipliers and shifts as the hardware has them: in lowest terms, unless sums are rounded twice. There the
        first rounding takes a fixed number of bits off the product with the multiplier as it was given."""
        factors = self.multiplier, self.shift
        return factors if self.rounding == "twice" else lowest_terms(*factors)

    @cached_property
    def multiplier_bits(self) -> int:
        """Width of a multiplier that holds all of ``factors``; 0 where every multiplier is 1."""
        most = int(self.factors[0].max())
        return most.bit_length() if most > 1 else 0

    @property
    def needs(self) -> dict[str, int]:
        return super().needs | {
            "multiplier_bits": self.multiplier_bits,
            "bias_fraction_bits": self.fraction,
            "half_even": int(self.rounding == "even"),
            "round_twice": int(self.rounding == "twice"),
        }

    @property
    def whole_bias(self) -> Array:
        """Biases without what is behind the point."""
        whole: Array = self.bias >> self.fraction
        return whole

    def biased_range(self, sums: Range) -> Range:
        """Smallest and largest of sums in a range, biases, and sums with their bias; what is behind the point is cut
        off."""
        return with_biases(sums, self.whole_bias)

    def roomy_range(self, sums: Range) -> Range:
        """``biased_range`` with room for other biases."""
        return with_any_biases(sums, self.whole_bias)

    def forward(self, values: Array, added: Array | None = None) -> Array:
        """(..., out_channels * levels) integers of (..., out_channels) sums."""
        biased = (values[..., None] << self.fraction) + self.bias
        scaled = rounded(biased * self.multiplier, self.shift, self.rounding)
        result: Array = np.clip(scaled, self.low, self.high).reshape(*values.shape[:-1], -1)
        return result


def lowest_terms(multiplier: Array, shift: Array) -> tuple[Array, Array]:
    """The same factors multiplier / 2^shift with multipliers as small as can be; rounding is the same.

    Of multiplier * x + 2^(shift - 1), 2^k is a factor where it is one of the multiplier and k < shift; where k is
    shift, there is nothing to round.

    Parameters
    ----------
    multiplier, shift
        int64 of the same shape; multipliers >= 1, shifts >= 0.

    Returns
    -------
    tuple of ndarray
        Multipliers and shifts; each multiplier is odd, or its shift is 0.
    """
    power = multiplier & -multiplier  # the largest power of two that is a factor
    twos = np.minimum(np.log2(power).astype(np.int64), shift)
    return multiplier >> twos, shift - twos


@dataclass(frozen=True, kw_only=True, eq=False)
class Entries(FeatureAction):
    """A table with an entry for each integer."""

    values: Array
    """(256,) int64: the entry of integer x is number x mod 256."""
    low: int
    high: int
    """low, high: smallest and largest entry that the layer's encoding has."""

    @property
    def needs(self) -> dict[str, int]:
        return super().needs | {"lookup_rows": len(self.values)}

    def forward(self, values: Array, added: Array | None = None) -> Array:
        result: Array = self.values[values % ENTRIES]
        return result


@dataclass(frozen=True, kw_only=True)
class Addition(FeatureAction):
    """The addition of a map to what a lowered layer has requantised, or the product of both:

    t = kept * factor_kept + added * factor_added + bias
    result = clip(t / 2^shift to the nearest integer, halves away from zero; low, high)

    Where it multiplies, t is kept * added * factor_added, which the bias moves away from zero, and halves go upwards.
    """

    adds: str
    """Name of the lowered layer whose result is added."""
    factor_kept: int
    factor_added: int
    bias: int
    shift: int
    """factor_kept, factor_added, bias, shift: as the arrays of `bitloom.golden.layers.add.Pairwise`; where it
    multiplies, factor_kept is 0."""
    multiplies: bool = False
    """Whether both are multiplied."""
    low: int
    high: int
    """low, high: smallest and largest result."""

    @property
    def needs(self) -> dict[str, int]:
        return super().needs | {
            "add_factor_bits": max(signed_bits(self.factor_kept), signed_bits(self.factor_added)),
            "add_bias_bits": signed_bits(self.bias),
            "map_products": int(self.multiplies),
        }

    def forward(self, values: Array, added: Array | None = None) -> Array:
        assert added is not None  # the caller knows which map that is
        shift = np.asarray(self.shift)
        if self.multiplies:
            divided = rounded_up(scaled_product(values, added, self.factor_added, self.bias), shift)
        else:
            total = values * self.factor_kept + added.astype(np.int64) * self.factor_added + self.bias
            divided = rounded_shift(total, shift)
        result: Array = np.clip(divided, self.low, self.high)
        return result


@dataclass(frozen=True)
class Sign(Action):
    """Bits of integers."""

    negative: bool = False
    """Whether a bit is 1 where the integer is below 0; else it is 1 where the integer is at least 0."""

    def forward(self, values: Array, added: Array | None = None) -> Array:
        bits: Array = (values < 0 if self.negative else values >= 0).astype(np.uint8)
        return bits


LARGEST = frozenset({"lowest"})
"""Flags of a line former in front of what takes the largest tap: one beside the map is the lowest value."""


@dataclass(frozen=True, kw_only=True)
class WindowAction(Action):
    """An action that the pool unit computes: a value of each channel for each window."""

    window: Window

    @property
    @abstractmethod
    def marks(self) -> frozenset[str]:
        """What the pool unit is told: those of `MARKS` (hls_gen/design/memories/pool_unit.py) that are 1."""

    @property
    @abstractmethod
    def line_flags(self) -> frozenset[str]:
        """What a line former in front of the pool unit is told of the layer: flags of `FormedLines`."""

    def forward(self, values: Array, added: Array | None = None) -> Array:
        n, *size, channels = values.shape
        flat = values.reshape(n, -1, channels)
        positions = self.window.positions(size[0], size[1])
        taps = np.concatenate([flat, np.zeros_like(flat[:, :1])], axis=1)[:, positions]  # 0 at position -1
        return self.of_taps(taps, positions >= 0).reshape(n, *self.window.output_size(size[0], size[1]), channels)

    @abstractmethod
    def of_taps(self, taps: Array, valid: Array) -> Array:
        """(N, outputs, channels) results of the taps (N, outputs, taps, channels) that windows read, which are 0 where
        they are not ``valid`` (outputs, taps)."""


@dataclass(frozen=True, kw_only=True)
class Pooling(WindowAction):
    """A pool over results."""

    average: bool = False
    """Whether it is an average of integers, not a maximum."""

    @property
    def marks(self) -> frozenset[str]:
        return frozenset({"average"} if self.average else ())

    @property
    def line_flags(self) -> frozenset[str]:
        return frozenset() if self.average else LARGEST

    def of_taps(self, taps: Array, valid: Array) -> Array:
        if self.average:
            return rounded_quotient(taps.sum(axis=2), valid.sum(axis=1)[:, None])
        largest: Array = np.where(valid[..., None], taps, np.iinfo(taps.dtype).min).max(axis=2)
        return largest


@dataclass(frozen=True, kw_only=True, eq=False)
class Depthwise(WindowAction):
    """A depthwise convolution behind a lowered layer of the integer engine, computed by a pool unit with weights:

    sum    = over valid taps of feature[c] * weight[tap, c], for each channel c
    result = requantised sum (golden/layers/requantise.py)
    """

    name: str
    """The convolution's."""
    weight: Array
    """(taps, channels) int64."""
    scale: Scale
    sum_range: Range
    """Smallest and largest sum, for any features and weights."""

    @property
    def marks(self) -> frozenset[str]:
        return frozenset({"depthwise"})

    @property
    def line_flags(self) -> frozenset[str]:
        return frozenset()

    @property
    def needs(self) -> dict[str, int]:
        return self.scale.needs

    @cached_property
    def biased_range(self) -> Range:
        """Smallest and largest sum, bias, and sum plus bias, for any features; what is behind the point is cut off."""
        return self.scale.biased_range(self.sum_range)

    @cached_property
    def roomy_range(self) -> Range:
        """``biased_range`` with room for other biases."""
        return self.scale.roomy_range(self.sum_range)

    def of_taps(self, taps: Array, valid: Array) -> Array:
        return self.scale.forward((taps * self.weight).sum(axis=2))


@dataclass(frozen=True)
class FormedTaps:
    """What a former reads in front of a layer: a window former, behind which the kernel is 1 x 1 (formed_taps.py), or a
    line former, behind which it has one column (lines.py)."""

    height: int
    width: int
    """height, width: size of the map."""
    window: Window
    """Whose taps it puts side by side."""

    def windows(self, features: Array, beside: Array) -> Array:
        """(N, H, W, C, ...) features -> (N, H', W', taps * C, ...); ``beside`` (C, ...) are those beside the map."""
        flat_map = features.reshape(len(features), -1, *features.shape[3:])
        outside = np.broadcast_to(beside, (len(features), 1, *features.shape[3:])).astype(features.dtype)
        padded = np.concatenate([flat_map, outside], axis=1)  # position -1: beside the map
        taps = padded[:, self.window.positions(self.height, self.width)]  # (N, windows, taps, C, ...)
        size = self.window.output_size(self.height, self.width)
        windows: Array = taps.reshape(len(features), *size, -1, *features.shape[4:])
        return windows


@dataclass(frozen=True, kw_only=True, eq=False)
class LoweredLayer(MapReader):
    """One trip through an engine; the rule is in the module's text."""

    arithmetic: Xnor | Multiply
    actions: tuple[Action, ...] = ()
    """Behind the sums, in the order in which they are computed; none where sums are the result."""
    sum_range: Range
    """Smallest and largest sum, for any features."""
    formed_taps: FormedTaps | None = None
    """What a former reads in front of the layer; None where the layer reads the map itself."""
    pool_lines: bool = False
    """Whether the taps of a line of the pool's kernel come side by side, from a line former (lines.py)."""

    @property
    def weight(self) -> Array:
        """Weights of the arithmetic."""
        return self.arithmetic.weight

    @property
    def binary(self) -> bool:
        """Whether the binary engine computes it."""
        return isinstance(self.arithmetic, Xnor)

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.arithmetic.weight)

    @property
    def visits(self) -> int:
        """Times that each valid tap is visited."""
        return self.arithmetic.visits

    def action(self, kind: type[ActionKind]) -> ActionKind | None:
        """The action of a class; None where there is none."""
        return next((action for action in self.actions if isinstance(action, kind)), None)

    @property
    def activation(self) -> Thresholds | Scale | None:
        """What makes results of sums; None where sums are the result."""
        return self.action(Thresholds) or self.scale

    @property
    def entries(self) -> Entries | None:
        """The table that integers are looked up in; None where they stay as they are."""
        return self.action(Entries)

    @property
    def adds(self) -> str | None:
        """Name of the lowered layer whose result this one adds to its own; None where it adds none."""
        addition = self.action(Addition)
        return addition.adds if addition else None

    @property
    def pool(self) -> WindowAction | None:
        """What the pool unit computes; None where it hands results on."""
        return self.action(WindowAction)

    @property
    def depthwise(self) -> Depthwise | None:
        """What the pool unit computes where it has weights."""
        return self.action(Depthwise)

    @property
    def pool_line_flags(self) -> frozenset[str]:
        """What a line former in front of the pool unit is told. Without a pool each result is the largest of one."""
        return self.pool.line_flags if self.pool else LARGEST

    @property
    def scale(self) -> Scale | None:
        """The activation where it requantises."""
        return self.action(Scale)

    @property
    def raw(self) -> bool:
        """Whether sums are the result."""
        return not self.actions

    @property
    def levels(self) -> int:
        """Results that a kernel gives."""
        return 1 if self.activation is None else self.activation.levels

    @property
    def makes_bits(self) -> bool:
        """Whether the results are bits."""
        return self.action(Thresholds) is not None or self.action(Sign) is not None

    @cached_property
    def biased_range(self) -> Range:
        """Smallest and largest of all sums, biases, and sums with their bias, what is behind the point cut off: a
        threshold is a bias of its negative, and one that is never reached is sum_range[1] + 1."""
        if self.activation is None:
            return with_biases(self.sum_range, np.zeros(1, np.int64))
        return self.activation.biased_range(self.sum_range)

    @cached_property
    def roomy_range(self) -> Range:
        """``biased_range`` with room for other biases and thresholds."""
        return self.biased_range if self.activation is None else self.activation.roomy_range(self.sum_range)

    @property
    def accumulations(self) -> "tuple[LoweredLayer | Depthwise, ...]":
        """What adds up sums, each with its range of sums and its scale: this layer, and a depthwise convolution behind
        it."""
        return (self,) if self.depthwise is None else (self, self.depthwise)

    def results(self, features: Array, added: Array | None = None) -> list[Array]:
        """Compute the sums, and what each action makes of them, one behind the other.

        Parameters
        ----------
        features : (N, H, W, channels, planes) of 0 and 1, or (N, H, W, channels) integers
            As the arithmetic takes them.
        added : (N, H', W', out_channels) integers, optional
            What the addition adds, where the lowered layer has one.

        Returns
        -------
        list of array
            (N, H', W', out_channels) int64 sums; then (N, H', W', out_channels * levels) bits, uint8, or integers, with
            the pool's size from the pool on.
        """
        n = len(features)
        flat = features.reshape(n, self.height * self.width, *features.shape[3:])
        sums = self.arithmetic.values(flat, self.window.positions(self.height, self.width))
        results = [sums.reshape(n, *self.window.output_size(self.height, self.width), -1)]
        for action in self.actions:
            results.append(action.forward(results[-1], added))
        return results

    @property
    def kept(self) -> int:
        """Which of ``results`` an addition adds: the integers in front of a sign, else the last result."""
        return next((place for place, action in enumerate(self.actions) if isinstance(action, Sign)), len(self.actions))

    def forward(self, features: Array, added: Array | None = None) -> Array:
        """The map for features; parameters as of `results`."""
        return self.results(features, added)[-1]
