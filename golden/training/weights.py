"""Conv and Dense, for training: weights of 1 bit, ternary, and of 2 to 8 bits."""

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Weighted

from .reproducible import check_terms, random_signs, to_grid
from .training_block import Params, Slopes, TrainingBlock, gather, scatter, signs

DEAD_ZONE = 1 / 3
"""Real weights of at most this magnitude are 0 as ternary ones: a third of them, when training begins."""


def most(encoding: Encoding) -> int:
    """The largest weight that training makes; the smallest is its negative, so that a kernel can change its sign."""
    return encoding.high


def quantised(encoding: Encoding, weight: Array) -> Array:
    """Real weights in [-1, 1] as those of an encoding: float64 that holds integers, of the same shape.

    Bipolar are the signs, 0 becoming +1; ternary the signs beyond DEAD_ZONE; those of b bits the nearest multiples of
    1 / (2^(b - 1) - 1), halves to even. The scale that is left out is a kernel's own affair: batch normalisation takes
    it up.
    """
    if encoding == BIPOLAR:
        return signs(weight)
    if encoding == TERNARY:
        return np.where(np.abs(weight) > DEAD_ZONE, signs(weight), 0.0)
    rounded: Array = np.rint(weight * most(encoding))
    return rounded


class WeightedBlock(TrainingBlock):
    """Conv and Dense. The one parameter ``weight`` has the shape of the layer's array; its elements are real numbers in
    [-1, 1], of which `quantised` makes the weights. Straight through: the derivative by a weight counts as that by the
    real number, but for a constant factor, of which Adam takes no notice."""

    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"weight": (-1.0, 1.0)}

    def __init__(self, layer: Weighted, source: Map, batch: int, unit: float = 1.0) -> None:
        encoding = layer.weight
        if encoding not in (BIPOLAR, TERNARY) and not (encoding.kind == "signed" and 2 <= encoding.bits <= 8):
            raise ValueError(
                f"{layer.name}: training knows weights of {BIPOLAR}, {TERNARY} and signed 2..8 bit, got {encoding}"
            )
        super().__init__(layer, source, batch, unit)
        check_terms(layer.name, self.count, self.magnitude)
        self.encoding = encoding
        self.weight_unit = 2.0 ** (encoding.bits - 1) if encoding.kind == "signed" else 1.0
        self.target_unit = unit * self.weight_unit
        self.shape = layer.array_shapes(source)["weight"]
        self.positions = layer.window(source).positions(source.height, source.width)  # (outputs, taps), -1 invalid
        check_terms(layer.name, self.shape[0] * self.positions.shape[1], most(encoding))

    def initial(self, *key: int) -> dict[str, Array]:
        return {"weight": random_signs(self.shape, *key)}

    def matrix(self, params: Params) -> Array:
        """The weights as a matrix: (O, taps * C) integers."""
        return quantised(self.encoding, params["weight"]).reshape(self.target.channels, -1)

    def forward(self, params: Params, x: Array) -> tuple[Array, Any]:
        runs = gather(x, self.positions, 0.0).reshape(-1, self.positions.shape[1] * self.source.channels)
        return (runs @ self.matrix(params).T).reshape(len(x), -1, self.target.channels), runs

    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        flat = error.reshape(-1, self.target.channels)  # (N * outputs, O)
        slope = (flat.T @ tape).reshape(self.shape)
        matrix = self.matrix(params) * (1 / self.weight_unit)  # a power of two: sums stay exact
        taps = (flat @ matrix).reshape(len(error), *self.positions.shape, -1)  # (N, outputs, taps, C)
        return scatter(taps, self.positions, self.source.positions), {"weight": slope}


class OrBlock(WeightedBlock):
    """Conv and Dense with accumulate "or": -1 where no product of the window is +1, else +1.

    The derivative of that bit by a product is 0 unless all others are -1. Straight through: it counts as
    2^(-matches / 2), by the number of products that are +1 now. So a window that nearly is the kernel's opposite
    pulls the kernel, and the layer before it, the most; but a layer that gives nothing but +1, as wide ones do when
    training begins, still learns a little.
    """

    def __init__(self, layer: Weighted, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        self.products = (self.positions >= 0).sum(axis=1)[:, None] * source.channels  # (outputs, 1) valid ones
        self.slope = slope_by_matches(int(self.products.max()))

    def forward(self, params: Params, x: Array) -> tuple[Array, Any]:
        sums, runs = super().forward(params, x)
        matches = ((sums + self.products) / 2).astype(np.int64)  # exact: sums of so many +-1
        return np.where(matches > 0, 1.0, -1.0), (runs, matches)

    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        runs, matches = tape
        return super().backward(params, runs, to_grid(error * self.slope[matches]))


class OrWordsBlock(WeightedBlock):
    """Conv and Dense with accumulate "or_words": of each word -1 where no product is +1, else +1, and their sum.

    Each word's bit is derived as that of `OrBlock` is, by the word's own matches.
    """

    def __init__(self, layer: Weighted, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        size = source.channels
        step = layer.word_channels
        firsts = [(tap, first) for tap in range(self.positions.shape[1]) for first in range(0, size, step)]
        self.words = [(tap, slice(tap * size + c, tap * size + min(c + step, size))) for tap, c in firsts]
        """For each word its tap, and its columns of `matrix`."""
        self.slope = slope_by_matches(min(step, size))

    def forward(self, params: Params, x: Array) -> tuple[Array, Any]:
        runs = gather(x, self.positions, 0.0).reshape(len(x), len(self.positions), -1)  # (N, outputs, taps * C)
        matrix = self.matrix(params)
        total = np.zeros((*runs.shape[:2], len(matrix)))
        matches = []  # of each word (N, outputs, O); of invalid taps half the word, which nothing reads
        for tap, word in self.words:
            sums = runs[..., word] @ matrix[:, word].T
            matches.append(((sums + (word.stop - word.start)) / 2).astype(np.int64))  # exact: sums of so many +-1
            total += np.where(matches[-1] > 0, 1.0, -1.0) * (self.positions[:, tap, None] >= 0)
        return total, (runs, matches)

    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        runs, matches = tape
        matrix = self.matrix(params)
        slope = np.zeros((len(self.matrix(params)), runs.shape[2]))
        taps = np.zeros_like(runs)
        for (tap, word), matched in zip(self.words, matches):
            derivative = to_grid(error * self.slope[matched]) * (self.positions[:, tap, None] >= 0)
            flat = derivative.reshape(-1, derivative.shape[2])  # (N * outputs, O)
            slope[:, word] = flat.T @ runs[..., word].reshape(len(flat), -1)
            taps[..., word] = derivative @ matrix[:, word]
        by_tap = taps.reshape(len(error), *self.positions.shape, -1)  # (N, outputs, taps, C)
        back = scatter(by_tap, self.positions, self.source.positions)
        return back, {"weight": slope.reshape(self.shape)}


def slope_by_matches(most: int) -> Array:
    """(most + 1,) what the derivative of an OR by a product counts as: 2^(-matches / 2)."""
    halves = np.where(np.arange(most + 1) % 2 == 0, 1.0, sqrt(0.5))  # pow differs between machines
    slope: Array = np.ldexp(halves, -(np.arange(most + 1) // 2))
    return slope
