"""The base of training blocks: forward and backward step of one layer. golden/training/blocks.py has the kinds."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer, Map
from bitloom.golden.window import with_invalid

Params = Mapping[str, Array]
Slopes = dict[str, Array]
"""Derivatives of the loss by each parameter of a layer."""


class TrainingBlock(ABC):
    """How one layer is trained. A block has no state: parameters come and go as arguments.

    Parameters
    ----------
    layer : Layer
    source : Map
        The map that the layer reads.
    batch : int
        Images of a batch.
    unit : float
        Number of the source that stands for 1: errors are derivatives by ``source / unit``. Integers of many bits have
        large units, so that errors keep a size that suits the grid. A power of two, or a number of levels.
    others : sequence of Map
        Further maps that the layer reads.

    Attributes
    ----------
    target_unit : float
        The unit of the layer's output.

    Raises
    ------
    ValueError
        If the layer can't be trained, or if its sums could round with so large a batch.
    """

    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Of the class: smallest and largest value of a parameter, where it has bounds."""

    def __init__(self, layer: Layer, source: Map, batch: int, unit: float = 1.0, others: Sequence[Map] = ()) -> None:
        self.unit = self.target_unit = unit
        self.source = source
        self.target = layer.output_of([source, *others])
        self.count = batch * max(source.positions, self.target.positions)  # errors in a sum at most
        self.magnitude = max(-source.encoding.low, source.encoding.high)

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
            Values of the source; of a layer that reads several maps (maps, N, positions, C).

        Returns
        -------
        (N, positions', C') float64
            Values of the target.
        tape : object
            Values of this call that `backward` needs.
        """

    @abstractmethod
    def backward(self, params: Params, tape: Any, error: Array) -> tuple[Array, Slopes]:
        """The derivatives of what `forward` computed.

        Parameters
        ----------
        params : mapping of str to array
        tape : object
            The second result of `forward`.
        error : (N, positions', C') float64
            Derivatives of the loss by the target in its unit, on the grid.

        Returns
        -------
        (N, positions, C) float64
            Derivatives of the loss by the source in its unit, not yet on the grid; of several sources as of `forward`.
        dict of str to array
            Derivatives of the loss by each parameter.
        """


def signs(x: Array) -> Array:
    """+1.0 where x >= 0, else -1.0."""
    return np.where(x >= 0, 1.0, -1.0)


def gather(x: Array, positions: Array, filler: float) -> Array:
    """The values that each window reads: (N, P, C) -> (N, outputs, taps, C), with ``filler`` at taps of position -1."""
    return np.take(with_invalid(x, filler), positions, axis=1)


def scatter(taps: Array, positions: Array, size: int) -> Array:
    """The reverse of `gather`: (N, outputs, taps, C) -> (N, size, C), the sum of what goes to each position."""
    total = np.zeros((len(taps), size + 1, taps.shape[-1]))
    for tap in range(positions.shape[1]):  # the positions of one tap differ, but for -1, which is dropped
        total[:, positions[:, tap]] += taps[:, :, tap]
    return total[:, :size]
