"""Sections: what lies between two quantisers of a network, in golden's order of values."""

from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .boundaries import Ends, Line
from .operations import Operation
from .tflite_rules import KernelRule

Size = tuple[int, int, int]
"""Rows, columns, channels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantised:
    """A map of levels: its real values are base + step * level.

    Attributes
    ----------
    name : str
        Of the node that made it.
    base, step : Fraction
        Step > 0.
    boundaries, reached :
        See `operations.Levels`; no boundaries where integers come in as they are.
    levels : int
        The highest level.
    averaged : bool
        Whether means of the map are taken, rounded to its own values, halves away from 0.
    halves : bool
        Whether such a mean may lie halfway between two values: its rounding depends on where the values' 0 is.
    rule : KernelRule or None
        See `operations.Levels`.
    """

    name: str
    base: Fraction
    step: Fraction
    boundaries: Array | None
    reached: Array | None
    levels: int
    averaged: bool = False
    halves: bool = False
    rule: KernelRule | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """What lies between two quantisers.

    Attributes
    ----------
    name : str
        Of the node with the weights.
    weight : (outputs, rows, columns, channels) int64
        In golden's order.
    scale : (outputs,) array of Fraction
        What an integer weight is worth.
    window : Window or None
        None for a dense layer, whose window is the whole map.
    size : (int, int, int)
        Of what the weights make.
    lead : Line
        What the map that is read is worth: real = multiply * (base + step * level) + add, a channel.
    chain : tuple of Line and Ends
        From the sums to the quantiser, or to the output.
    inner : tuple of Window
        Max pools before the quantiser.
    inner_at : int
        How many links of the chain lie before these.
    made : Quantised or None
        What the quantiser makes; None where the sums go to the output.
    pools : tuple of Window
        Pools behind the quantiser: of maxima, but for the last one where the map is averaged.
    nodes : tuple of str
        Names of all nodes that the section was made of.
    reads : str
        The tensor at which it begins.
    order : int64 array
        The place of each value of that tensor in golden's map.
    there : Line
        What the map's levels are worth in that tensor: real = multiply * (base + step * level) + add.
    real : array or None
        Real numbers of which ``weight`` are the signs, in the same order.
    sums : tuple of Window
        Of means that are taken of the sums, before all that the chain does.
    """

    name: str
    weight: Array
    scale: Array
    window: Window | None
    size: Size
    lead: Line
    chain: tuple[Line | Ends, ...] = ()
    inner: tuple[Window, ...] = ()
    inner_at: int = 0
    made: Quantised | None = None
    pools: tuple[Window, ...] = ()
    nodes: tuple[str, ...] = ()
    reads: str = ""
    order: Array | None = None
    there: Line | None = None
    real: Array | None = None
    sums: tuple[Window, ...] = ()

    @property
    def count(self) -> int:
        """How many sums of its weights each value is made of that the chain takes: more than 1 where means of sums are
        taken. ``scale`` has the division in it."""
        return prod(window.taps for window in self.sums)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """A network as sections.

    Attributes
    ----------
    name : str
    front : tuple of Line and Ends
        What the host does with an image, a channel, before it quantises it; nothing where integers come in.
    source : Quantised
        The map that the accelerator reads.
    size : (int, int, int)
        Its rows, columns and channels.
    order : int64 array
        Of the input tensor's shape, with 1 in front: the place of each value in that map.
    sections : tuple of Section
    final : Line
        What the last map is worth, if it was quantised, or what the last chain's values are worth: always 1 and 0 then.
    chain : tuple of Operation
        The operations from the input to the output.
    output_order : array of int
        The place in the last map of each value of the output.
    closing : tuple of str
        Operators that the host computes at the end.
    final_size : (int, int, int)
        Rows, columns and channels of the last map.
    head : Section or None
        Without weights: the input, and pools of it that come before the first section; None where there are none.
    """

    name: str
    front: tuple[Line | Ends, ...]
    source: Quantised
    size: Size
    order: Array
    sections: tuple[Section, ...]
    final: tuple[Line | Ends, ...]
    chain: tuple[Operation, ...]
    output_order: Array
    closing: tuple[str, ...]
    final_size: Size = (1, 1, 1)
    head: Section | None = None


def without_weights(name: str, made: Quantised, size: Size, nodes: tuple[str, ...]) -> Section:
    """A section for pools of a map that no weights make: of this name, with what the map holds, its size, and the names
    of its nodes."""
    one, none = np.full(size[2], Fraction(1), object), np.full(size[2], Fraction(0), object)
    return Section(
        name=name,
        weight=np.zeros((0, 1, 1, size[2]), np.int64),
        scale=one[:0],
        window=None,
        size=size,
        lead=Line(multiply=one, add=none),
        made=made,
        nodes=nodes,
    )


def golden_order(shape: tuple[int, ...]) -> tuple[Array, Size]:
    """A tensor's values in golden's map: the place of each one, and the map's size.

    Parameters
    ----------
    shape : tuple of int
        (1, channels, rows, columns), (1, rows, columns) or (1, channels).

    Returns
    -------
    int64 array of that shape
        Places, row-major over rows, columns, channels.
    (int, int, int)
        Rows, columns, channels.
    """
    if len(shape) == 4:
        _, channels, rows, columns = shape
        places = np.arange(rows * columns * channels).reshape(1, rows, columns, channels)
        return places.transpose(0, 3, 1, 2), (rows, columns, channels)
    count = int(np.prod(shape))
    if len(shape) == 3:
        return np.arange(count).reshape(shape), (shape[1], shape[2], 1)
    return np.arange(count).reshape(shape), (1, 1, count)
