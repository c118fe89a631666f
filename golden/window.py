"""Windows: the positions of a map that one output position reads (spec B, words and B3).

Taps outside the map are invalid: they are never computed, so a padded tap adds exactly 0 to a sum, takes
no part in a maximum, and is not counted by an average.
"""

from dataclasses import dataclass

import numpy as np

from .encoding import Array
from .integers import make_fields_plain

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
    that direction, so that every window has a valid tap; a dilated one may have none, see `reaches`."""
    dilation: Pair = (1, 1)
    """Rows and columns from one tap to the next, each >= 1."""

    def __post_init__(self) -> None:
        make_fields_plain(self)

    def check(self, name: str) -> None:
        """Raise ValueError, naming ``name``, if a parameter is out of range."""
        for what, size, least, value in (
            ("kernel", 2, 1, self.kernel),
            ("stride", 2, 1, self.stride),
            ("padding", 4, 0, self.padding),
            ("dilation", 2, 1, self.dilation),
        ):
            if not isinstance(value, (tuple, list)) or len(value) != size or any(type(v) is not int for v in value):
                raise ValueError(f"{name}: {what} must be {size} integers, got {value!r}")
            if min(value) < least:
                raise ValueError(f"{name}: {what} must be >= {least}, got {value}")
        (kh, kw), (top, left, bottom, right) = self.span, self.padding
        if max(top, bottom) >= kh or max(left, right) >= kw:
            what = f"the dilated kernel {self.span}" if self.dilated else f"the kernel {self.kernel}"
            raise ValueError(
                f"{name}: padding (top, left, bottom, right) must be smaller than {what}, got {self.padding}"
            )

    @property
    def dilated(self) -> bool:
        """Whether other positions lie between those of the taps."""
        return any(taps > 1 < apart for taps, apart in zip(self.kernel, self.dilation))

    @property
    def span(self) -> Pair:
        """Rows and columns from the first tap to the last one, both included: the kernel where nothing is dilated."""
        rows, columns = ((taps - 1) * apart + 1 for taps, apart in zip(self.kernel, self.dilation))
        return rows, columns

    def reaches(self, height: int, width: int) -> bool:
        """Whether every window has a valid tap on a map of this size: where one is dilated, a map narrower than the
        taps are apart may lie between two of them."""
        rows, columns = self.reads(height, width)
        return all(((at >= 0) & (at < size)).any(axis=1).all() for at, size in ((rows, height), (columns, width)))

    @property
    def taps(self) -> int:
        """Taps of a whole window, valid or not."""
        return self.kernel[0] * self.kernel[1]

    def output_size(self, height: int, width: int) -> Pair:
        """(rows, columns) of the output; (0, ...) or less if the window does not fit."""
        (kh, kw), (sy, sx), (top, left, bottom, right) = self.span, self.stride, self.padding
        return (height + top + bottom - kh) // sy + 1, (width + left + right - kw) // sx + 1

    def reads(self, height: int, width: int) -> tuple[Array, Array]:
        """The row and the column at which each tap of each window lies.

        Returns
        -------
        (output rows, kernel rows) int64
            Row of each tap. A row that is not on the map is negative, or ``height`` or more.
        (output columns, kernel columns) int64
            The same for columns.
        """
        outputs = self.output_size(height, width)
        first = self.padding
        rows, columns = (
            np.arange(outputs[k])[:, None] * self.stride[k] + np.arange(self.kernel[k]) * self.dilation[k] - first[k]
            for k in (0, 1)
        )
        return rows, columns

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
