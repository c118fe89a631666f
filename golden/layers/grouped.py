"""Convolutions by groups: channels and kernels are cut into as many groups, and the kernels of a group slide over the
channels of the same group alone; exact integer sums over the valid taps of a window.

A grouped convolution is attribute ``group`` of an ONNX Conv, ``groups`` of PyTorch's; a TFLite CONV_2D whose filters
have fewer channels than its input. A depthwise convolution has a channel and a kernel a group: kernel k reads channel k
alone. TFLite calls it DEPTHWISE_CONV_2D; with a channel multiplier above 1 it is a grouped one, of as many groups as
channels.
"""

from dataclasses import dataclass, fields
from math import gcd
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array
from bitloom.golden.layer import Map

from .conv import Conv, signed_sum


class ConvByGroups(Conv):
    """Convolution by ``groups``. Attributes are those of `Conv`; ``accumulate`` is "popcount".

    Its one array is ``weight``: (out_channels, kernel rows, kernel columns, in_channels / groups).
    """

    groups: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accumulate != "popcount":
            kind = self.kind.removesuffix("_conv")
            raise ValueError(f"{self.name}: accumulate must be popcount in a {kind} one, got {self.accumulate}")

    def fan_in(self, source: Map) -> int:
        return self.window(source).taps * (source.channels // self.groups)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_channels, *self.kernel, source.channels // self.groups)}


@dataclass(frozen=True, kw_only=True)
class DepthwiseConv(ConvByGroups):
    """Convolution of each channel with a kernel of its own. Attributes are those of `Conv`, with these rules:
    ``out_channels`` is the number of channels of the map that the layer reads, and ``accumulate`` is "popcount".

    Its one array is ``weight``: (out_channels, kernel rows, kernel columns, 1).
    """

    kind: ClassVar[str] = "depthwise_conv"

    @property
    def groups(self) -> int:  # type: ignore[override]
        """As many as channels."""
        return self.out_channels

    def output(self, source: Map) -> Map:
        if source.channels != self.out_channels:
            rule = f"out_channels must be the {source.channels} channels that it reads"
            raise ValueError(f"{self.name}: {rule}, got {self.out_channels}")
        return super().output(source)

    def accumulated(self, padded: Array, positions: Array, weights: Array) -> Array:
        weight = weights.reshape(self.out_channels, -1)  # (C, taps)
        total = np.zeros((len(padded), len(positions), self.out_channels), np.int64)
        for tap in range(positions.shape[1]):
            total += padded[:, positions[:, tap]] * weight[:, tap]
        return total


@dataclass(frozen=True, kw_only=True)
class GroupedConv(ConvByGroups):
    """Convolution by groups. Attributes are those of `Conv`, ``accumulate`` being "popcount", and one more.

    Its one array is ``weight``: (out_channels, kernel rows, kernel columns, in_channels / groups).
    """

    kind: ClassVar[str] = "grouped_conv"
    groups: int
    """Groups, >= 2; they divide the channels that are read and ``out_channels``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.groups) is not int or self.groups < 2:
            raise ValueError(f"{self.name}: groups must be an integer >= 2, got {self.groups!r}")
        if self.out_channels % self.groups:
            raise ValueError(f"{self.name}: groups must divide out_channels = {self.out_channels}, got {self.groups}")

    def output(self, source: Map) -> Map:
        if source.channels % self.groups:
            rule = f"groups must divide the {source.channels} channels that it reads"
            raise ValueError(f"{self.name}: {rule}, got {self.groups}")
        return super().output(source)

    def accumulated(self, padded: Array, positions: Array, weights: Array) -> Array:
        features = np.split(padded, self.groups, axis=2)  # (N, H*W + 1, channels of a group) each
        outputs = len(weights) // self.groups
        kernels = weights.reshape(self.groups, outputs, positions.shape[1], -1)  # (groups, outputs, taps, channels)
        sums = [signed_sum(group, positions, weight) for group, weight in zip(features, kernels)]
        return np.concatenate(sums, axis=2)


def groups_of(weight: Array) -> int:
    """The most groups that a convolution with this ``weight`` (O, rows, columns, C) can be cut into, each kernel being
    0 in the channels of other groups than its own; 1 where there is no such cut."""
    most = gcd(len(weight), weight.shape[3])
    return next(groups for groups in range(most, 0, -1) if most % groups == 0 and _splits(weight, groups))


def is_depthwise(weight: Array) -> bool:
    """Whether a convolution with this ``weight`` (O, rows, columns, C) is a depthwise one: as many kernels as channels,
    more than one, and each kernel 0 in other channels than its own."""
    channels = weight.shape[3]
    return len(weight) == channels > 1 and _splits(weight, channels)


def as_depthwise(layer: Conv) -> DepthwiseConv:
    """The convolution as a depthwise one, whose weights are `grouped_weights` of as many groups as channels."""
    return DepthwiseConv(**_fields(layer))


def as_grouped(layer: Conv, groups: int) -> GroupedConv:
    """The convolution as one of so many groups, whose weights are `grouped_weights`."""
    return GroupedConv(**_fields(layer), groups=groups)


def as_plain(layer: Conv) -> Conv:
    """The depthwise or grouped convolution as a plain one, with zeros for other channels (`ungrouped_weights`); there 0
    is a weight too."""
    weight = TERNARY if layer.weight == BIPOLAR else layer.weight
    return Conv(**_fields(layer) | {"weight": weight, "real_weights": False})


def by_groups(layer: Conv, weight: Array) -> tuple[Conv, Array]:
    """A plain convolution and its ``weight`` as a depthwise or a grouped one with as many groups as there are, whose
    weights have no zeros for other groups' channels; as they are where there are no groups."""
    groups = groups_of(weight) if layer.accumulate == "popcount" else 1
    if groups == 1:
        return layer, weight
    return by_so_many(layer, groups, weight.shape[3]), grouped_weights(weight, groups)


def by_so_many(layer: Conv, groups: int, channels: int) -> Conv:
    """A plain convolution of a map of ``channels`` as a depthwise or a grouped one of so many groups, more than 1."""
    return as_depthwise(layer) if groups == channels == layer.out_channels else as_grouped(layer, groups)


def grouped_weights(weight: Array, groups: int) -> Array:
    """Weights (O, rows, columns, C / groups) of a grouped convolution, given as those (O, rows, columns, C) of a plain
    one."""
    width = weight.shape[3] // groups
    return np.concatenate([part[..., g * width : (g + 1) * width] for g, part in enumerate(np.split(weight, groups))])


def ungrouped_weights(weight: Array, channels: int) -> Array:
    """The inverse of `grouped_weights`: 0 in all of ``channels`` but those of a kernel's own group."""
    outputs, rows, columns, own = weight.shape
    groups = channels // own
    group = np.arange(groups)
    plain = np.zeros((groups, outputs // groups, rows, columns, groups, own), weight.dtype)
    plain[group, :, :, :, group] = weight.reshape(groups, outputs // groups, rows, columns, own)
    return plain.reshape(outputs, rows, columns, channels)


def _same_group(outputs: int, channels: int, groups: int) -> Array:
    """(outputs, channels) of bool: whether they are of the same group."""
    group = np.arange(groups)
    same: Array = np.repeat(group, outputs // groups)[:, None] == np.repeat(group, channels // groups)
    return same


def _splits(weight: Array, groups: int) -> bool:
    """Whether each kernel is 0 in the channels of other groups than its own."""
    used = weight.any(axis=(1, 2))  # (O, C)
    return not (used & ~_same_group(len(weight), weight.shape[3], groups)).any()


def _fields(layer: Conv) -> dict[str, Any]:
    """The attributes that all convolutions have."""
    return {field.name: getattr(layer, field.name) for field in fields(Conv)}
