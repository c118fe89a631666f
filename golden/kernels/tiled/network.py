"""A whole network of packed layers, which goes through a device in one piece (spec E: a request may be a network).

    words --> convolution --> pool --> convolution --> ... --> words, or the dots of the last convolution

Each layer's output has the layout of the next one's input, so that nothing is repacked and nothing comes back between
layers: one upload, one kernel a layer in one stream, one download (gpu.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.packing import word_count
from bitloom.golden.window import Pair, Window

from .conv import PackedConv
from .layout import word_dtype
from .plan import TilePlan, plan_of_shape

PlanLayer = Callable[[PackedConv, tuple[int, int, int]], TilePlan]

POOL_THREADS = 256
"""Threads of a block of the pool's kernel, one for each word of its output."""


@dataclass(frozen=True, kw_only=True)
class PackedPool:
    """A max pool of packed bits: the OR of the words in a window. Taps outside the map add nothing."""

    name: str
    """Of the layer, for messages."""
    channels: int
    """C, >= 1."""
    window: Window
    """Kernel, strides and padding; no dilation."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if type(self.channels) is not int or self.channels < 1:
            raise ValueError(f"{self.name}: channels must be an integer >= 1, got {self.channels!r}")
        self.window.check(self.name)
        if self.window.dilated:
            rule = "a pool of packed bits must have dilation (1, 1)"
            raise ValueError(f"{self.name}: {rule}, got {self.window.dilation}")

    def run(self, words: Array) -> Array:
        """The pool by numpy: (N, ceil(C/B), H, W) -> (N, ceil(C/B), H', W')."""
        images, groups, height, width = words.shape
        flat_words = words.reshape(images, groups, -1)
        padded = np.concatenate([flat_words, np.zeros_like(flat_words[:, :, :1])], axis=2)  # position -1: adds no bit
        largest: Array = np.bitwise_or.reduce(padded[:, :, self.window.positions(height, width)], axis=-1)
        return largest.reshape(images, groups, *self.window.output_size(height, width))


@dataclass(frozen=True, kw_only=True)
class PoolPlan:
    """A pool for one size of map."""

    layer: PackedPool
    word_bits: int
    """B, 32 or 64."""
    images: int
    height: int
    width: int
    """images, height, width: of the input."""

    @property
    def groups(self) -> int:
        """Number of words at a position, ceil(C/B)."""
        return word_count(self.layer.channels, self.word_bits)

    @property
    def output(self) -> Pair:
        """Rows and columns of the output map."""
        return self.layer.window.checked_output_size(self.layer.name, self.height, self.width)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output, (N, ceil(C/B), H', W')."""
        return self.images, self.groups, *self.output

    @property
    def output_dtype(self) -> "np.dtype[Any]":
        """Dtype of the words."""
        return word_dtype(self.word_bits)

    @property
    def words(self) -> int:
        """Words of the output."""
        return int(np.prod(self.output_shape))

    @property
    def blocks(self) -> int:
        """Number of blocks of POOL_THREADS threads."""
        return -(-self.words // POOL_THREADS)


@dataclass(frozen=True, eq=False)
class PackedNetwork:
    """Packed layers, one after another. A convolution without thresholds may only be the last one."""

    layers: tuple[PackedConv | PackedPool, ...]
    """At least one; the first one is a convolution."""

    def __post_init__(self) -> None:
        if not self.layers or not isinstance(self.layers[0], PackedConv):
            raise ValueError("network: the first packed layer must be a convolution")
        for layer, after in zip(self.layers, self.layers[1:]):
            if isinstance(layer, PackedConv) and layer.threshold is None:
                raise ValueError(f"{layer.name}: a layer that isn't the last one must have thresholds, got none")
            channels = layer.out_channels if isinstance(layer, PackedConv) else layer.channels
            if after.channels != channels:
                raise ValueError(f"{after.name}: channels must be the {channels} of {layer.name}, got {after.channels}")
            if isinstance(after, PackedConv) and after.word_bits != self.word_bits:
                raise ValueError(f"{after.name}: words must have {self.word_bits} bits, got {after.word_bits}")

    @property
    def word_bits(self) -> int:
        """B, bits of a word."""
        first = self.layers[0]
        assert isinstance(first, PackedConv)
        return first.word_bits

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Dtype of the words."""
        return word_dtype(self.word_bits)

    def plans(self, shape: tuple[int, ...], plan_layer: PlanLayer = plan_of_shape) -> list[TilePlan | PoolPlan]:
        """A plan for each layer.

        Parameters
        ----------
        shape : (N, ceil(C/B), H, W)
            Of the network's input.
        plan_layer
            Plans a convolution for an input of so many images, rows and columns.

        Raises
        ------
        ValueError
            If a layer doesn't fit the limits, or its window the map.
        """
        images, _, height, width = shape
        plans: list[TilePlan | PoolPlan] = []
        for layer in self.layers:
            plan: TilePlan | PoolPlan
            if isinstance(layer, PackedPool):
                plan = PoolPlan(layer=layer, word_bits=self.word_bits, images=images, height=height, width=width)
            else:
                plan = plan_layer(layer, (images, height, width))
            plans.append(plan)
            height, width = plan.output
        return plans

    def check_input(self, words: Array) -> None:
        """Raise ValueError unless ``words`` are the input of the first layer."""
        first = self.layers[0]
        assert isinstance(first, PackedConv)
        first.check_input(words)
