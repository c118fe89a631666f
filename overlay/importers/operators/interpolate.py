"""Bilinear interpolation, by depthwise convolutions.

A map that becomes larger, by whole numbers, grows and is clamped. Where a row a, b, c becomes twice as long, places
between two neighbours have 1/4 or 3/4 of each, beside a and c their own values alone:

    a . a . b . c . c    the row with its edges, which has grown
    1 3 3 1              the kernel at its first place, in quarters: (1 + 3) a
      1 3 3 1            at the next one: 3 a + b

Each place reads its two neighbours alone, as taps on a dot are never computed; with columns these are four values.

A map that becomes smaller has several kernels: where a row of 62 places becomes one of 32, 16 are made of every 31 by a
kernel each, whose stride is 31.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Pair, Window
from bitloom.overlay.importers.budget import VALUE_BYTES, take
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Padding, check_weights
from bitloom.overlay.importers.quantisers import Grid
from bitloom.overlay.importers.source import MOST_MAP, check_shape
from bitloom.overlay.importers.weights import MOST_WEIGHT

from .linear import slide


@dataclass(frozen=True, kw_only=True)
class _Hat:
    """The kernel of an axis: weights rise to the middle, and fall behind it."""

    growth: int
    """Places from one of the axis to the next."""
    twice_offset: int
    """Twice the distance of the first place from the axis' first one, in places."""

    @classmethod
    def of(cls, shares: Array) -> "_Hat":
        """The kernel that has these shares; Unsupported if there is none."""
        wanted, size = shares.shape
        for hat in cls._choices(wanted, size):
            if np.array_equal(hat.shares(wanted, size) * shares.sum(axis=1, keepdims=True), shares * hat.one):
                return hat
        raise Unsupported(
            f"all neighbours must have the same places between them, with the same shares, got {wanted} places of "
            f"{size}",
            "make rows and columns 2 or 4 times as many",
        )

    @classmethod
    def _choices(cls, wanted: int, size: int) -> "Iterator[_Hat]":
        """The kernels that make so many places of so many: of their own corners, of half pixels, of aligned corners."""
        if wanted % size == 0:
            yield cls(growth=wanted // size, twice_offset=0)
            yield cls(growth=wanted // size, twice_offset=1 - wanted // size)
        if wanted > 1 and size > 1 and (wanted - 1) % (size - 1) == 0:
            yield cls(growth=(wanted - 1) // (size - 1), twice_offset=0)

    @property
    def one(self) -> int:
        """The sum of the weights of a place."""
        return 2 * self.growth

    def shares(self, wanted: int, size: int) -> Array:
        """The weight that each place of an axis has in each of the wanted ones: (wanted, size) int64."""
        places = 2 * np.arange(wanted) + self.twice_offset
        lower = places // self.one
        rest = places % self.one
        shares = np.zeros((wanted, size), np.int64)
        for reads, weights in ((lower, self.one - rest), (lower + 1, rest)):
            np.add.at(shares, (np.arange(wanted), np.clip(reads, 0, size - 1)), weights)
        return shares

    @property
    def first(self) -> int:
        """The first tap, counted from the place that is made."""
        return (self.twice_offset - self.one) // 2 + 1

    @property
    def kernel(self) -> Array:
        """The weights of the taps."""
        last = -(-(self.twice_offset + self.one) // 2)
        return np.asarray(self.one - np.abs(2 * np.arange(self.first, last) - self.twice_offset))

    def sides(self, wanted: int, size: int) -> tuple[int, int]:
        """How many places lie before the axis when it has grown, and behind it."""
        return -self.first, wanted + self.first + len(self.kernel) - 2 - (size - 1) * self.growth


@dataclass(frozen=True, kw_only=True)
class _Phases:
    """An axis that becomes shorter: every so many places become so many, alike all along it."""

    stride: int
    """Places of the axis that become as many as the kernel has rows."""
    kernel: Array
    """(places that are made, taps) int64: the weight of each tap in each of them."""

    @classmethod
    def of(cls, shares: Array) -> "_Phases | None":
        """The phases that have these shares, which reach over no end of the axis; None if there are none."""
        wanted, size = shares.shape
        parts = gcd(wanted, size)
        count, stride = wanted // parts, size // parts
        taps = int(np.flatnonzero(shares[:count].any(axis=0))[-1]) + 1
        kernel = shares[:count, :taps]
        again = np.zeros_like(shares)
        if (parts - 1) * stride + taps > size or stride < count:
            return None
        for part in range(parts):
            again[part * count : (part + 1) * count, part * stride : part * stride + taps] = kernel
        return cls(stride=stride, kernel=kernel // gcd(*kernel.ravel().tolist())) if (again == shares).all() else None

    @property
    def one(self) -> int:
        """The sum of the weights of a place."""
        return int(self.kernel[0].sum())


def _slide_kernels(
    node: NodeView, rows: Array, columns: Array, one: Fraction, advice: str, stride: Pair = (1, 1)
) -> None:
    """Append a convolution that makes of each channel one for each kernel of rows and each one of columns, (kernels,
    taps) int64, whose products add up to ``one``."""
    channels = node.shape[1]
    check_weights(channels * rows.size * columns.size)
    kernel = rows[:, None, :, None] * columns[:, None]
    if kernel.max() > MOST_WEIGHT:
        raise Unsupported(f"the weights of its kernel must be at most {MOST_WEIGHT}, got {kernel.max()}", advice)
    weight = np.tile(kernel.reshape(-1, 1, *kernel.shape[2:]), (channels, 1, 1, 1))
    grid = Grid(integers=weight, scale=np.array(1 / one, object))
    slide(node, grid, None, Window(kernel=(rows.shape[1], columns.shape[1]), stride=stride), channels)


def _by_phases(node: NodeView, rows: _Phases, columns: _Phases) -> None:
    """Append a convolution that makes a channel for each phase of rows and columns of each channel, and put these where
    they belong."""
    count = len(rows.kernel), len(columns.kernel)
    channels = node.shape[1]
    one = Fraction(rows.one * columns.one)
    advice = "make rows and columns half as many"
    _slide_kernels(node, rows.kernel, columns.kernel, one, advice, (rows.stride, columns.stride))
    if count != (1, 1):
        places = node.places().reshape(1, channels, *count, *node.shape[2:]).transpose(0, 1, 4, 2, 5, 3)
        node.layout(places.reshape(1, channels, node.shape[2] * count[0], node.shape[3] * count[1]))


def interpolate(node: NodeView, shares: Sequence[Array]) -> bool:
    """Append the interpolation of rows and columns, of which an axis of one place is left to `repeated`.

    Parameters
    ----------
    node : NodeView
        It stands at a tensor (1, channels, rows, columns).
    shares : sequence of array
        Of rows and of columns: the share that each has in each of those that are made, (wanted, size) int64.

    Returns
    -------
    bool
        Whether anything was appended.
    """
    sizes = [len(each) if each.shape[1] > 1 else 1 for each in shares]
    check_shape(node.node.name, [*node.shape[:2], *sizes], MOST_MAP)
    of_rows, of_columns = (_Phases.of(each if each.shape[1] > 1 else np.ones((1, 1), np.int64)) for each in shares)
    if of_rows and of_columns and sizes != list(node.shape[2:]):
        _by_phases(node, of_rows, of_columns)
        return True
    hats = [_Hat.of(each) if each.shape[1] > 1 else _Hat(growth=1, twice_offset=0) for each in shares]
    growth = [hat.growth for hat in hats]
    if growth == [1, 1]:
        return False
    edges, around = [(0, 0)] * 2, [(0, 0)] * 2
    for hat, size, wanted in zip(hats, node.shape[2:], sizes):
        sides = hat.sides(wanted, size)
        edges.append((sides[0] // hat.growth, sides[1] // hat.growth))
        around.append((sides[0] % hat.growth, sides[1] % hat.growth))
    if any(map(any, edges)):
        node.layout(np.pad(node.places(), edges, mode="edge"))
    node.append(Padding, widths=tuple(around), value=Fraction(0), growth=(1, 1, *growth))
    divisors = [gcd(*hat.kernel.tolist()) for hat in hats]
    rows, columns = (hat.kernel[None] // divisor for hat, divisor in zip(hats, divisors))
    one = Fraction(prod(hat.one for hat in hats), prod(divisors))
    _slide_kernels(node, rows, columns, one, "make rows and columns 2 or 4 times as many")
    return True


def repeated(node: NodeView, shares: Sequence[Array]) -> None:
    """Append a layout that repeats rows, or columns, of which there is one, as often as is wanted."""
    times = [len(each) if each.shape[1] == 1 else 1 for each in shares]
    if times == [1, 1]:
        return
    take(held=VALUE_BYTES * node.places().size * times[0] * times[1])
    check_shape(node.node.name, [*node.shape[:2], node.shape[2] * times[0], node.shape[3] * times[1]], MOST_MAP)
    node.layout(node.places().repeat(times[0], axis=2).repeat(times[1], axis=3))
