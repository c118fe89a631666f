"""What joins maps, as operations of their own: those that read several tensors.

=============  ==================================================================
Sum            of x and y: x + y, or what a table says for each pair of integers
Concatenation  of any number of tensors: their values behind one another
=============  ==================================================================
"""

from collections.abc import Sequence
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Concatenation(Operation):
    """Tensors behind one another along an axis.

    Attributes
    ----------
    also : tuple of str
        The second tensor, and those behind it.
    axis : int
        Of the tensors with the image in front, >= 1.
    """

    also: tuple[str, ...]
    axis: int

    def shape(self, source: Shape) -> Shape:
        """The shape of what is made, which is ``source`` itself: the caller has put the tensors together."""
        return source

    def shape_of(self, *shapes: Shape) -> Shape:
        """The shape of what is made of tensors of these shapes; Unsupported if they don't fit."""
        others = {(*shape[: self.axis], *shape[self.axis + 1 :]) for shape in shapes}
        if len(others) > 1 or len({len(shape) for shape in shapes}) > 1:
            got = " and ".join(map(str, shapes))
            raise Unsupported(f"maps that are concatenated must differ in one axis alone, got shapes {got}")
        total = sum(shape[self.axis] for shape in shapes)
        return (*shapes[0][: self.axis], total, *shapes[0][self.axis + 1 :])

    def together(self, tensors: Sequence[Array]) -> Array:
        """The tensors, each (N, ...), behind one another."""
        made: Array = np.concatenate(tensors, axis=self.axis)
        return made

    def run(self, x: Array) -> Array:
        """What is made of the tensors as `together` has them: the same."""
        return x


Join = Sum | Concatenation
"""An operation that reads several tensors."""


def reads_of(operation: Operation) -> tuple[str, ...]:
    """The tensors that an operation reads."""
    if isinstance(operation, Concatenation):
        return operation.reads, *operation.also
    return (operation.reads, operation.also) if isinstance(operation, Sum) else (operation.reads,)
