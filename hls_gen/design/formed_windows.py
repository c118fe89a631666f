"""Window former: taps of a window side by side in words, so that a layer of few channels fills the lanes
(hls_gen/rtl/former/window_former.py).

    words: positions side by side, row after row --> windows: tuples of columns x former_column lanes

A window's lanes are its columns, the newest (rightmost) first, each in ``former_column`` lanes; a column's lanes are
its rows, the newest (lowest) first, each with the channels of a position. Positions beside the map are put in as 0.

Where windows go on by several rows, a position may have the channels of as many rows of the map side by side: to the
former the map then has fewer rows, of more channels, and so have kernel and stride. What such a position has of rows
beside the map is 0.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.encoding import Ints
from bitloom.golden.window import Pair, Window

from .lanes import UNUSED
from .widths import PLACE_BITS, SIDE_BITS


@dataclass(frozen=True, kw_only=True)
class FormedWindows:
    """The windows that are formed of a map."""

    height: int
    width: int
    channels: int
    """height, width, channels: size of the map."""
    window: Window
    """Of the layer that reads it."""
    rows: int
    columns: int
    """rows, columns: windows that are wanted: the first ones of each axis, >= 1."""
    column_lanes: int
    """Lanes of a column, at least those of the kernel's rows."""
    word_lanes: int
    """Channels of a word, at least those of a position."""
    packed: bool = True
    """Whether words that come have as many positions side by side as there is room for, as those of frames; else
    one."""
    together: int = 1
    """Rows of the map that a position has side by side, a divisor of the stride of rows; the first position's are those
    of the first window's first tap. 1 where words are not packed."""
    ahead: bool = False
    """Whether positions come while words of the window before leave, all but the first one: a copy has these."""

    @property
    def upright(self) -> "FormedWindows":
        """These windows as the window former makes them: the column of a map one position wide becomes a row, so that a
        position waits until the one before is in the line memory."""
        if self.padded[1] > 1 or self.width > 1:
            return self
        (kh, kw), (sy, sx), (top, left, bottom, right) = self.window.kernel, self.window.stride, self.window.padding
        window = Window(kernel=(kw, kh), stride=(sx, sy), padding=(left, top, right, bottom))
        height, width, rows, columns = self.width, self.height, self.columns, self.rows
        return replace(self, window=window, height=height, width=width, rows=rows, columns=columns)

    @property
    def position_channels(self) -> int:
        """Channels of a position."""
        return self.channels * self.together

    @property
    def kernel(self) -> Pair:
        """Rows and columns of positions of a window."""
        return -(-self.window.kernel[0] // self.together), self.window.kernel[1]

    @property
    def stride(self) -> Pair:
        """Rows and columns of positions from a window to the next one."""
        return self.window.stride[0] // self.together, self.window.stride[1]

    @property
    def lead(self) -> Pair:
        """Rows and columns of positions in front of the map."""
        return self.window.padding[0] // self.together, self.window.padding[1]

    @property
    def tap_lanes(self) -> int:
        """Lanes of a column that have taps."""
        return self.kernel[0] * self.position_channels

    @property
    def padded(self) -> Pair:
        """Rows and columns of positions that the former goes through, those beside the map included."""
        (kh, kw), (sy, sx) = self.kernel, self.stride
        return (self.rows - 1) * sy + kh, (self.columns - 1) * sx + kw

    @property
    def sent(self) -> Pair:
        """Rows and columns of positions that come, the first ones on the map of each axis."""
        (rows, columns), (top, left) = self.padded, self.lead
        on_map = -(-(self.height + self.window.padding[0]) // self.together) - top
        return min(on_map, rows - top), min(self.width, columns - left)

    @property
    def pads(self) -> bool:
        """Whether a window that is wanted has taps beside the map."""
        (kh, kw), (sy, sx), (top, left, _, _) = self.window.kernel, self.window.stride, self.window.padding
        beside = max((self.rows - 1) * sy + kh - top - self.height, (self.columns - 1) * sx + kw - left - self.width)
        return top > 0 or left > 0 or beside > 0

    @property
    def positions_through(self) -> int:
        """Positions that the former goes through."""
        return self.padded[0] * self.padded[1]

    @property
    def word_positions(self) -> int:
        """Positions side by side in a word that comes."""
        return self.word_lanes // self.position_channels if self.packed else 1

    @property
    def frame_words(self) -> int:
        """Words of the map, as they come."""
        return -(-self.sent[0] * self.sent[1] // self.word_positions)

    @property
    def words(self) -> int:
        """Words of a window."""
        return -(-self.window.kernel[1] * self.column_lanes // self.word_lanes)

    @property
    def cycles(self) -> int:
        """Cycles that the former takes for a frame if nothing makes it wait; a few more or less where it goes ahead, as
        words of a row's last window leave while the next rows come."""
        if not self.ahead:
            return self.positions_through + self.rows * self.columns * (self.words - 1)
        (height, width), (_, kw), (sy, sx) = self.padded, self.kernel, self.stride
        begin = kw if sy > 1 else max(kw, self.words)  # words of the row before may still leave
        return (height - self.rows) * width + self.rows * (begin + (self.columns - 1) * max(sx, self.words))

    def layout(self) -> Ints:
        """(words, word_lanes): tap * channels + channel in each lane of a window's words, taps row-major; or UNUSED."""
        kh, kw = self.window.kernel
        lane = np.arange(self.words * self.word_lanes)
        column = lane // self.column_lanes
        inside = lane % self.column_lanes
        row, of_row = np.divmod(inside % self.position_channels, self.channels)
        row += (self.kernel[0] - 1 - inside // self.position_channels) * self.together
        tap = row * kw + kw - 1 - column
        used = (column < kw) & (inside < self.tap_lanes) & (row < kh)
        lanes: Ints = np.where(used, tap * self.channels + of_row, UNUSED)
        return lanes.reshape(self.words, self.word_lanes)

    def map_rows(self) -> Ints:
        """(rows of positions that come, ``together``): the row of the map that lies there, or a number beside it."""
        rows: Ints = np.arange(self.sent[0] * self.together) + self.lead[0] * self.together - self.window.padding[0]
        return rows.reshape(-1, self.together)

    def hits(self) -> NDArray[np.bool_]:
        """(positions_through,): whether a window is complete with the position."""
        (kh, kw), (sy, sx), (rows, columns) = self.kernel, self.stride, self.padded
        y = np.arange(rows) - (kh - 1)
        x = np.arange(columns) - (kw - 1)
        grid: NDArray[np.bool_] = ((y >= 0) & (y % sy == 0))[:, None] & ((x >= 0) & (x % sx == 0))
        return grid.ravel()

    def inside(self) -> NDArray[np.bool_]:
        """(positions_through,): whether the position lies on the map, and so comes."""
        (rows, columns), (top, left), (height, width) = self.padded, self.lead, self.sent
        y = np.arange(rows) - top
        x = np.arange(columns) - left
        grid: NDArray[np.bool_] = ((y >= 0) & (y < height))[:, None] & ((x >= 0) & (x < width))
        return grid.ravel()

    def needs(self) -> dict[str, int]:
        """Capacities that an NPU must have for it, by name."""
        return {
            "former_channels": self.position_channels,
            "former_column": self.column_lanes,
            "former_columns": self.window.kernel[1],
            "former_line": self.padded[1],
            "former_ahead": int(self.ahead),
        }

    @property
    def countable(self) -> bool:
        """Whether the former's counters reach so far."""
        places = max(*self.kernel, *self.stride)
        return places <= 1 << PLACE_BITS and max(self.padded) <= 1 << SIDE_BITS and self.padded[1] > 1
