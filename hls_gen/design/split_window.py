"""Split windows: which taps of a window lie side by side, and in which order. A former puts them side by side in front
of a tuple memory; to the sequencer behind it the window has fewer taps, each a tuple of several taps.

    kernel 3 x 2     tap by tap      lines of taps     two lines at a time    the whole kernel
    0 1              6 tuples of     3 tuples          2 tuples               1 tuple
    2 3              1 tap           0 1, 2 3, 4 5     0 1 2 3, (2 3) 4 5     0 1 2 3 4 5
    4 5

The former takes some rows and columns of the kernel, and the sequencer goes through the places that these can have in
it. A tap that several tuples have counts in the first one of them alone: in the others, in brackets, its weight is 0,
and a maximum is the same with it. Weights, lanes and counts of taps follow from a split window.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.golden.window import Pair, Window

from .lanes import UNUSED


@dataclass(frozen=True)
class SplitWindow:
    """A window of which a former reads a part, and a sequencer what the former makes."""

    window: Window
    """The window. Along an axis that the former takes, its taps are neighbours."""
    rows: int = 0
    columns: int = 0
    """rows, columns: how many of the kernel's the former takes, 0: it leaves the axis to the sequencer. By default
    there is no former."""

    @cached_property
    def formed(self) -> Window:
        """The window that the former reads of the map: its taps lie side by side."""
        return self._parts[0]

    @cached_property
    def rest(self) -> Window:
        """The window that the sequencer reads, of a map with a tuple for each window that is formed."""
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[Window, Window]:
        """The window that the former reads of the map, and the one that the sequencer reads."""
        of_rows, of_columns = (
            _split(_along(self.window, k), taken) for k, taken in enumerate((self.rows, self.columns))
        )
        formed, rest = (_window(self.window, *axes) for axes in zip(of_rows, of_columns))
        return formed, rest

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
            The same values, and 0 for a tap that a tuple before has; no copy where a copy isn't needed.
        """
        before, behind = values.shape[:axis], values.shape[axis + 1 :]
        (rows, columns), (formed_rows, formed_columns) = self.rest.kernel, self.formed.kernel
        of_axes = values.reshape(*before, *self.window.kernel, *behind)
        of_axes = _counted_once(of_axes, axis, rows, formed_rows)
        of_axes = _counted_once(of_axes, axis + 1, columns, formed_columns)
        of_axes = of_axes.reshape(*before, rows, formed_rows, columns, formed_columns, *behind)
        dealt: Array = of_axes.swapaxes(axis + 1, axis + 2).reshape(*before, self.tuples, self.tuple_taps, *behind)
        return dealt


class AxisWindow(NamedTuple):
    """A window along an axis of the map; by default a position, on each position of the map."""

    kernel: int = 1
    stride: int = 1
    before: int = 0
    behind: int = 0
    """before, behind: taps beside the map."""
    dilation: int = 1
    growth: int = 1


def _along(window: Window, k: int) -> AxisWindow:
    """A window along axis k."""
    before, behind = window.padding[k], window.padding[k + 2]
    return AxisWindow(window.kernel[k], window.stride[k], before, behind, window.dilation[k], window.growth[k])


def _window(window: Window, vertical: AxisWindow, horizontal: AxisWindow) -> Window:
    """The window of two axes, on a map that grows as that of ``window`` does."""

    def of_axes(name: str) -> Pair:
        return getattr(vertical, name), getattr(horizontal, name)

    return Window(
        kernel=of_axes("kernel"),
        stride=of_axes("stride"),
        padding=(*of_axes("before"), *of_axes("behind")),
        dilation=of_axes("dilation"),
        growth=of_axes("growth"),
        repeats=window.repeats,
        beside=window.beside,
    )


def _split(axis: AxisWindow, taken: int) -> tuple[AxisWindow, AxisWindow]:
    """The parts of an axis: taps that a former of so many taps reads of the map, and tuples that the sequencer reads.

    Tuples of a part of the kernel lie at each position. Beside the map lie those that have a tap on the map which no
    tuple before has, and these alone.
    """
    if not taken:
        return AxisWindow(), axis
    places = axis.kernel - taken + 1
    if places == 1:
        return axis, AxisWindow()
    before, behind = min(axis.before, taken - 1), max(0, axis.behind + 1 - places)
    formed = AxisWindow(taken, 1, before, behind)
    return formed, AxisWindow(places, axis.stride, axis.before - before, axis.behind - behind)


def _counted_once(values: Array, axis: int, tuples: int, taps: int) -> Array:
    """The values along an axis, tuple after tuple: 0 where a tuple before has the tap; the same array where tuples have
    no tap in common."""
    if tuples == 1 or taps == 1:
        return values
    first = [(number == 0 or tap == taps - 1) for number in range(tuples) for tap in range(taps)]
    places = np.where(first, np.add.outer(np.arange(tuples), np.arange(taps)).ravel(), UNUSED)
    counted: Array = np.append(values, np.zeros_like(values.take([0], axis)), axis).take(places, axis)  # UNUSED: 0
    return counted


class BeatTaps(NamedTuple):
    """The taps that a unit takes in a beat, side by side: neighbours in lines of the kernel, and in lines one below the
    other.

        lane_lines 1    lanes of a tap: c0 c1 c2 c3                 of a line
        lane_lines 2    lanes of a tap: c0 c1 c2 c3                 of a line, or
                                        c0 c1 of a line, c0 c1 of the line above it
    """

    rows: int
    """Lines that have lanes of their own, >= 1."""
    columns: int
    """Taps of a line, >= 1."""
    lane_lines: int = 1
    """Lines that can share the lanes of one, >= 1: each has 1 / lane_lines of them then."""

    @property
    def taps(self) -> int:
        """Taps that have lanes of their own."""
        return self.rows * self.columns

    @property
    def most_rows(self) -> int:
        """The most lines of which taps lie side by side."""
        return self.rows * self.lane_lines

    @property
    def forms(self) -> bool:
        """Whether the taps of some window lie side by side."""
        return self.most_rows * self.columns > 1

    def split(self, window: Window, *, shares_lanes: bool = False) -> SplitWindow:
        """How a line former splits a window for the unit: the former takes as many columns and rows as it can, and
        leaves an axis to the sequencer where that is one, or where the axis's taps are no neighbours. Of rows it takes
        no more than end on the map, since no line follows a map's last one. ``shares_lanes``: lines may share lanes.
        """
        return _split_for(window, self.most_rows if shares_lanes else self.rows, self.columns)

    def shares_lanes(self, formed: Window) -> bool:
        """Whether lines share lanes in a formed window."""
        return formed.kernel[0] > self.rows

    def keeps_lines(self, formed: Window) -> bool:
        """Whether the line former keeps lines of a map of which it forms such a window."""
        return self.rows > 1 or self.shares_lanes(formed)

    def places(self, formed: Window) -> Ints:
        """(taps, lines that share lanes): the tap of a tuple in each place of a word for a beat, the lowest first.

        Places are the unit's lines, one after another, and the taps of a formed window those that end highest in the
        last of them; the others are UNUSED. Of lines that share lanes the last one has the lowest.
        """
        rows, columns = formed.kernel
        shared = self.lane_lines if self.shares_lanes(formed) else 1
        places = np.full((self.rows * shared, self.columns), UNUSED)
        places[-rows:, -columns:] = np.arange(formed.taps).reshape(rows, columns)
        by_lines = places.reshape(self.rows, shared, self.columns)[:, ::-1]
        return by_lines.swapaxes(1, 2).reshape(self.taps, shared)


@lru_cache(maxsize=4096)
def _split_for(window: Window, rows: int, columns: int) -> SplitWindow:
    """How a line former splits a window that can take so many rows and columns; kept, as a search asks again and
    again."""
    most = min(rows, window.kernel[0] - window.padding[2]), min(columns, window.kernel[1])
    apart = zip(window.dilation, window.growth)
    free = window.beside == "nothing"
    taken = [count if count > 1 and each == (1, 1) and free else 0 for count, each in zip(most, apart)]
    return SplitWindow(window, *taken)
