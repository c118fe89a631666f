"""In which order the numbers of a generator go to the elements of a tensor.

Elements of a vector take a draw each, in order. A matrix is converted by several units at a time, neuron i by unit
i mod units, and no result may depend on how many there are. So all neurons share one draw u_j for each input j, and
weight (i, j) takes u_j XOR the 16 bits of i in reverse order. Each number by itself is as random as u_j; over the
neurons they are a van der Corput sequence, which spreads them evenly over all numbers.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bitloom.golden.encoding import Array

from .lfsr import DRAW_BITS


class Draws(Protocol):
    """A source of numbers of 16 bits: an `Lfsr`, or `GivenDraws`."""

    def draw(self, count: int) -> Array:
        """The next ``count`` numbers, (count,) int64 of 0 to 65,535."""


class GivenDraws:
    """Numbers that were drawn before, given as one draw.

    Parameters
    ----------
    numbers : (...) integers
        In the shape of what is converted.
    """

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers

    def draw(self, count: int) -> Array:
        """All of them in C order; ValueError unless they are ``count``."""
        if count != self._numbers.size:
            raise ValueError(f"draws: must be asked for {self._numbers.size} numbers, got {count}")
        return self._numbers.reshape(-1)


def matrix_numbers(drawn: Array, outputs: int, by_chance: Sequence[bool]) -> list[Array | None]:
    """The numbers of matrices of one shape that are converted together, input by input.

    Parameters
    ----------
    drawn : (inputs * matrices by chance,) integers
        Numbers of the generator. Each input takes one for the first matrix, then one for the second, and so on.
    outputs : int
        Neurons, at most 65,536; else ValueError.
    by_chance : sequence of bool
        Which matrices are converted by chance.

    Returns
    -------
    list of (outputs, inputs) integers or None
        None for a matrix that is converted to the nearest.
    """
    if outputs > 1 << DRAW_BITS:
        raise ValueError(f"draws: outputs must be <= {1 << DRAW_BITS}, got {outputs}")
    if not any(by_chance):
        return [None] * len(by_chance)
    shared = drawn.reshape(-1, sum(by_chance)).T  # u_j of each matrix
    numbers = iter(shared[:, None, :] ^ reversed_bits(np.arange(outputs))[:, None])
    return [next(numbers) if chance else None for chance in by_chance]


def reversed_bits(numbers: Array) -> Array:
    """Numbers of 16 bits with their bits in reverse order."""
    return np.asarray(sum((numbers >> k & 1) << (DRAW_BITS - 1 - k) for k in range(DRAW_BITS)))
