"""An order of values as host files have it: a list of pieces, each ``[first, count, step, count, step, ...]``.

A piece is a grid of places, its outermost axis first: ``count`` entries of an axis lie ``step`` places apart. An image
of (channels, rows, columns) in a map of (rows, columns, channels) is one piece whatever its size. Any order can be
written, at worst as a piece for each two values.
"""

from collections.abc import Sequence
from math import prod
from operator import index

import numpy as np

from bitloom.golden.encoding import Array

MOST_AXES = 32
"""Axes of a piece at most: each has two entries or more."""


def to_pieces(order: Array) -> list[list[int]]:
    """Write an order.

    Parameters
    ----------
    order : (N,) int64
        Each of 0..N-1 once.
    """
    pieces = []
    begin = 0
    while begin < len(order):
        axes: list[int] = []
        size = 1
        while (rows := _rows(order[begin:], size)) > 1:
            axes = [rows, int(order[begin + size] - order[begin]), *axes]
            size *= rows
        pieces.append([int(order[begin]), *axes])
        begin += size
    return pieces


def _rows(order: Array, size: int) -> int:
    """How many times the first ``size`` places come one behind the other, each time one step on."""
    most = len(order) // size
    rows = 1
    while more := min(rows, most - rows):
        on = (order[size] - order[0]) * np.arange(rows, rows + more)
        places = order[size * rows : size * (rows + more)].reshape(more, size)
        same = (places == order[:size] + on[:, None]).all(1)
        if not same.all():
            return rows + int(np.argmin(same))
        rows += more
    return rows


def from_pieces(pieces: Sequence[Sequence[int]], values: int, what: str) -> Array:
    """Read an order.

    Parameters
    ----------
    pieces : sequence of sequences of integers
        Of anybody.
    values : int
        How many values there are.
    what : str
        Things that are ordered, for messages.

    Returns
    -------
    (values,) int64

    Raises
    ------
    ValueError
        Unless each of ``values`` places comes once. No more memory is taken than ``values`` need.
    TypeError
        If something isn't an integer.
    """
    rule = f"{what} must have each of {values} places once"
    parts: list[Array] = []
    left = values
    for piece in pieces:
        first, *axes = [index(number) for number in piece] or [-1]
        counts = axes[::2]
        steps = axes[1::2]
        if len(counts) != len(steps) or len(counts) > MOST_AXES or min(counts, default=2) < 2:
            raise ValueError(rule)
        ends = [(count - 1) * step for count, step in zip(counts, steps, strict=True)]
        low = first + sum(min(0, end) for end in ends)
        high = first + sum(max(0, end) for end in ends)
        left -= prod(counts)
        if left < 0 or low < 0 or high >= values:
            raise ValueError(rule)
        places = np.array([first], np.int64)
        for count, step in zip(counts, steps, strict=True):
            places = (places[:, None] + np.arange(count) * step).ravel()
        parts.append(places)
    order = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if left or np.bincount(order, minlength=values).max(initial=1) > 1:
        raise ValueError(rule)
    return order
