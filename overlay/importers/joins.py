"""The sum of two maps as an operation of its own: the one that reads two tensors.

=====  ==================================================================
Sum    of x and y: x + y, or what a table says for each pair of integers
=====  ==================================================================
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .operations import Operation
from .source import Shape


@dataclass(frozen=True, kw_only=True, eq=False)
class SumTable:
    """The sum of two maps of integers by a rule of its own, as a table of all pairs.

    Attributes
    ----------
    values : (m, n) int64
        Of first + i and first + j.
    first : int
        The smallest integer of both maps.
    slopes : (Fraction, Fraction)
    offset : Fraction
        Rounding and clips aside, values are slopes[0] * x + slopes[1] * y + offset.
    low, high : int
        What values are clipped to.
    """

    values: Array
    first: int
    slopes: tuple[Fraction, Fraction]
    offset: Fraction
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Sum(Operation):
    """The sum of two tensors of one shape.

    Attributes
    ----------
    also : str
        The second tensor.
    table : SumTable or None
        None for x + y.
    """

    also: str
    table: SumTable | None = None

    def shape(self, source: Shape) -> Shape:
        return source

    def shape_of(self, first: Shape, second: Shape) -> Shape:
        """The shape of the sum; Unsupported if the tensors have different ones."""
        if first != second:
            raise Unsupported(f"two maps that are added must have one shape, got {first} and {second}")
        return first

    def run(self, x: Array) -> Array:
        """What is made of both tensors, one behind the other: (2, N, ...) float64 -> (N, ...)."""
        if self.table is None:
            made: Array = x[0] + x[1]
            return made
        first, second = (np.rint(values).astype(np.int64) - self.table.first for values in x)
        return self.table.values[first, second].astype(np.float64)
