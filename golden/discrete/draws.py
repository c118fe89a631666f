"""In which order the numbers of a generator go to the elements of a tensor.

Elements of a vector take a draw each, in order. A matrix is converted by several units at a time, neuron i by unit
i mod units, and no result may depend on how many there are. So all neurons share one draw u_j for each input j, and
weight (i, j) takes u_j XOR the 16 bits of i in reverse order. Each number by itself is as random as u_j; over the
neurons they are a van der Corput sequence, which spreads them evenly over all numbers.
"""

from typing import Protocol

import numpy as np

from bitloom.golden.encoding import Array

from .lfsr import DRAW_BITS, Lfsr


class Draws(Protocol):
    """A source of numbers of 16 bits: an `Lfsr`, or `MatrixDraws`."""

    def draw(self, count: int) -> Array:
        """The next ``count`` numbers, (count,) int64 of 0 to 65,535."""


class MatrixDraws:
    """The numbers of matrices of one shape that are converted together, input by input.

    Parameters
    ----------
    generator : Lfsr
    outputs, inputs : int
        Shape of each matrix; at most 65,536 outputs.
    matrices : int
        How many there are. Each input takes a draw for the first matrix, then one for the second, and so on.

    Raises
    ------
    ValueError
        If there are too many outputs.
    """

    def __init__(self, generator: Lfsr, outputs: int, inputs: int, matrices: int = 1) -> None:
        if outputs > 1 << DRAW_BITS:
            raise ValueError(f"draws: outputs must be <= {1 << DRAW_BITS}, got {outputs}")
        shared = generator.draw(inputs * matrices).reshape(inputs, matrices)  # u_j of each matrix
        numbers = shared.T[:, None, :] ^ reversed_bits(np.arange(outputs))[:, None]
        self._left = list(numbers.reshape(matrices, -1))

    def draw(self, count: int) -> Array:
        """The numbers of the next matrix in C order; ValueError if ``count`` isn't its size, or if all are taken."""
        size = len(self._left[0]) if self._left else 0
        if count != size:
            raise ValueError(f"draws: the next matrix has {size} elements, got {count}")
        return np.asarray(self._left.pop(0))


def reversed_bits(numbers: Array) -> Array:
    """Numbers of 16 bits with their bits in reverse order."""
    return np.asarray(sum((numbers >> k & 1) << (DRAW_BITS - 1 - k) for k in range(DRAW_BITS)))
