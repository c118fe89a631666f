"""Window former: taps of a window side by side in words, so that a layer of few channels fills the lanes
(hls_gen/rtl/former/window_former.py).

    words: positions side by side, row after row --> windows: tuples of columns x former_column lanes

A window's lanes are its columns, the newest (rightmost) first, each in ``former_column`` lanes; a column's lanes are
its rows, the newest (lowest) first, each with the channels of a position. Positions beside the map are put in as 0.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.encoding import Ints
from bitloom.golden.window import Window

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

    @property
    def upright(self) -> "FormedWindows":
        """The same windows; a map one position wide is turned, its column becomes a row: a position waits until the one
        before is in the line memory."""
        if self.padded[1] > 1 or self.width > 1:
            return self
        (kh, kw), (sy, sx), (top, left, bottom, right) = self.window.kernel, self.window.stride, self.window.padding
        window = Window(kernel=(kw, kh), stride=(sx, sy), padding=(left, top, right, bottom))
        height, width, rows, columns = self.width, self.height, self.columns, self.rows
        return replace(self, window=window, height=height, width=width, rows=rows, columns=columns)

    @property
    def tap_lanes(self) -> int:
        """Lanes of a column that have taps."""
        return self.window.kernel[0] * self.channels

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of positions that the former goes through, those beside the map included."""
        (kh, kw), (sy, sx) = self.window.kernel, self.window.stride
        return (self.rows - 1) * sy + kh, (self.columns - 1) * sx + kw

    @property
    def sent(self) -> tuple[int, int]:
        """Rows and columns of the map that come, the first ones of each axis."""
        (rows, columns), (top, left, _, _) = self.padded, self.window.padding
        return min(self.height, rows - top), min(self.width, columns - left)

    @property
    def pads(self) -> bool:
        """Whether a window that is wanted has taps beside the map."""
        return self.sent != self.padded

    @property
    def steps(self) -> int:
        """Positions that the former goes through."""
        return self.padded[0] * self.padded[1]

    @property
    def word_positions(self) -> int:
        """Positions side by side in a word that comes."""
        return self.word_lanes // self.channels if self.packed else 1

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
        """Cycles that the former takes for a frame if nothing makes it wait."""
        return self.steps + self.rows * self.columns * (self.words - 1)

    def layout(self) -> Ints:
        """(words, word_lanes): tap * channels + channel in each lane of a window's words, taps row-major; or UNUSED."""
        kh, kw = self.window.kernel
        lane = np.arange(self.words * self.word_lanes)
        column = lane // self.column_lanes
        inside = lane % self.column_lanes
        tap = (kh - 1 - inside // self.channels) * kw + kw - 1 - column
        used = (column < kw) & (inside < kh * self.channels)
        lanes: Ints = np.where(used, tap * self.channels + inside % self.channels, UNUSED)
        return lanes.reshape(self.words, self.word_lanes)

    def hits(self) -> NDArray[np.bool_]:
        """(steps,): whether a window is complete with the position."""
        (kh, kw), (sy, sx), (rows, columns) = self.window.kernel, self.window.stride, self.padded
        y = np.arange(rows) - (kh - 1)
        x = np.arange(columns) - (kw - 1)
        grid: NDArray[np.bool_] = ((y >= 0) & (y % sy == 0))[:, None] & ((x >= 0) & (x % sx == 0))
        return grid.ravel()

    def inside(self) -> NDArray[np.bool_]:
        """(steps,): whether the position lies on the map, and so comes."""
        (rows, columns), (top, left, _, _), (height, width) = self.padded, self.window.padding, self.sent
        y = np.arange(rows) - top
        x = np.arange(columns) - left
        grid: NDArray[np.bool_] = ((y >= 0) & (y < height))[:, None] & ((x >= 0) & (x < width))
        return grid.ravel()

    def needs(self) -> dict[str, int]:
        """Capacities that an NPU must have for it, by name."""
        return {
            "former_channels": self.channels,
            "former_column": self.column_lanes,
            "former_columns": self.window.kernel[1],
            "former_line": self.padded[1],
        }

    @property
    def countable(self) -> bool:
        """Whether the former's counters reach so far."""
        places = max(*self.window.kernel, *self.window.stride)
        return places <= 1 << PLACE_BITS and max(self.padded) <= 1 << SIDE_BITS and self.padded[1] > 1
