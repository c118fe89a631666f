"""Depthwise convolution: kernel k slides over channel k alone; exact integer sums over the valid taps of a window.

TFLite calls it DEPTHWISE_CONV_2D, ONNX and PyTorch a convolution with as many groups as channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array
from bitloom.golden.layer import Map

from .conv import Conv


@dataclass(frozen=True, kw_only=True)
class DepthwiseConv(Conv):
    """Convolution of each channel with a kernel of its own. Attributes are those of `Conv`, with these rules:
    ``out_channels`` is the number of channels of the map that the layer reads, and ``accumulate`` is "popcount".

    Its one array is ``weight``: (out_channels, kernel rows, kernel columns, 1).
    """

    kind: ClassVar[str] = "depthwise_conv"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accumulate != "popcount":
            raise ValueError(f"{self.name}: accumulate must be popcount in a depthwise one, got {self.accumulate}")

    def fan_in(self, source: Map) -> int:
        return self.window(source).taps

    def output(self, source: Map) -> Map:
        if source.channels != self.out_channels:
            rule = f"out_channels must be the {source.channels} channels that it reads"
            raise ValueError(f"{self.name}: {rule}, got {self.out_channels}")
        return super().output(source)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_channels, *self.kernel, 1)}

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        target = self.output(source)
        weight = self.weights(arrays).reshape(self.out_channels, -1)  # (C, taps)
        flat = x.reshape(len(x), source.positions, source.channels)  # (N, H*W, C)
        padded = np.concatenate([flat, np.zeros_like(flat[:, :1])], axis=1)  # position -1: a tap that adds 0
        positions = self.window(source).positions(source.height, source.width)  # (outputs, taps)
        total = np.zeros((len(x), len(positions), self.out_channels), np.int64)
        for tap in range(positions.shape[1]):
            total += padded[:, positions[:, tap]] * weight[:, tap]
        return total.reshape(len(x), *target.shape)


def is_depthwise(weight: Array) -> bool:
    """Whether a convolution with this ``weight`` (O, rows, columns, C) is a depthwise one: as many kernels as channels,
    more than one, and each kernel 0 in other channels than its own."""
    outputs = len(weight)
    channels = weight.shape[3]
    others = ~np.eye(outputs, channels, dtype=bool)[:, None, None]
    return outputs == channels > 1 and not np.any(weight, where=np.broadcast_to(others, weight.shape))


def as_depthwise(layer: Conv) -> DepthwiseConv:
    """The convolution as a depthwise one, whose weights are `own_weights`."""
    return DepthwiseConv(**{field.name: getattr(layer, field.name) for field in fields(Conv)})


def as_plain(layer: Conv) -> Conv:
    """The depthwise or grouped convolution as a plain one, with zeros for other channels (`plain_weights`,
    `grouped.ungrouped_weights`); there 0 is a weight too."""
    weight = TERNARY if layer.weight == BIPOLAR else layer.weight
    plain = {"weight": weight, "real_weights": False}
    return Conv(**{**{field.name: getattr(layer, field.name) for field in fields(Conv)}, **plain})


def own_weights(weight: Array) -> Array:
    """Weights (C, rows, columns, 1) of a depthwise convolution, given as those (C, rows, columns, C) of a plain one."""
    diagonal: Array = np.diagonal(weight, axis1=0, axis2=3)  # (rows, columns, C)
    return np.moveaxis(diagonal, 2, 0)[..., None]


def plain_weights(weight: Array) -> Array:
    """The inverse of `own_weights`: 0 in all channels but a kernel's own."""
    plain: Array = weight * np.eye(len(weight), dtype=weight.dtype)[:, None, None]
    return plain
