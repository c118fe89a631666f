"""Padding as an operation of its own, and how the walk puts it into the convolution that reads what it makes.

The walk knows a padded tensor by its index, which is OUTSIDE at the places that golden's map doesn't have. What stands
there is one number, which every operation on the way changes as it changes all others; a convolution can take it where
it is 0 in the end.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Sides

from .errors import Unsupported
from .operations import Levels, Operation
from .source import MOST_MAP, Shape, check_shape

OUTSIDE = -1
"""Place of a padded value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Padding(Operation):
    """The same values with others around.

    Attributes
    ----------
    widths : tuple of (int, int)
        Of each axis, how many come before and behind.
    value : Fraction
        What they are.
    """

    widths: tuple[tuple[int, int], ...]
    value: Fraction

    def shape(self, source: Shape) -> Shape:
        return check_shape(self.name, [size + a + b for size, (a, b) in zip(source, self.widths)], MOST_MAP)

    def run(self, x: Array) -> Array:
        return np.pad(x, self.widths, constant_values=float(self.value))


def is_padded(index: Array) -> bool:
    """Whether a tensor with this index has padded places."""
    return bool((index == OUTSIDE).any())


def without_padding(index: Array) -> tuple[Array, Sides]:
    """The index of what lies inside of padded rows and columns, and how many there are: top, left, bottom, right."""
    inside = np.argwhere(index != OUTSIDE)
    first, last = inside.min(axis=0), inside.max(axis=0) + 1
    box = index[tuple(map(slice, first, last))]
    if is_padded(box) or box.shape[:2] != index.shape[:2]:
        raise Unsupported("only rows and columns can be padded")
    behind = np.array(index.shape) - last
    return box, (int(first[2]), int(first[3]), int(behind[2]), int(behind[3]))


def same_value(values: Array) -> Fraction:
    """What stands at padded places, which must be one number for all channels."""
    if (values != values[0]).any():
        raise Unsupported("what a map is padded with must stay the same number in every channel")
    return Fraction(values[0])


def level_value(levels: Levels, value: Fraction) -> Fraction:
    """What a quantiser makes of a number."""
    counts = [
        sum(value > limit or (value == limit and hit) for limit, hit in zip(row, levels.reached.tolist()))
        for row in levels.boundaries
    ]
    return same_value(np.array([levels.base + levels.step * count for count in counts], object))
