"""Raster order by counters: the taps of a stage from a few numbers instead of tables (spec B7).

    for each window, row-major: for each valid tap, row-major: which tuple, and how many tuples it claims

Row-major reading is affine: in each direction a window moves on by a fixed step, and is cut where it sticks out of
the map. Positions that no window reads are not sent, so steps are counted in positions kept; where these are not
spread evenly (a pool drops every third row, say), the stage needs its tables.

The hardware that counts is hls_gen/rtl/sequencer/raster.py.
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS

from .tables import StageTables


@dataclass(frozen=True, kw_only=True)
class RasterAxis:
    """One direction of a stage, rows or columns."""

    size: int
    """Positions kept."""
    kernel: int
    """Places of the kernel."""
    step: int
    """Positions kept from one window to the next, 1 to kernel: a larger stride leaves positions out, and these are not
    kept."""
    lead: int
    """Places of the first window that lie before the map."""
    windows: int
    """Number of windows."""

    @property
    def room(self) -> int:
        """Place at which the map's last position lies, counted from the first window's first place."""
        return self.size - 1 + self.lead

    @property
    def room_end(self) -> int:
        """Place at which the map's last position lies, counted from the last window's first place."""
        return self.room - (self.windows - 1) * self.step

    @property
    def fresh(self) -> int:
        """First place of a window that the window before it did not reach."""
        return self.kernel - self.step

    @property
    def cross(self) -> int:
        """Positions from the first valid one of the last window with a lead to that of the window after it."""
        return self.step - 1 - (self.lead - 1) % self.step if self.lead else self.step

    @property
    def first_taps(self) -> int:
        """Number of valid places of the first window."""
        return min(self.kernel - 1, self.room) + 1 - self.lead

    @property
    def fits(self) -> bool:
        """Whether hardware's counters are wide enough."""
        return self.kernel <= 1 << PLACE_BITS and self.step < 1 << PLACE_BITS and self.room < 1 << SIDE_BITS

    @classmethod
    def of(cls, kernel: int, stride: int, lead: int, outputs: Ints, kept: Ints) -> "RasterAxis | None":
        """The direction of given windows; None if positions are kept unevenly.

        Parameters
        ----------
        kernel, stride : int
            Of the stage in this direction.
        lead : int
            Padding before the map.
        outputs : (windows,) int64
            Rows or columns of the map that is made.
        kept : (size,) int64
            Rows or columns of the map that is read, of which tuples are sent.
        """
        origin = outputs * stride - lead
        leads = np.maximum(-origin, 0)
        starts = np.searchsorted(kept, np.maximum(origin, 0)) - leads  # in positions kept
        steps = np.unique(np.diff(starts))
        if len(steps) > 1:
            return None
        step = int(steps[0]) if len(steps) else kernel
        return cls(size=len(kept), kernel=kernel, step=step, lead=int(leads[0]), windows=len(outputs))


@dataclass(frozen=True, kw_only=True)
class Raster:
    """All that hardware must know of a stage whose taps it counts."""

    y: RasterAxis
    x: RasterAxis
    """y, x: rows and columns."""

    @property
    def gap(self) -> int:
        """Tuples that arrive unread before the first tap of each further new row of a row's first window; 0 where
        windows have one row of valid taps."""
        rows = min(self.y.kernel, self.y.size)
        return self.x.size - self.x.first_taps if rows > 1 else 0

    @property
    def burst(self) -> int:
        """Tuples that the first window of a row of windows claims: whole rows of the map, and a part of one."""
        return (self.y.step - 1) * self.x.size + self.x.first_taps if self.y.windows > 1 else 0

    @classmethod
    def of(cls, tables: StageTables) -> "Raster | None":
        """The counters that run through the same taps as ``tables``; None if no counters do."""
        stage = tables.stage
        window = stage.window.alone
        outputs = _grid(tables.output_order, stage.output_size[1])
        kept = _grid(tables.input_order, stage.width)
        if window is None or not window.plain:
            return None
        if tables.map_order != "raster" or outputs is None or kept is None:
            return None
        if len(np.unique(tables.index)) < len(tables.input_order):  # others come by, for another reader
            return None
        y, x = (
            RasterAxis.of(window.kernel[k], window.stride[k], window.padding[k], outputs[k], kept[k]) for k in range(2)
        )
        return cls(y=y, x=x) if y and x and y.fits and x.fits else None


def _grid(order: Ints, width: int) -> tuple[Ints, Ints] | None:
    """(rows, columns) of positions of a map ``width`` wide, if these are all of them, row-major."""
    rows = np.unique(order // width)
    columns = np.unique(order % width)
    return (rows, columns) if np.array_equal(order, np.add.outer(rows * width, columns).ravel()) else None
