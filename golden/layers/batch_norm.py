"""Batch normalisation and a quantiser, folded exactly into integer thresholds and a direction (spec A11).

The real-valued rule is `BatchNorm.normalise` followed by `sign` or `UniformQuantiser`, in float64, one rounding an
operation, in the order written there. Each operation is monotone in the accumulator, also after rounding; hence so
is the rule, and a binary search on the rule itself finds the one place where its result changes. The thresholds
agree with it for every accumulator in reach: nothing is solved for, so there is nothing to round.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array

Quantiser = Callable[[Array], Array]
"""(...) float64 -> (...) int64, never decreasing, from 0 to the number of thresholds."""


class Moments(NamedTuple):
    """Mean and variance of the sums of each channel, (C,) floats."""

    mean: Array
    variance: Array


@dataclass(frozen=True, kw_only=True)
class BatchNorm:
    """Normalisation of the C output channels of a layer."""

    name: str
    """Of the layer, for messages."""
    gamma: Array
    beta: Array
    mean: Array
    """gamma, beta, mean: (C,) float64, or what converts to it exactly: finite, of any sign."""
    var: Array
    """(C,) float64: variance, not deviation: finite and >= 0."""
    eps: float
    """Added to the variance: >= 0, and var + eps > 0."""
    scale: Array | float = 1.0
    bias: Array | float = 0.0
    """scale, bias: (C,) float64 or float: the real value of an accumulator a is ``scale * a + bias``: for layers whose
    weights or features are integers times a real number. Finite, of any sign."""

    def __post_init__(self) -> None:
        shape = np.shape(self.gamma)
        if len(shape) != 1:
            raise ValueError(f"{self.name}.gamma: shape must be (channels,), got {shape}")
        for what in ("gamma", "beta", "mean", "var", "scale", "bias"):
            value = np.asarray(getattr(self, what), np.float64)
            if value.ndim == 0 and what in ("scale", "bias"):
                value = np.full(shape, value)
            if value.shape != shape:
                raise ValueError(f"{self.name}.{what}: shape must be {shape}, as gamma's, got {value.shape}")
            _require(np.isfinite(value), f"{self.name}.{what}", "must be finite", value)
            object.__setattr__(self, what, value)
        _require(self.var >= 0, f"{self.name}.var", "must be >= 0", self.var)
        if not 0 <= self.eps < np.inf:
            raise ValueError(f"{self.name}.eps: must be >= 0 and finite, got {self.eps}")
        with np.errstate(over="ignore"):
            total = self.var + np.float64(self.eps)
        _require((total > 0) & np.isfinite(total), f"{self.name}.var + eps", "must be > 0 and finite", total)

    @property
    def channels(self) -> int:
        """Number of channels, C."""
        return len(self.gamma)

    def normalise(self, accumulator: Array) -> Array:
        """The rule, operation by operation: (..., C) integers -> (..., C) float64. It may overflow to +-infinity."""
        with np.errstate(over="ignore", under="ignore"):
            real = np.asarray(accumulator).astype(np.float64) * self.scale
            real = real + self.bias
            real = real - self.mean
            real = real * self.gamma
            real = real / np.sqrt(self.var + np.float64(self.eps))
            real = real + self.beta
        return np.asarray(real, np.float64)

    def check_range(self, low: int, high: int) -> None:
        """Raise ValueError unless ``normalise`` is a number for every accumulator from ``low`` to ``high``."""
        if not -(1 << 53) <= low <= high <= 1 << 53:
            raise ValueError(f"{self.name}: accumulators must be within +-2^53, low <= high, got {low}..{high}")
        for end in (low, high):  # monotone: finite at both ends is finite between
            with np.errstate(over="ignore"):
                centred = np.float64(end) * self.scale + self.bias - self.mean
            _require(np.isfinite(centred), f"{self.name}.scale * accumulator + bias - mean", "must be finite", centred)


def sign(y: Array) -> Array:
    """The quantiser of one bit: (...) float64 -> 1 where y >= 0, also for -0, else 0. 1 becomes +1 and 0 becomes -1."""
    return (y >= 0).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class UniformQuantiser:
    """A quantiser of equal steps: the level of y is ``clip(rint(y / step) - lowest, 0, levels)``.

    rint rounds halves to even, as ONNX and PyTorch do.
    """

    levels: int
    """Steps above the lowest value, >= 1; each is a threshold."""
    step: float
    """Distance of neighbouring values, > 0."""
    lowest: int = 0
    """Smallest value, in steps: -1 and 2 levels are -1, 0, +1."""

    def __post_init__(self) -> None:
        if self.levels < 1:
            raise ValueError(f"quantiser: levels must be >= 1, got {self.levels}")
        if not 0 < self.step < np.inf:
            raise ValueError(f"quantiser: step must be > 0 and finite, got {self.step}")

    def __call__(self, y: Array) -> Array:
        """The level of each value: (...) float64 -> (...) int64, 0 .. levels."""
        with np.errstate(over="ignore", under="ignore"):
            level = np.rint(np.asarray(y, np.float64) / np.float64(self.step)) - self.lowest
        return np.asarray(np.clip(level, 0, self.levels), np.int64)


def fold(
    norm: BatchNorm, low: int, high: int, *, step: int = 1, quantiser: Quantiser = sign, levels: int = 1
) -> dict[str, Array]:
    """Fold batch normalisation and a quantiser into the arrays of a `Threshold` layer.

    The layer equals ``quantiser(norm.normalise(a))`` for every accumulator a = low, low + step, ..., high.

    Parameters
    ----------
    norm : BatchNorm
    low, high : int
        Smallest and largest accumulator (`Weighted.accumulator_range`).
    step : int
        Distance of neighbouring accumulators, >= 1; 2 for sums of a fixed number of +-1.
    quantiser : callable
        (...) float64 -> (...) int64, never decreasing, from 0 to ``levels``.
    levels : int
        Number of thresholds.

    Returns
    -------
    dict of str to array
        ``threshold``, (C, levels) int64: accumulators in reach, or one step out of reach where the result never
        changes. ``direction``, (C,) int64: -1 only where the result falls as the accumulator rises, else +1.

    Raises
    ------
    ValueError
        If step doesn't divide high - low, or if the normalised value of an accumulator is no number.
    """
    if step < 1 or (high - low) % step:
        raise ValueError(f"{norm.name}: step must be >= 1 and divide high - low, got {step} for {low}..{high}")
    norm.check_range(low, high)

    def level(index: Array) -> Array:  # (C,) -> (C,), of accumulator low + step * index
        return quantiser(norm.normalise(low + step * index))

    count = (high - low) // step + 1
    first = np.zeros(norm.channels, np.int64)
    falls = level(first) > level(first + count - 1)
    columns = []
    for t in range(levels):
        # The first index, from the end where levels are low, whose level exceeds t; ``count`` if there is none.
        below, above = first - 1, first + count  # level(below) <= t < level(above), as if beyond the ends
        while (above - below > 1).any():
            middle = (below + above) // 2
            index = np.clip(middle, 0, count - 1)
            exceeds = level(np.where(falls, count - 1 - index, index)) > t
            open_ = above - below > 1
            above = np.where(open_ & exceeds, middle, above)
            below = np.where(open_ & ~exceeds, middle, below)
        columns.append(np.where(falls, high - step * above, low + step * above))
    return {"threshold": np.stack(columns, axis=1), "direction": np.where(falls, -1, 1).astype(np.int64)}


def _require(good: Array, name: str, rule: str, values: Array) -> None:
    """Raise ValueError for the first channel that is not good."""
    if not good.all():
        channel = int(np.flatnonzero(~good)[0])
        raise ValueError(f"{name}: {rule}, got {values[channel]} in channel {channel}")
