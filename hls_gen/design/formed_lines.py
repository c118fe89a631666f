"""Line former: taps of lines of the kernel side by side, so that the array or the pool unit takes several in a cycle
(hls_gen/rtl/sequencer/line_former.py).

    words of positions, line after line --> words of the taps of a window's lines

Which rows and columns of a kernel it takes, says split_window.py. Where these are one row and all columns, the
sequencer then sees a map with a position for each window of a line, and a kernel of one column. Taps beside the map are
put in as 0, which adds nothing to a sum, or as the lowest value, which is no maximum.

The words of a tuple are put side by side in the same way: the tuple is a line, its words are the positions, and a
window of as many taps goes on by as many positions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.encoding import Ints
from bitloom.golden.window import Window

from .lanes import UNUSED
from .widths import PLACE_BITS, SIDE_BITS

ONE_TAP = Window(kernel=(1, 1))
"""Where nothing is put side by side."""


class MapLines(NamedTuple):
    """Lines of a map, or of the windows on it, one after another."""

    numbers: Ints
    """(lines,): their numbers, rising."""
    positions: int
    """Positions of each: its first ones."""


@dataclass(frozen=True, kw_only=True)
class FormedLines:
    """The words that a line former makes of a map."""

    words: int = 1
    """Words of a position, >= 1."""
    lines: int
    """Lines of the map that come, >= 1."""
    positions: int = 1
    """Positions of a line that come, the first ones, >= 1."""
    window: Window = ONE_TAP
    """Its taps lie side by side. With the last line that comes, windows are complete."""
    windows: int = 1
    """Windows of a line, >= 1."""
    flags: frozenset[str] = frozenset()
    """Flags that are 1, of those that the line former's layer row may have: that of a `Beside`
    (pool_unit.py): taps beside the map are its value, not 0. "whole": words come as wide as they leave, and leave as
    they come."""

    @classmethod
    def of(cls, window: Window, coming: MapLines, wanted: MapLines) -> "FormedLines | None":
        """The words that a line former makes of the lines of a map that come, so that it completes the windows that are
        wanted. None where it can't:

        - another reader of the map wants a line that is in none of these windows, or a position behind the last window;
        - windows have several lines, and a line of the map doesn't come;
        - a number is larger than the former's counters.
        """
        lines = len(coming.numbers)
        formed = cls(lines=lines, positions=coming.positions, window=window, windows=wanted.positions)
        complete = coming.numbers[formed.line_hits()]
        fits = (
            np.array_equal(complete, wanted.numbers * window.stride[0] + formed.first_line)
            and (complete[-1:] == coming.numbers[-1:]).all()
            and (window.kernel[0] == 1 or coming.numbers[-1] == lines - 1)
            and coming.positions <= formed.positions_through
        )
        return formed if fits and formed.countable else None

    @classmethod
    def straight(cls, words: int, flags: frozenset[str] = frozenset()) -> "FormedLines":
        """Of words that are handed on as they come: each is a line with one window of one tap."""
        return cls(lines=words, flags=flags)

    @classmethod
    def gathered(cls, tuples: int, words: int, taps: int) -> "FormedLines":
        """Of tuples whose words are put side by side, so many at a time; the first ones stand alone where words of a
        tuple are no multiple of that.

        Example: words 0 to 3 of a tuple leave, three at a time, as (0, 0, word 0) and (word 1, word 2, word 3).
        """
        windows = -(-words // taps)
        window = Window(kernel=(1, taps), stride=(1, taps), padding=(0, windows * taps - words, 0, 0))
        return cls(lines=tuples, positions=words, window=window, windows=windows)

    @property
    def taps(self) -> int:
        """Taps of a line side by side."""
        return self.window.kernel[1]

    @property
    def stride(self) -> int:
        """Columns from one window to the next."""
        return self.window.stride[1]

    @property
    def lead(self) -> int:
        """Taps of a line's first window that lie before the map."""
        return self.window.padding[1]

    @property
    def coming_words(self) -> int:
        """Words of the map that come."""
        return self.lines * self.positions * self.words

    @property
    def positions_through(self) -> int:
        """Positions of a line that the former goes through, from the first one on the map to the last window's last
        tap."""
        return (self.windows - 1) * self.stride + self.taps - self.lead

    @property
    def cycles(self) -> int:
        """Cycles that the former takes for the map if nothing makes it wait: one for each word of each position."""
        return self.lines * self.positions_through * self.words

    @property
    def first(self) -> int:
        """Steps before the one with which a line's first window is complete."""
        return self.taps - 1 - self.lead

    @property
    def line_stride(self) -> int:
        """Lines from one window to the next."""
        return self.window.stride[0]

    @property
    def first_line(self) -> int:
        """Lines before the one with which windows are complete first."""
        return self.window.kernel[0] - 1 - self.window.padding[0]

    @property
    def times(self) -> int:
        """How often the former goes through the same lines for a map: it goes through one where each completes windows,
        else through all."""
        return self.lines if self.line_hits().all() else 1

    def inside(self) -> NDArray[np.bool_]:
        """(positions_through of these lines,): whether the position lies on the map, and so comes."""
        return np.tile(np.arange(self.positions_through) < self.positions, self.lines // self.times)

    def hits(self) -> NDArray[np.bool_]:
        """(positions_through of these lines,): whether a window is complete with the position."""
        of_line = _hits(self.positions_through, self.first, self.stride)
        of_lines: NDArray[np.bool_] = np.logical_and.outer(self.line_hits()[: self.lines // self.times], of_line)
        return of_lines.ravel()

    def line_hits(self) -> NDArray[np.bool_]:
        """(lines,): whether windows are complete with the line."""
        return _hits(self.lines, self.first_line, self.line_stride)

    def columns(self) -> Ints:
        """(windows, taps): position of a line that each tap is; UNUSED of a tap beside those that come."""
        columns = np.add.outer(np.arange(self.windows) * self.stride, np.arange(self.taps)) - self.lead
        return np.where((columns >= 0) & (columns < self.positions), columns, UNUSED)

    @property
    def pads(self) -> bool:
        """Whether a window has taps beside the map."""
        return self.lead > 0 or self.window.padding[0] > 0 or self.positions_through > self.positions

    @property
    def countable(self) -> bool:
        """Whether the former's counters reach so far."""
        places = max(self.first, self.stride - 1, self.first_line, self.line_stride - 1)
        return places < 1 << PLACE_BITS and max(self.positions_through, self.positions) <= 1 << SIDE_BITS


def _hits(count: int, first: int, stride: int) -> NDArray[np.bool_]:
    """(count,): whether a place is the first one, or so many strides behind it."""
    after = np.arange(count) - first
    hits: NDArray[np.bool_] = (after >= 0) & (after % stride == 0)
    return hits
