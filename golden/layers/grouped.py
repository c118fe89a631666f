"""Grouped convolution: channels and kernels are cut into as many groups, and the kernels of a group slide over the
channels of the same group alone; exact integer sums over the valid taps of a window.

Attribute ``group`` of an ONNX Conv, ``groups`` of PyTorch's; a TFLite CONV_2D whose filters have fewer channels than
its input. A depthwise convolution with a channel multiplier above 1 is one, too: of as many groups as channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import gcd
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map

from .conv import Conv, signed_sum
from .depthwise import as_depthwise, is_depthwise, own_weights


@dataclass(frozen=True, kw_only=True)
class GroupedConv(Conv):
    """Convolution by groups. Attributes are those of `Conv`, ``accumulate`` being "popcount", and one more.

    Its one array is ``weight``: (out_channels, kernel rows, kernel columns, in_channels / groups).

    Attributes
    ----------
    groups : int
        Groups, >= 2; they divide the channels that are read and ``out_channels``.
    """

    kind: ClassVar[str] = "grouped_conv"
    groups: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accumulate != "popcount":
            raise ValueError(f"{self.name}: accumulate must be popcount in a grouped one, got {self.accumulate}")
        if type(self.groups) is not int or self.groups < 2:
            raise ValueError(f"{self.name}: groups must be an integer >= 2, got {self.groups!r}")
        if self.out_channels % self.groups:
            raise ValueError(f"{self.name}: groups must divide out_channels = {self.out_channels}, got {self.groups}")

    def fan_in(self, source: Map) -> int:
        return self.window(source).taps * (source.channels // self.groups)

    def output(self, source: Map) -> Map:
        if source.channels % self.groups:
            rule = f"groups must divide the {source.channels} channels that it reads"
            raise ValueError(f"{self.name}: {rule}, got {self.groups}")
        return super().output(source)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_channels, *self.kernel, source.channels // self.groups)}

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        target = self.output(source)
        flat = x.reshape(len(x), source.positions, source.channels)  # (N, H*W, C)
        padded = np.concatenate([flat, np.zeros_like(flat[:, :1])], axis=1)  # position -1: a tap that adds 0
        positions = self.window(source).positions(source.height, source.width)  # (outputs, taps)
        channels = source.channels // self.groups
        weight = self.weights(arrays).reshape(self.groups, -1, positions.shape[1], channels)
        features = np.split(padded, self.groups, axis=2)  # (N, H*W + 1, channels) each
        sums = [signed_sum(group, positions, kernels) for group, kernels in zip(features, weight)]
        return np.concatenate(sums, axis=2).reshape(len(x), *target.shape)


def groups_of(weight: Array) -> int:
    """The most groups that a convolution with this ``weight`` (O, rows, columns, C) can be cut into, each kernel being
    0 in the channels of other groups than its own; 1 where there is no such cut."""
    outputs = len(weight)
    channels = weight.shape[3]
    used = weight.any(axis=(1, 2))  # (O, C)
    most = gcd(outputs, channels)
    return next(
        n for n in range(most, 0, -1) if most % n == 0 and not (used & ~_same_group(outputs, channels, n)).any()
    )


def as_grouped(layer: Conv, groups: int) -> GroupedConv:
    """The convolution as one of so many groups, whose weights are `grouped_weights`."""
    return GroupedConv(**{field.name: getattr(layer, field.name) for field in fields(Conv)}, groups=groups)


def by_groups(layer: Conv, weight: Array) -> tuple[Conv, Array]:
    """A plain convolution and its ``weight`` as a depthwise or a grouped one with as many groups as there are, whose
    weights have no zeros for other groups' channels; as they are where there are no groups."""
    if layer.accumulate != "popcount":
        return layer, weight
    if is_depthwise(weight):
        return as_depthwise(layer), own_weights(weight)
    groups = groups_of(weight)
    return (as_grouped(layer, groups), grouped_weights(weight, groups)) if groups > 1 else (layer, weight)


def grouped_weights(weight: Array, groups: int) -> Array:
    """Weights (O, rows, columns, C / groups) of a grouped convolution, given as those (O, rows, columns, C) of a plain
    one."""
    width = weight.shape[3] // groups
    return np.concatenate([part[..., g * width : (g + 1) * width] for g, part in enumerate(np.split(weight, groups))])


def ungrouped_weights(weight: Array, channels: int) -> Array:
    """The inverse of `grouped_weights`: 0 in all of ``channels`` but those of a kernel's own group."""
    groups = channels // weight.shape[3]
    plain: Array = np.tile(weight, groups) * _same_group(len(weight), channels, groups)[:, None, None]
    return plain


def _same_group(outputs: int, channels: int, groups: int) -> Array:
    """(outputs, channels) of bool: whether they are of the same group."""
    group = np.arange(groups)
    same: Array = np.repeat(group, outputs // groups)[:, None] == np.repeat(group, channels // groups)
    return same
