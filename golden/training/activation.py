"""Batch normalisation and what follows it, for training: thresholds of one or more levels, and requantisation.

``z = gamma * (x - mean) / sqrt(variance + epsilon) + beta``, then a quantiser of z: see the two kinds below. Straight
through: its derivative counts as that of its own slope where z is within its range, and as 0 elsewhere, but for a
constant factor, of which Adam takes no notice.

Sums over accumulators must be exact (golden/training/reproducible.py). Where accumulators have so many bits that they
might not be, their moments and their part in the derivative of gamma are those of accumulators rounded to a multiple
of 2^s, `NormBlock.coarse`; s is 0 in binary networks.
"""

from abc import abstractmethod
from collections.abc import Mapping
from math import sqrt
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.layers.batch_norm import BatchNorm, Moments, fold
from bitloom.golden.layers.requantise import Requantise, scale_to_multiplier
from bitloom.golden.layers.threshold import Threshold

from .reproducible import TERMS, check_terms
from .training_block import Params, Slopes, TrainingBlock

EPSILON = 2.0**-10
"""Added to the variance of an accumulator in its unit: it matters only where a channel is constant, or nearly so."""
TOP = 3.0
"""The z that a requantisation makes its largest value of: with gamma 1 and beta 0, three deviations."""


def exact_moments(x: Array) -> Moments:
    """Mean and variance of (..., C) integers in float64, over all axes but the last.

    ValueError if a sum could round.
    """
    flat = x.reshape(-1, x.shape[-1])
    total = flat.sum(axis=0)
    squares = (flat * flat).sum(axis=0)
    if squares.max() >= 2.0**53:  # below it each sum of part of the squares, and of part of x, is exact
        raise ValueError(f"training: sums of squares must be < 2^53 to be exact, got {squares.max()}: use fewer images")
    mean = total / len(flat)
    return Moments(mean, np.maximum(squares / len(flat) - mean * mean, 0.0))


class NormBlock(TrainingBlock):
    """Batch normalisation and a quantiser. Parameters are ``gamma`` and ``beta``, (C,).

    Attributes
    ----------
    epsilon : float
        Added to the variance of an accumulator: EPSILON in the accumulator's unit.
    """

    low: float
    high: float
    """low, high: the range of z within which its slope counts."""

    def __init__(self, layer: OneInput, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        shift = max(0, (self.count * self.magnitude - 1) // TERMS).bit_length()
        self.step = 2.0**shift
        check_terms(layer.name, self.count, -(-self.magnitude // (1 << shift)))
        self.epsilon = EPSILON * unit * unit

    def initial(self, *key: int) -> dict[str, Array]:
        return {"gamma": np.ones(self.source.channels), "beta": np.zeros(self.source.channels)}

    def coarse(self, x: Array) -> Array:
        """Accumulators in steps of 2^s, rounded: the integers that are summed up."""
        return x if self.step == 1 else np.rint(x * (1 / self.step))

    def moments(self, x: Array) -> Moments:
        """Mean and variance of (..., C) accumulators, by `coarse`."""
        mean, variance = exact_moments(self.coarse(x))
        return Moments(mean * self.step, variance * (self.step * self.step))

    def normalise(self, params: Params, x: Array, of_x: Moments) -> Array:
        """z of (..., C) integers with these moments."""
        z: Array = (x - of_x.mean) * (params["gamma"] / np.sqrt(of_x.variance + self.epsilon))
        z += params["beta"]
        return z

    @abstractmethod
    def quantise(self, z: Array) -> Array:
        """The layer's output for z: (..., C) float64 -> (..., C) float64 that holds integers. It never falls."""

    @abstractmethod
    def fold(self, norm: BatchNorm, low: int, high: int) -> dict[str, Array]:
        """The layer's arrays, of integers, which do what ``norm`` and `quantise` do to accumulators low .. high."""

    def forward(self, params: Params, x: Array) -> tuple[Array, tuple[Array, Array, Moments]]:
        of_x = self.moments(x)
        z = self.normalise(params, x, of_x)
        return self.quantise(z), (x, z, of_x)

    def backward(self, params: Params, tape: tuple[Array, Array, Moments], error: Array) -> tuple[Array, Slopes]:
        x, z, (mean, variance) = tape
        inverse = 1 / np.sqrt(variance + self.epsilon)
        dz = error * ((z >= self.low) & (z <= self.high))
        beta = dz.sum(axis=(0, 1))  # exact: multiples of the grid
        product = (dz * self.coarse(x)).sum(axis=(0, 1)) * self.step  # exact: multiples of the grid times integers
        gamma = (product - mean * beta) * inverse
        count = x.shape[0] * x.shape[1]
        dx = dz - beta / count - (x - mean) * (inverse * gamma / count)
        return dx * (params["gamma"] * inverse) * self.unit, {"gamma": gamma, "beta": beta}


class ThresholdBlock(NormBlock):
    """Threshold of k levels: k comparisons of z with `cuts`, each +1 or -1, are added up.

    The sum divided by k is the multiple of 2 / k, counted from -1, that is nearest to z, within -1 and 1; of two that
    are equally near the larger. With one level that is the sign, with two the nearest of -1, 0, 1. The slope counts
    where |z| <= 1.
    """

    low = -1.0
    high = 1.0

    def __init__(self, layer: Threshold, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        self.levels = layer.levels
        self.cuts = (2 * np.arange(self.levels) + 1 - self.levels) / self.levels  # one level: 0
        self.target_unit = float(self.levels)

    def level(self, z: Array) -> Array:
        """How many cuts z reaches: (...) float64 -> (...) int64, 0 .. levels."""
        return np.asarray(np.searchsorted(self.cuts, z, side="right"), np.int64)

    def quantise(self, z: Array) -> Array:
        return 2.0 * self.level(z) - self.levels

    def fold(self, norm: BatchNorm, low: int, high: int) -> dict[str, Array]:
        return fold(norm, low, high, quantiser=self.level, levels=self.levels)


class RequantiseBlock(NormBlock):
    """Requantise: ``clip(rint(z * gain), low, high)``, where the gain takes z = TOP to the largest result.

    The slope counts where the result isn't clipped. Gamma stays above 0, for multipliers do; a kernel whose sign should
    change changes its weights. In integers the scale is rounded to 16 bits, and the bias to the layer's fraction of an
    accumulator's step: results may differ by 1 where z is near the middle of two.
    """

    limits: ClassVar[Mapping[str, tuple[float, float]]] = {"gamma": (2.0**-6, 2.0**6)}

    def __init__(self, layer: Requantise, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        if layer.high < 1:
            raise ValueError(f"{layer.name}: training needs results above 0, got {layer.low}..{layer.high}")
        self.layer = layer
        self.gain = layer.high / TOP
        self.low = layer.low / self.gain
        self.high = TOP
        self.target_unit = 2.0 ** layer.high.bit_length()

    def quantise(self, z: Array) -> Array:
        clipped: Array = np.clip(np.rint(z * self.gain), self.layer.low, self.layer.high)
        return clipped

    def fold(self, norm: BatchNorm, low: int, high: int) -> dict[str, Array]:
        columns: list[tuple[int, int, int]] = []
        for gamma, beta, mean, variance in zip(norm.gamma, norm.beta, norm.mean, norm.var):
            slope = float(gamma) / sqrt(float(variance) + norm.eps)  # z is slope * (x - mean) + beta
            multiplier, shift = scale_to_multiplier(slope * self.gain)
            bias = round((float(beta) / slope - float(mean)) * (1 << self.layer.fraction))
            columns.append((bias, multiplier, shift + self.layer.fraction))
        return dict(zip(("bias", "multiplier", "shift"), np.array(columns, np.int64).T))
