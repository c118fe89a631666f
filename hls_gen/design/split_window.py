"""Split windows: which taps of a window lie side by side, and in which order. A former puts them side by side in front
of a tuple memory; to the sequencer behind it the window has fewer taps, each a tuple of several taps.

    kernel 2 x 3         tap by tap       by a line former      by a window former
    0 1 2                6 tuples of      2 tuples of           1 tuple of
    3 4 5                1 tap            0 1 2, 3 4 5          0 1 2 3 4 5

The former takes the kernel along some axes, and the sequencer along the others. Weights, lanes and counts of taps
follow from a split window.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bitloom.golden.encoding import Array
from bitloom.golden.window import Pair, Window

from .lanes import UNUSED


@dataclass(frozen=True)
class SplitWindow:
    """A window of which a former reads a part, and a sequencer what the former makes."""

    window: Window
    """The window. Along an axis that the former takes, its taps are neighbours."""
    takes_rows: bool = False
    takes_columns: bool = False
    """takes_rows, takes_columns: whether the former takes all rows of the kernel, and all its columns; by default there
    is no former."""

    @cached_property
    def formed(self) -> Window:
        """What the former reads of the map: its taps lie side by side."""
        return _along(self.window, (self.takes_rows, self.takes_columns))

    @cached_property
    def rest(self) -> Window:
        """What the sequencer reads, of a map with a tuple for each window that is formed."""
        return _along(self.window, (not self.takes_rows, not self.takes_columns))

    @property
    def tuples(self) -> int:
        """Tuples that a window reads."""
        return self.rest.taps

    @property
    def tuple_taps(self) -> int:
        """Taps of a tuple; 1 where nothing is formed."""
        return self.formed.taps

    def dealt(self, values: Array, axis: int = 0) -> Array:
        """Deal values to tuples, such as weights.

        Parameters
        ----------
        values : (..., taps, ...)
            A value for each tap of the window, row-major.
        axis
            That of the taps.

        Returns
        -------
        (..., tuples, tuple_taps, ...)
            The same values; no copy where a copy isn't needed.
        """
        before, behind = values.shape[:axis], values.shape[axis + 1 :]
        (rows, columns), (formed_rows, formed_columns) = self.rest.kernel, self.formed.kernel
        of_axes = values.reshape(*before, rows, formed_rows, columns, formed_columns, *behind)
        dealt: Array = of_axes.swapaxes(axis + 1, axis + 2).reshape(*before, self.tuples, self.tuple_taps, *behind)
        return dealt


def _along(window: Window, axes: tuple[bool, bool]) -> Window:
    """The window along some axes of the map; along the others it is a position, on each position of the map."""
    vertical, horizontal = axes

    def of_axes(values: Pair, beside: int = 1) -> Pair:
        return values[0] if vertical else beside, values[1] if horizontal else beside

    return Window(
        kernel=of_axes(window.kernel),
        stride=of_axes(window.stride),
        padding=(*of_axes(window.padding[:2], beside=0), *of_axes(window.padding[2:], beside=0)),
        dilation=of_axes(window.dilation),
        growth=of_axes(window.growth),
        repeats=window.repeats,
        clamps=window.clamps,
    )


class BeatTaps(NamedTuple):
    """The taps that a unit takes in a beat, side by side: neighbours in a line of the kernel."""

    taps: int
    """How many there are, >= 1; 1: nothing is formed."""

    def split(self, window: Window) -> SplitWindow:
        """How a line former splits a window for the unit: tap by tap, where there is no line of several taps, the line
        has too many, or they are no neighbours."""
        neighbours = window.dilation[1] == window.growth[1] == 1 and not window.clamps
        return SplitWindow(window, takes_columns=neighbours and 1 < window.kernel[1] <= self.taps)

    def places(self, tuple_taps: int) -> list[int]:
        """The tap of a tuple in each place of a word for a beat, the lowest first: the last tap is the highest one, and
        below the first one places are UNUSED."""
        return [UNUSED] * (self.taps - tuple_taps) + list(range(tuple_taps))
