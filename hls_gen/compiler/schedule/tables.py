"""Tables of one stage: what its sequencer does at every valid tap of a frame (spec B3, B4, B6)."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.encoding import Ints

from .stage import Stage

Flags = NDArray[np.bool_]
TapArray = TypeVar("TapArray", Ints, Flags)


def frozen(array: TapArray) -> TapArray:
    """``array``, read-only from now on."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class StageTables:
    """All valid taps of a frame in visiting order, and what follows from them. Arrays are read-only.

    Their meaning is the same for all map orders: wait until ``sum(advance[: t + 1])`` tuples of the frame have been
    stored, then tap t reads tuple ``index[t]``. ``sum(advance)`` is the number of tuples, so that nothing is left over
    at the end of a frame. Every tuple of ``input_order`` is read by some tap, unless the map has another reader, too:
    tuples that only the other reader needs arrive and are not read. Those behind the last tuple that is read arrive
    just before the last tap.
    """

    stage: Stage
    map_order: str
    """"pull", "raster" or "columns"."""
    input_order: Ints
    """(tuples,) int64: row-major positions of the map that is read, in the order wanted."""
    output_order: Ints
    """(windows,) int64: row-major positions of the map that is made, in the order made."""
    window: Ints
    """(valid taps,) int64: number of each tap's window, 0, 1, ...; the output position is ``output_order[window]``."""
    tap: Ints
    """(valid taps,) int64: place of each tap in the kernel, 0 .. places - 1, row-major."""
    index: Ints
    """(valid taps,) int64: which tuple each tap reads: an index of ``input_order``."""

    @cached_property
    def valid_taps(self) -> Ints:
        """(windows,) int64: valid taps of each window."""
        return frozen(np.bincount(self.window))

    @cached_property
    def advance(self) -> Ints:
        """(valid taps,) int64: tuples that must have arrived beyond those required so far.

        In pull order that is 0 or 1. In raster order it is also more, where the window's next row begins before the
        row above it has been needed as a whole; in either order where tuples arrive for another reader of the map.
        """
        advance = np.diff(np.maximum.accumulate(self.index), prepend=-1)
        advance[-1] += len(self.input_order) - 1 - self.index.max()
        return frozen(advance)

    @cached_property
    def unread(self) -> Ints:
        """(valid taps,) int64: tuples that must have arrived before the tap's own, beyond those required so far."""
        return frozen(self.advance - self.new)

    @cached_property
    def new(self) -> Flags:
        """(valid taps,) bool, the new/old flag (B3): the tap reads the newest tuple, which nobody needed before.

        In pull order that is the first visit of the position. In raster order some first visits are old reads, since
        the tuple has arrived together with one that was needed earlier. Nor is the last tap a new read where tuples
        come by behind the one that it reads.
        """
        return frozen((self.advance > 0) & (self.index == self.newest))

    @cached_property
    def newest(self) -> Ints:
        """(valid taps,) int64: index of the newest tuple that a first pass over the window has needed."""
        return frozen(np.cumsum(self.advance) - 1)

    @cached_property
    def last(self) -> Flags:
        """(valid taps,) bool: the tap is the last valid one of its window."""
        return frozen(np.append(self.window[1:] != self.window[:-1], True))

    @cached_property
    def jump_mark(self) -> Flags:
        """(valid taps,) bool: the tap is right before a run of invalid taps, which may cross a window boundary (B4), or
        before the first place of the kernel where the sums of several windows are added up.

        A run at the very end of a frame has no mark: no tap follows; a frame begins at ``leading_jump`` or 0.
        Hardware that passes a window several times goes back to the window's own first tap (a register), and
        obeys a mark on a window's last tap in the last pass only. A pool needs no marks: its taps have no weights.
        """
        place = self.window * self.stage.places + self.tap
        return frozen(np.append(np.diff(place) != 1, False))

    @property
    def jump_target(self) -> Ints:
        """(marks,) int64: place in the kernel of the valid tap after each marked run, in order (B4)."""
        return frozen(self.tap[1:][self.jump_mark[:-1]])

    @property
    def leading_jump(self) -> int | None:
        """Target of a run before the first valid tap of a frame (mark -1 of B4); None if there is none."""
        return int(self.tap[0]) or None

    def capacity(self, reread: bool) -> int:
        """Smallest legal capacity of the tuple memory (B6): the largest distance from newest stored to read, plus one.

        Parameters
        ----------
        reread : bool
            Whether a window is passed several times (more than one group of kernels where the dataflow is
            output_stationary), so that its taps are read again when its last tuple is in.

        Returns
        -------
        int
            Tuples.

        Notes
        -----
        B7 gives 335 and 190 tuples for the first convolution of B20, without re-reading. 335 is pull order; 190 is pull
        order of that convolution alone (row-major outputs, inputs by first visit). Row-major inputs need 132.
        """
        newest = self.newest[self.last][self.window] if reread else self.newest
        return int((newest - self.index).max()) + 1

    def bits(self, capacity: int) -> int:
        """Bits of the tables for a tuple memory of ``capacity`` tuples; fields are as narrow as their contents (B3,
        B4)."""
        taps = len(self.index)
        olds = int((~self.new).sum())
        bits = 2 * taps  # each tap is new or old, and may end its window early
        bits += olds * (capacity - 1).bit_length()  # the tuple that an old tap reads
        bits += (taps - olds) * max(int(self.advance.max()) - 1, 0).bit_length()  # advance - 1 of a new tap
        if self.stage.weighted:
            bits += taps  # each tap has a mark or none
            bits += int(self.jump_mark.sum()) * (self.stage.places - 1).bit_length()  # the place to which a mark leads
        return bits
