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
    scale, units, addition, pool                   integers
    scale, pool, sign                              bits of the integer engine, where a binary engine reads them

    sums                                           sums that leave

Each but the first may be missing. Thresholds make bits of sums: bit t of
channel o is sum >= limit[o, t]. A scale makes integers of them, as golden/layers/requantise.py does. Feature units may
make other integers of these, such as the entries of a table (golden/layers/lookup.py), and another map may be added to
them (golden/layers/add.py). The binary engine hands on which integers are at least 0, as bits (docs/decisions/0022);
the integer engine hands on bits that are 1 where an integer is below 0, and reads a bit as +1 or -1.

A pool takes the largest of each window's valid taps, which is the OR of bits, or their average; or a pool unit with
weights computes a depthwise convolution in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import signed_sum
from bitloom.golden.window import with_invalid
from bitloom.hls_gen.design.pool_unit import LARGEST, Reduction
from bitloom.hls_gen.design.split_window import SplitWindow

from .actions import Action, ActivationAction, Addition, Depthwise, Scale, Sign, Thresholds, WindowAction
from .ranges import Range
from .workloads import MapReader, Workload

ActionKind = TypeVar("ActionKind", bound=Action)


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
    """Number that each visit of a valid tap takes off the value."""
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
    double: ClassVar[bool] = False
    visits: ClassVar[int] = 1
    accumulate: ClassVar[str] = "popcount"
    word_channels: ClassVar[int] = 0

    def values(self, features: Array, positions: Array) -> Array:
        """The sums of windows; as of `Xnor`, of (N, positions of the map, channels) integers."""
        repeated = positions.shape[1] // self.weight.shape[1]
        return signed_sum(with_invalid(features.astype(np.int64)), positions, np.tile(self.weight, (1, repeated, 1)))


@dataclass(frozen=True)
class FormerTaps:
    """The taps that a former puts side by side in front of a layer: a window former, behind which the kernel is 1 x 1
    (formed_taps.py), or a line former, behind which it has one column (lines.py)."""

    height: int
    width: int
    """height, width: size of the map."""
    split: SplitWindow
    """How it splits the layer's window."""

    def windows(self, features: Array, beside: Array) -> Array:
        """(N, H, W, C, ...) features -> (N, H', W', taps * C, ...); ``beside`` (C, ...) are those beside the map."""
        flat_map = features.reshape(len(features), -1, *features.shape[3:])
        outside = np.broadcast_to(beside, (len(features), 1, *features.shape[3:])).astype(features.dtype)
        padded = np.concatenate([flat_map, outside], axis=1)  # position -1: beside the map
        formed = self.split.formed
        taps = padded[:, formed.positions(self.height, self.width)]  # (N, windows, taps, C, ...)
        size = formed.output_size(self.height, self.width)
        windows: Array = taps.reshape(len(features), *size, -1, *features.shape[4:])
        return windows


@dataclass(frozen=True, kw_only=True, eq=False)
class LoweredLayer(MapReader):
    """One trip through an engine; the rule is in the module's text."""

    arithmetic: Xnor | Multiply
    actions: tuple[Action, ...]
    """Behind the sums, in the order in which they are computed; the first one is an `ActivationAction`."""
    sum_range: Range
    """Smallest and largest sum, for any features."""
    former_taps: FormerTaps | None = None
    """Taps that a former puts side by side in front of the layer; None where the layer reads the map itself."""
    split_pool: SplitWindow | None = None
    """How a line former in front of the pool unit splits the pool's window (lines.py); None where no line is formed."""

    @classmethod
    def of(
        cls, workload: Workload, arithmetic: Xnor | Multiply, actions: Sequence[Action], sum_range: Range
    ) -> "LoweredLayer":
        """The lowered layer of a workload."""
        reader = {item.name: getattr(workload, item.name) for item in fields(MapReader)}
        return cls(**reader, arithmetic=arithmetic, actions=tuple(actions), sum_range=sum_range)

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

    @cached_property
    def activation(self) -> ActivationAction:
        """The action that makes results of sums."""
        first = self.actions[0]
        assert isinstance(first, ActivationAction)
        return first

    @property
    def adds(self) -> str | None:
        """Name of the lowered layer whose result this one adds to its own; None where it adds none."""
        addition = self.action(Addition)
        return addition.adds if addition else None

    @cached_property
    def pool(self) -> WindowAction | None:
        """The action of the pool unit; None where the unit hands results on."""
        return self.action(WindowAction)

    @cached_property
    def depthwise(self) -> Depthwise | None:
        """The action of a pool unit with weights."""
        return self.action(Depthwise)

    @cached_property
    def pooled_window(self) -> SplitWindow | None:
        """Its pool's window, and which of its taps come to the pool unit side by side; None without a pool."""
        return self.split_pool or (SplitWindow(self.pool.window) if self.pool else None)

    @cached_property
    def map_channels(self) -> int:
        """Channels of a tap, as the map has them that it reads, or that a former reads in front of it."""
        channels: int = self.weight.shape[2]
        return channels // self.former_taps.split.tuple_taps if self.former_taps else channels

    @property
    def reduction(self) -> Reduction:
        """How the pool unit makes one value of several. Without a pool each result is the largest of one."""
        return self.pool.reduction if self.pool else LARGEST

    @cached_property
    def scale(self) -> Scale | None:
        """The activation where it requantises."""
        return self.action(Scale)

    @property
    def raw(self) -> bool:
        """Whether its results are raw: sums that leave as they are."""
        return self.activation.raw

    @property
    def result_kind(self) -> str:
        """Which values its map has where the map leaves: a name of `RESULT_KINDS`."""
        return "raw" if self.raw else "bits" if self.binary else "signed"

    @cached_property
    def levels(self) -> int:
        """Results that a kernel gives."""
        return self.activation.levels

    @property
    def makes_bits(self) -> bool:
        """Whether the results are bits."""
        return self.action(Thresholds) is not None or self.action(Sign) is not None

    @cached_property
    def biased_range(self) -> Range:
        """Smallest and largest of all sums, biases, and sums with their bias, what is behind the point cut off: a
        threshold is a bias of its negative, and one that is never reached is sum_range[1] + 1."""
        return self.activation.biased_range(self.sum_range)

    @cached_property
    def roomy_range(self) -> Range:
        """``biased_range`` with room for other biases and thresholds."""
        return self.activation.roomy_range(self.sum_range)

    @property
    def accumulations(self) -> "tuple[LoweredLayer | Depthwise, ...]":
        """The layers that add up sums, each with its range of sums and its scale: this layer, and a depthwise
        convolution behind it."""
        return (self,) if self.depthwise is None else (self, self.depthwise)

    def results(self, features: Array, added: Array | None = None) -> list[Array]:
        """Compute the sums, and what each action makes of them, one behind the other.

        Parameters
        ----------
        features : (N, H, W, channels, planes) of 0 and 1, or (N, H, W, channels) integers
            As the arithmetic takes them.
        added : (N, H', W', out_channels) integers, optional
            Integers that the addition adds, where the lowered layer has one.

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
    def waiting(self) -> int:
        """Number of the one of `results` that waits for the addition of another layer: the integers in front of a sign,
        where there is one, else the last one."""
        return next((place for place, action in enumerate(self.actions) if isinstance(action, Sign)), len(self.actions))

    def forward(self, features: Array, added: Array | None = None) -> Array:
        """The map for features; parameters as of `results`."""
        return self.results(features, added)[-1]
