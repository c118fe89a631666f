"""Forward and backward step of each layer kind, for training (golden/training/train.py).

Maps are (N, positions, C) float64 that hold integers; positions are row-major. Errors (derivatives of the loss by a
map, in the map's unit) come in on the grid of golden/training/reproducible.py and go out as exact sums, to be put on
the grid again. Forward equals the golden layer; backward is its derivative, with straight-through estimators for what
has none: quantised weights (golden/training/weights.py) count as the real numbers they are made of, quantised
activations (golden/training/activation.py) as the normalised accumulator within their range, an average as if it
weren't rounded, and the OR of products, of a window or of a word, as their sum, the more so the fewer of them are +1.
"""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.grouped import ConvByGroups
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.golden.layers.threshold import Threshold

from .activation import RequantiseBlock, ThresholdBlock
from .reproducible import to_grid
from .training_block import Params, Slopes, TrainingBlock, gather, scatter
from .weights import OrBlock, OrWordsBlock, WeightedBlock


class MaxPoolBlock(TrainingBlock):
    """MaxPool. The taps that hold the maximum share the error equally: among bits there are many such taps."""

    def __init__(self, layer: MaxPool, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        self.positions = layer.window.positions(source.height, source.width)

    def forward(self, params: Params, x: Array) -> tuple[Array, Array]:
        values = gather(x, self.positions, -np.inf)  # (N, outputs, taps, C)
        largest = values.max(axis=2)
        return largest, values == largest[:, :, None]

    def backward(self, params: Params, tape: Array, error: Array) -> tuple[Array, Slopes]:
        share = to_grid(error / tape.sum(axis=2))
        return scatter(tape * share[:, :, None], self.positions, self.source.positions), {}


class AvgPoolBlock(TrainingBlock):
    """AvgPool. The valid taps share the error equally."""

    def __init__(self, layer: AvgPool, source: Map, batch: int, unit: float = 1.0) -> None:
        super().__init__(layer, source, batch, unit)
        self.positions = layer.window.positions(source.height, source.width)
        self.valid = (self.positions >= 0).sum(axis=1)[None, :, None]  # (1, outputs, 1)

    def forward(self, params: Params, x: Array) -> tuple[Array, None]:
        total = gather(x, self.positions, 0.0).sum(axis=2)  # exact: integers
        return rounded_quotient(total.astype(np.int64), self.valid).astype(np.float64), None

    def backward(self, params: Params, tape: None, error: Array) -> tuple[Array, Slopes]:
        share = to_grid(error / self.valid)[:, :, None]
        taps = np.repeat(share, self.positions.shape[1], axis=2)
        return scatter(taps, self.positions, self.source.positions), {}


def block(layer: OneInput, source: Map, batch: int, unit: float = 1.0) -> TrainingBlock:
    """The block of a layer; ValueError for a kind that can't be trained here. See `TrainingBlock` for parameters."""
    if isinstance(layer, Weighted) and not isinstance(layer, ConvByGroups):
        kinds = {"popcount": WeightedBlock, "or": OrBlock, "or_words": OrWordsBlock}
        return kinds[layer.accumulate](layer, source, batch, unit)
    if isinstance(layer, MaxPool):
        return MaxPoolBlock(layer, source, batch, unit)
    if isinstance(layer, AvgPool):
        return AvgPoolBlock(layer, source, batch, unit)
    if isinstance(layer, Threshold):
        return ThresholdBlock(layer, source, batch, unit)
    if isinstance(layer, Requantise):
        return RequantiseBlock(layer, source, batch, unit)
    known = "conv, dense, max_pool, avg_pool, threshold and requantise"
    raise ValueError(f"{layer.name}: training knows {known} layers, got {layer.kind}")
