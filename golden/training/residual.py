"""Additions of maps, and signs of what was added, for training: residual networks of bits (docs/decisions/0022).

requantise --> + --> sign --> next convolution
map ---------> +`--> next addition
"""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.threshold import Threshold

from .activation import TOP
from .training_block import Params, Slopes, TrainingBlock, signs


class AddBlock(TrainingBlock):
    """Add, of maps that count alike: both multipliers are 1, bias and shift are 0. Where the sum is clipped its slope
    is 0. It takes both maps as one array, (2, N, positions, C), and so it gives their derivatives."""

    def __init__(self, layer: Add, sources: Sequence[Map], batch: int, units: Sequence[float]) -> None:
        super().__init__(layer, sources[0], batch, max(units), sources[1:])
        self.low = layer.low
        self.high = layer.high
        self.shares = np.array(units).reshape(2, 1, 1, 1) / max(units)

    def forward(self, params: Params, x: Array) -> tuple[Array, Array]:
        total = x.sum(axis=0)
        return np.clip(total, self.low, self.high), (total >= self.low) & (total <= self.high)

    def backward(self, params: Params, tape: Array, error: Array) -> tuple[Array, Slopes]:
        return error * tape * self.shares, {}

    def arrays(self) -> dict[str, Array]:
        """The layer's arrays."""
        return {"multiplier": np.array([1, 1]), "bias": np.array([0]), "shift": np.array([0])}


class SignBlock(TrainingBlock):
    """Threshold of integers: +1 where x >= 0, else -1. The slope counts only where |x| is at most one deviation of the
    requantised values; about `TOP` deviations are a unit. There the true slope is TOP, but it counts as 1. The slope of
    a requantisation, 1 / TOP, counts as 1 too: every way through a layer beside a shortcut has both; they cancel."""

    def __init__(self, layer: Threshold, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        if layer.levels != 1:
            raise ValueError(
                f"{layer.name}: training needs one level behind an add or a requantise, got {layer.levels}"
            )
        self.target_unit = 1.0

    def forward(self, params: Params, x: Array) -> tuple[Array, Array]:
        return signs(x), np.abs(x) * TOP <= self.unit

    def backward(self, params: Params, tape: Array, error: Array) -> tuple[Array, Slopes]:
        return error * tape, {}

    def arrays(self) -> dict[str, Array]:
        """The layer's arrays."""
        channels = self.source.channels
        return {"threshold": np.zeros((channels, 1), np.int64), "direction": np.ones(channels, np.int64)}
