"""Line former: taps of a line of the kernel side by side, so that the array or the pool unit takes several in a cycle
(hls_gen/rtl/sequencer/line_former.py).

    words of positions, line after line --> words of the taps of a window's line

A line of the kernel has one row and as many columns as the kernel. The sequencer then sees a map with a position for
each window of a line, and a kernel of one column. Taps beside the map are put in as 0, which adds nothing to a sum, or
as the lowest value, which is no maximum.

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
    """What the line former makes of a map."""

    words: int = 1
    """Words of a position, >= 1."""
    lines: int
    """Lines of the map that come, >= 1."""
    positions: int = 1
    """Positions of a line that come, the first ones, >= 1."""
    window: Window = ONE_TAP
    """Of a line: one row of taps, side by side."""
    windows: int = 1
    """Windows of a line, >= 1."""
    flags: frozenset[str] = frozenset()
    """Flags that are 1, of those that the line former's layer row may have: that of a `Beside`
    (pool_unit.py): taps beside the map are its value, not 0. "whole": words come as wide as they leave, and leave as
    they come."""

    @classmethod
    def of(cls, window: Window, coming: MapLines, wanted: MapLines) -> "FormedLines | None":
        """Of the lines of a map that come, the windows that are wanted. None where a line comes of which no window is
        wanted, or a position behind the last window, as only another reader of the map wants them; and where counters
        don't reach so far."""
        lines = len(coming.numbers)
        formed = cls(lines=lines, positions=coming.positions, window=window, windows=wanted.positions)
        fits = np.array_equal(coming.numbers, wanted.numbers) and coming.positions <= formed.steps
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
        """Taps side by side."""
        return self.window.taps

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
    def steps(self) -> int:
        """Positions of a line that the former goes through, from the first one on the map to the last window's last
        tap."""
        return (self.windows - 1) * self.stride + self.taps - self.lead

    @property
    def first(self) -> int:
        """Steps before the one with which a line's first window is complete."""
        return self.taps - 1 - self.lead

    @property
    def times(self) -> int:
        """How often the former goes through the same steps for a map: for each line."""
        return self.lines

    def inside(self) -> NDArray[np.bool_]:
        """(steps,): whether the position lies on the map, and so comes."""
        inside: NDArray[np.bool_] = np.arange(self.steps) < self.positions
        return inside

    def hits(self) -> NDArray[np.bool_]:
        """(steps,): whether a window is complete with the position."""
        after = np.arange(self.steps) - self.first
        hits: NDArray[np.bool_] = (after >= 0) & (after % self.stride == 0)
        return hits

    def columns(self) -> Ints:
        """(windows, taps): position of a line that each tap is; UNUSED of a tap beside those that come."""
        columns = np.add.outer(np.arange(self.windows) * self.stride, np.arange(self.taps)) - self.lead
        return np.where((columns >= 0) & (columns < self.positions), columns, UNUSED)

    @property
    def pads(self) -> bool:
        """Whether a window has taps beside the map."""
        return self.lead > 0 or self.steps > self.positions

    @property
    def countable(self) -> bool:
        """Whether the former's counters reach so far."""
        places = max(self.first, self.stride - 1)
        return places < 1 << PLACE_BITS and max(self.steps, self.positions) <= 1 << SIDE_BITS
