"""Convolution and dense layer: exact integer sums over the valid taps of a window (spec A1, A2, B11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .encoding import BIPOLAR, Array, Encoding, signed, signed_bits
from .layer import Layer, Map
from .window import Pair, Sides, Window


def product_range(source: Encoding, weight: Encoding) -> tuple[int, int]:
    """Smallest and largest product of a feature and a weight."""
    corners = [x * w for x in (source.low, source.high) for w in (weight.low, weight.high)]
    return min(corners), max(corners)


@dataclass(frozen=True, kw_only=True)
class Weighted(Layer):
    """A layer that sums feature times weight. Its output are the accumulators, exact signed integers.

    out_channels : kernels (DON), >= 1.
    weight : encoding of the weights.
    Array ``weight``: (out_channels, kernel rows, kernel columns, in_channels), channel fastest (spec A4).
    """

    out_channels: int
    weight: Encoding = BIPOLAR

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.out_channels, int) or self.out_channels < 1:
            raise ValueError(f"{self.name}: out_channels must be an integer >= 1, got {self.out_channels!r}")

    def window(self, source: Map) -> Window:
        """The window that slides over ``source``."""
        raise NotImplementedError

    def fan_in(self, source: Map) -> int:
        """Products of a whole window."""
        return self.window(source).taps * source.channels

    def accumulator_range(self, source: Map) -> tuple[int, int]:
        """Smallest and largest sum that any weights and any features can give."""
        low, high = product_range(source.encoding, self.weight)
        return min(low * self.fan_in(source), 0), max(high * self.fan_in(source), 0)

    def output(self, source: Map) -> Map:
        rows, columns = self.window(source).output_size(source.height, source.width)
        if rows < 1 or columns < 1:
            raise ValueError(
                f"{self.name}: the window must fit the padded map, got kernel {self.window(source).kernel} "
                f"on {source.height} x {source.width}"
            )
        bits = signed_bits(*self.accumulator_range(source))
        if bits > 62:
            raise ValueError(f"{self.name}: accumulators must fit 62 bits, got {bits} for fan-in {self.fan_in(source)}")
        return Map(height=rows, width=columns, channels=self.out_channels, encoding=signed(bits))

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_channels, *self.window(source).kernel, source.channels)}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        super().check_arrays(arrays, source)
        self.weight.check(f"{self.name}.weight", arrays["weight"])

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        target = self.output(source)
        weight = arrays["weight"].astype(np.int64).reshape(self.out_channels, -1, source.channels)  # (O, taps, C)
        flat = x.reshape(len(x), source.positions, source.channels)  # (N, H*W, C)
        padded = np.concatenate([flat, np.zeros_like(flat[:, :1])], axis=1)  # position -1: a tap that adds 0
        positions = self.window(source).positions(source.height, source.width)  # (outputs, taps)
        total = np.zeros((len(x), target.positions, self.out_channels), np.int64)
        for tap in range(positions.shape[1]):
            total += padded[:, positions[:, tap]] @ weight[:, tap].T
        return total.reshape(len(x), *target.shape)


@dataclass(frozen=True, kw_only=True)
class Conv(Weighted):
    """2-D convolution. kernel, stride: (rows, columns); padding: (top, left, bottom, right)."""

    kind: ClassVar[str] = "conv"
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Sides = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.window(None).check(self.name)

    def window(self, source: Map | None) -> Window:
        return Window(kernel=self.kernel, stride=self.stride, padding=self.padding)


@dataclass(frozen=True, kw_only=True)
class Dense(Weighted):
    """Fully connected layer: a convolution whose one window is the whole map."""

    kind: ClassVar[str] = "dense"

    def window(self, source: Map) -> Window:
        return Window(kernel=(source.height, source.width))
