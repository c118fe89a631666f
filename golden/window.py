"""Windows: the positions of a map that one output position reads (spec B, words and B3).

Taps outside the map are invalid: they are never computed, so a padded tap adds exactly 0 to a sum, takes
no part in a maximum, and is not counted by an average. Or they read the nearest position of the map, or the one that is
as far from its edge on the other side.

A map may grow before windows slide over it. Of growth 2 a row of positions a, b, c becomes

    a a b b c c     repeated, as nearest upsampling makes it
    a . b . c       else, as a transposed convolution reads it: taps on a dot are invalid

With padding 2 on both sides, of the nearest position:

    a a a a b b c c c c
    a . a . b . c . c

and mirrored, of a map that doesn't grow:

    c b a b c b a
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from .encoding import Array
from .integers import make_fields_plain

BESIDE = ("nothing", "nearest", "mirrored")
"""Sources of the taps beside a map."""
Pair = tuple[int, int]
Sides = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class Window:
    """A kernel that slides over an H x W map."""

    kernel: Pair
    """Rows and columns of taps, each >= 1."""
    stride: Pair = (1, 1)
    """Rows and columns from one window to the next, each >= 1."""
    padding: Sides = (0, 0, 0, 0)
    """Rows or columns of invalid taps at top, left, bottom and right, each >= 0 and smaller than the kernel's span in
    that direction, so that every window has a valid tap; a dilated one, or one of a map that grows, may have none, see
    `reaches`."""
    dilation: Pair = (1, 1)
    """Rows and columns from one tap to the next, each >= 1."""
    growth: Pair = (1, 1)
    """Rows and columns of the grown map from one position to the next, each >= 1. Kernel, stride, padding and dilation
    count rows and columns of the grown map."""
    repeats: bool = False
    """Whether positions are repeated where the map grows; else taps between them are invalid."""
    beside: str = "nothing"
    """Source of the taps beside the map, one of BESIDE: "nothing", where these taps are invalid; the nearest position
    of the map; or the mirrored position, as far from the edge on the other side, again and again where the padding is
    wider than the map, which doesn't grow. A map that grows without repeating its positions goes on beside itself: taps
    as far apart as its positions read the nearest one, others are invalid."""

    def __post_init__(self) -> None:
        make_fields_plain(self)

    def check(self, name: str) -> None:
        """Raise ValueError, naming ``name``, if a parameter is out of range."""
        for what, size, least, value in (
            ("kernel", 2, 1, self.kernel),
            ("stride", 2, 1, self.stride),
            ("padding", 4, 0, self.padding),
            ("dilation", 2, 1, self.dilation),
            ("growth", 2, 1, self.growth),
        ):
            if not isinstance(value, (tuple, list)) or len(value) != size or any(type(v) is not int for v in value):
                raise ValueError(f"{name}: {what} must be {size} integers, got {value!r}")
            if min(value) < least:
                raise ValueError(f"{name}: {what} must be >= {least}, got {value}")
        if type(self.repeats) is not bool:
            raise ValueError(f"{name}: repeats must be True or False, got {self.repeats!r}")
        if self.beside not in BESIDE:
            raise ValueError(f"{name}: beside must be one of {', '.join(BESIDE)}, got {self.beside!r}")
        if self.beside == "mirrored" and tuple(self.growth) != (1, 1):
            raise ValueError(f"{name}: growth must be (1, 1) where the map is mirrored, got {self.growth}")
        (kh, kw), (top, left, bottom, right) = self.span, self.padding
        if self.beside == "nothing" and (max(top, bottom) >= kh or max(left, right) >= kw):
            what = f"the dilated kernel {self.span}" if self.dilated else f"the kernel {self.kernel}"
            raise ValueError(
                f"{name}: padding (top, left, bottom, right) must be smaller than {what}, got {self.padding}"
            )

    @property
    def dilated(self) -> bool:
        """Whether other positions lie between those of the taps."""
        return any(taps > 1 < apart for taps, apart in zip(self.kernel, self.dilation))

    @property
    def plain(self) -> bool:
        """Whether the taps of a window are neighbours on the map, but for invalid ones beside it: nothing is dilated,
        and the map doesn't grow."""
        return not self.dilated and self.beside == "nothing" and self.growth == (1, 1)

    @property
    def padded(self) -> bool:
        """Whether taps may be invalid: in the padding, or between positions of a map that grows."""
        return (any(self.padding) and self.beside == "nothing") or (self.growth != (1, 1) and not self.repeats)

    @property
    def span(self) -> Pair:
        """Rows and columns from the first tap to the last one, both included: the kernel where nothing is dilated."""
        rows, columns = ((taps - 1) * apart + 1 for taps, apart in zip(self.kernel, self.dilation))
        return rows, columns

    def grown(self, height: int, width: int) -> Pair:
        """(rows, columns) of a map of this size when it has grown."""
        if self.repeats:
            return height * self.growth[0], width * self.growth[1]
        return (height - 1) * self.growth[0] + 1, (width - 1) * self.growth[1] + 1

    def grow(self, x: Array) -> Array:
        """A batch of maps (N, H, W, C) when they have grown, with 0 where nothing is, and with the padding around them
        where that has values of the map."""
        if self.growth == (1, 1) and self.beside == "nothing":
            return x
        around = (0, 0, 0, 0) if self.beside == "nothing" else self.padding
        each = replace(self, kernel=(1, 1), stride=(1, 1), padding=around)
        rows, columns = (places.ravel() for places in each.reads(*x.shape[1:3]))
        grown: Array = x[:, rows][:, :, columns]
        grown[:, rows < 0] = 0
        grown[:, :, columns < 0] = 0
        return grown

    def reaches(self, height: int, width: int) -> bool:
        """Whether every window has a valid tap on a map of this size: where one is dilated, a map narrower than the
        taps are apart may lie between two of them; where a map grows, all taps may lie between its positions."""
        rows, columns = self.reads(height, width)
        return all(((at >= 0) & (at < size)).any(axis=1).all() for at, size in ((rows, height), (columns, width)))

    @property
    def taps(self) -> int:
        """Taps of a whole window, valid or not."""
        return self.kernel[0] * self.kernel[1]

    def output_size(self, height: int, width: int) -> Pair:
        """(rows, columns) of the output; (0, ...) or less if the window does not fit."""
        height, width = self.grown(height, width)
        (kh, kw), (sy, sx), (top, left, bottom, right) = self.span, self.stride, self.padding
        return (height + top + bottom - kh) // sy + 1, (width + left + right - kw) // sx + 1

    def checked_output_size(self, name: str, height: int, width: int) -> Pair:
        """(rows, columns) of the output; ValueError, naming ``name``, if the window does not fit."""
        rows, columns = self.output_size(height, width)
        if rows < 1 or columns < 1:
            rule = "the window must fit the padded map"
            raise ValueError(f"{name}: {rule}, got kernel {self.kernel} on {height} x {width}")
        return rows, columns

    def reads(self, height: int, width: int) -> tuple[Array, Array]:
        """The row and the column that each tap of each window reads.

        Returns
        -------
        (output rows, kernel rows) int64
            Row of each tap. Where it is invalid, a number that is negative, or ``height`` or more.
        (output columns, kernel columns) int64
            The same for columns.
        """
        outputs = self.output_size(height, width)
        first = self.padding
        grown = (
            np.arange(outputs[k])[:, None] * self.stride[k] + np.arange(self.kernel[k]) * self.dilation[k] - first[k]
            for k in (0, 1)
        )
        rows, columns = (
            np.where(self.repeats | (place % growth == 0), self._of_map(place // growth, size), -1)
            for place, growth, size in zip(grown, self.growth, (height, width))
        )
        return rows, columns

    def _of_map(self, places: Array, size: int) -> Array:
        """The rows, or columns, that taps read at such places of a map with ``size`` of them."""
        if self.beside == "nearest":
            return np.clip(places, 0, size - 1)
        if self.beside == "mirrored":
            there_and_back = max(1, 2 * (size - 1))
            return np.asarray(size - 1 - np.abs(places % there_and_back - (size - 1)))
        return places

    def positions(self, height: int, width: int) -> Array:
        """The positions of a map that each window reads (spec B, "position", "window", "tap").

        Parameters
        ----------
        height, width : int
            Size of the map.

        Returns
        -------
        (outputs, taps) int64
            Row-major position of each tap on the map, -1 for an invalid one. Outputs and taps are row-major too.
        """
        rows, columns = self.reads(height, width)
        y = rows[:, None, :, None]  # (rows, 1, kh, 1)
        x = columns[None, :, None, :]  # (1, columns, 1, kw)
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        return np.where(inside, y * width + x, -1).reshape(len(rows) * len(columns), self.taps)


def with_invalid(x: Array, filler: float = 0) -> Array:
    """The positions of maps, and one more for invalid taps: `Window.positions` are indexes of the second axis.

    Parameters
    ----------
    x : (N, H, W, C), or (N, positions, C)
    filler : number
        The values at position -1.

    Returns
    -------
    (N, positions + 1, C)
        Row-major.
    """
    flat = x.reshape(len(x), prod(x.shape[1:-1]), x.shape[-1])
    return np.concatenate([flat, np.full_like(flat[:, :1], filler)], axis=1)
