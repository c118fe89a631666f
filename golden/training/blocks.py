"""Forward and backward step of each layer kind, for training (golden/training/train.py).

Maps are (N, positions, C) float64 that hold integers; positions are row-major. Errors (derivatives of the loss by a
map) come in on the grid of golden/training/reproducible.py and go out as exact sums, to be put on the grid again.
Forward equals the golden layer; backward is its derivative, with straight-through estimators: the sign of a weight
counts as the weight itself, the sign of a normalised accumulator z counts as z where |z| <= 1 and as a constant
elsewhere, and the OR of products counts as their sum, the more so the fewer of them are +1 (`OrBlock`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold

from .reproducible import check_terms, random_signs, to_grid

Params = Mapping[str, Array]
Slopes = dict[str, Array]
"""Derivatives of the loss by each parameter of a layer."""

EPSILON = 2.0**-10
"""Added to the variance of an accumulator, an integer: it matters only where a channel is constant."""


class Statistics(NamedTuple):
    """Mean and variance of the accumulators of each channel, (C,) float64."""

    mean: Array
    variance: Array


def statistics(x: Array) -> Statistics:
    """Mean and variance of (..., C) integers in float64, over all axes but the last.

    ValueError if a sum could round.
    """
    flat = x.reshape(-1, x.shape[-1])
    total, squares = flat.sum(axis=0), (flat * flat).sum(axis=0)
    if squares.max() >= 2.0**53:  # below it each sum of part of the squares, and of part of x, is exact
        raise ValueError(f"training: sums of squares must be < 2^53 to be exact, got {squares.max()}: use fewer images")
    mean = total / len(flat)
    return Statistics(mean, np.maximum(squares / len(flat) - mean * mean, 0.0))


class TrainingBlock(ABC):
    """How one layer is trained. A block has no state: parameters come and go as arguments.

    Parameters
    ----------
    layer : OneInput
    source : Map
        The map that the layer reads.
    batch : int
        Images of a batch.

    Raises
    ------
    ValueError
        If the layer can't be trained, or if its sums could round with so large a batch.
    """

    def __init__(self, layer: OneInput, source: Map, batch: int) -> None:
        self.source, self.target = source, layer.output(source)
        magnitude = max(-source.encoding.low, source.encoding.high)
        check_terms(layer.name, batch * max(source.positions, self.target.positions), magnitude)

    def initial(self, *key: int) -> dict[str, Array]:
        """Parameters by name before training, drawn from the random stream that ``key`` names."""
        return {}

    @abstractmethod
    def forward(self, params: Params, x: Array) -> tuple[Array, Any]:
        """The layer's output.

        Parameters
        ----------
        params : mapping of str to array
        x : (N, positions, C) float64
            Values of the source.

        Returns
        -------
        (N, positions', C') float64
            Values of the target.
        tape : object
            What `backward` needs to know of this call.
        """

    @abstractmethod
    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        """The derivatives of what `forward` computed.

        Parameters
        ----------
        params : mapping of str to array
        tape : object
            What `forward` gave.
        error : (N, positions', C') float64
            Derivatives of the loss by the target, on the grid.

        Returns
        -------
        (N, positions, C) float64
            Derivatives of the loss by the source, not yet on the grid.
        dict of str to array
            Derivatives of the loss by each parameter.
        """


class WeightedBlock(TrainingBlock):
    """Conv and Dense. The one parameter ``weight`` has the shape of the layer's array; its elements are real numbers in
    [-1, 1], whose signs are the weights."""

    def __init__(self, layer: Weighted, source: Map, batch: int) -> None:
        if layer.weight != BIPOLAR:
            raise ValueError(f"{layer.name}: training knows weights of {BIPOLAR}, got {layer.weight}")
        super().__init__(layer, source, batch)
        self.shape = layer.array_shapes(source)["weight"]
        self.positions = layer.window(source).positions(source.height, source.width)  # (outputs, taps), -1 invalid

    def initial(self, *key: int) -> dict[str, Array]:
        return {"weight": random_signs(self.shape, *key)}

    def matrix(self, params: Params) -> Array:
        """The weights as a matrix: (O, taps * C) of +-1."""
        return signs(params["weight"]).reshape(self.target.channels, -1)

    def forward(self, params: Params, x: Array) -> tuple[Array, Any]:
        runs = gather(x, self.positions, 0.0).reshape(-1, self.positions.shape[1] * self.source.channels)
        return (runs @ self.matrix(params).T).reshape(len(x), -1, self.target.channels), runs

    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        flat = error.reshape(-1, self.target.channels)  # (N * outputs, O)
        slope = (flat.T @ tape).reshape(self.shape)
        taps = (flat @ self.matrix(params)).reshape(len(error), *self.positions.shape, -1)  # (N, outputs, taps, C)
        return scatter(taps, self.positions, self.source.positions), {"weight": slope}


class OrBlock(WeightedBlock):
    """Conv and Dense with accumulate "or": -1 where no product of the window is +1, else +1.

    The derivative of that bit by a product is 0 unless all others are -1. Straight through: it counts as
    2^(-matches / 2), by the number of products that are +1 now. So a window that nearly is the kernel's opposite
    pulls the kernel, and the layer before it, the most; but a layer that gives nothing but +1, as wide ones do when
    training begins, still learns a little.
    """

    def __init__(self, layer: Weighted, source: Map, batch: int) -> None:
        super().__init__(layer, source, batch)
        self.products = (self.positions >= 0).sum(axis=1)[:, None] * source.channels  # (outputs, 1) valid ones
        halves = np.where(np.arange(self.products.max() + 1) % 2 == 0, 1.0, sqrt(0.5))  # pow differs between machines
        self.slope = np.ldexp(halves, -(np.arange(len(halves)) // 2))  # by the number of matches

    def forward(self, params: Params, x: Array) -> tuple[Array, Any]:
        sums, runs = super().forward(params, x)
        matches = ((sums + self.products) / 2).astype(np.int64)  # exact: sums of so many +-1
        return np.where(matches > 0, 1.0, -1.0), (runs, matches)

    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        runs, matches = tape
        return super().backward(params, runs, to_grid(error * self.slope[matches]))


class MaxPoolBlock(TrainingBlock):
    """MaxPool. The taps that hold the maximum share the error equally: among bits there are many such taps."""

    def __init__(self, layer: MaxPool, source: Map, batch: int) -> None:
        super().__init__(layer, source, batch)
        self.positions = layer.window.positions(source.height, source.width)

    def forward(self, params: Params, x: Array) -> tuple[Array, Array]:
        values = gather(x, self.positions, -np.inf)  # (N, outputs, taps, C)
        largest = values.max(axis=2)
        return largest, values == largest[:, :, None]

    def backward(self, params: Params, tape: Array, error: Array) -> tuple[Array, Slopes]:
        share = to_grid(error / tape.sum(axis=2))
        return scatter(tape * share[:, :, None], self.positions, self.source.positions), {}


class ThresholdBlock(TrainingBlock):
    """Threshold with one level: batch normalisation and sign.

    ``z = gamma * (x - mean) / sqrt(variance + EPSILON) + beta``; the output is +1 where z >= 0, else -1. Parameters are
    ``gamma`` and ``beta``, (C,).
    """

    def __init__(self, layer: Threshold, source: Map, batch: int) -> None:
        if layer.levels != 1:
            raise ValueError(f"{layer.name}: training knows thresholds of 1 level, got {layer.levels}")
        super().__init__(layer, source, batch)

    def initial(self, *key: int) -> dict[str, Array]:
        return {"gamma": np.ones(self.source.channels), "beta": np.zeros(self.source.channels)}

    @staticmethod
    def normalise(params: Params, x: Array, of: Statistics) -> Array:
        """z of (..., C) integers."""
        z: Array = (x - of.mean) * (params["gamma"] / np.sqrt(of.variance + EPSILON))
        z += params["beta"]
        return z

    def forward(self, params: Params, x: Array) -> tuple[Array, tuple[Array, Array, Statistics]]:
        of = statistics(x)
        z = self.normalise(params, x, of)
        return signs(z), (x, z, of)

    def backward(self, params: Params, tape: tuple[Array, Array, Statistics], error: Array) -> tuple[Array, Slopes]:
        x, z, (mean, variance) = tape
        inverse = 1 / np.sqrt(variance + EPSILON)
        dz = error * (np.abs(z) <= 1.0)
        beta = dz.sum(axis=(0, 1))  # exact: multiples of STEP
        gamma = ((dz * x).sum(axis=(0, 1)) - mean * beta) * inverse  # exact sum: multiples of STEP times integers
        count = x.shape[0] * x.shape[1]
        dx = dz - beta / count - (x - mean) * (inverse * gamma / count)
        return dx * (params["gamma"] * inverse), {"gamma": gamma, "beta": beta}


def block(layer: OneInput, source: Map, batch: int) -> TrainingBlock:
    """The block of a layer; ValueError for a kind that can't be trained here."""
    if isinstance(layer, Weighted):
        return (OrBlock if layer.accumulate == "or" else WeightedBlock)(layer, source, batch)
    if isinstance(layer, MaxPool):
        return MaxPoolBlock(layer, source, batch)
    if isinstance(layer, Threshold):
        return ThresholdBlock(layer, source, batch)
    raise ValueError(f"{layer.name}: training knows conv, dense, max_pool and threshold layers, got {layer.kind}")


def signs(x: Array) -> Array:
    """+1.0 where x >= 0, else -1.0."""
    return np.where(x >= 0, 1.0, -1.0)


def gather(x: Array, positions: Array, filler: float) -> Array:
    """What each window reads: (N, P, C) -> (N, outputs, taps, C), with ``filler`` at taps of position -1."""
    padded = np.concatenate([x, np.full_like(x[:, :1], filler)], axis=1)
    return np.take(padded, positions, axis=1)


def scatter(taps: Array, positions: Array, size: int) -> Array:
    """The reverse of `gather`: (N, outputs, taps, C) -> (N, size, C), the sum of what goes to each position."""
    total = np.zeros((len(taps), size + 1, taps.shape[-1]))
    for tap in range(positions.shape[1]):  # the positions of one tap differ, but for -1, which is dropped
        total[:, positions[:, tap]] += taps[:, :, tap]
    return total[:, :size]
