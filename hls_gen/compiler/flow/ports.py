"""The host's streams: packets of frames come in, results leave (hls_gen/rtl/loader, hls_gen/rtl/shell/top.py).

Cycle 0 is the first in which the NPUs run: that after the header of the first frame was accepted. The host always has
the next word ready and always takes a result.
"""

from collections.abc import Sequence

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.headers import HEADER_BITS

from .kahn import Stamps, Wait


class FrameSource:
    """Source: the words of frame after frame, as the loader hands them to NPU 0.

    Parameters
    ----------
    words
        Words of a frame.
    word_bits, stream_bits
        Width of such a word, and of a stream word.
    binariser
        Whether a word takes a cycle more, through the binariser's register.
    done
        Cycles in which frames have left.
    admitted
        A stamp for each frame that may come; None where any number may.
    entered, released
        Stamps of the loader that brings weights between frames; None where all weights stay on the device.
    """

    def __init__(
        self,
        words: int,
        word_bits: int,
        stream_bits: int,
        binariser: bool,
        done: Stamps,
        admitted: Stamps | None = None,
        entered: Stamps | None = None,
        released: Stamps | None = None,
    ):
        self._words = words
        self._done = done
        self._admitted = admitted
        self._entered = entered
        self._released = released
        self._pieces, self._beats = gear(word_bits, stream_bits)  # words of a stream word, stream words of a word
        self._header = HEADER_BITS // stream_bits
        self._binariser = binariser
        self._number = 0
        """Of the word in its frame."""
        self._offered = 0
        """Cycle from which on the word at hand stands at the gearbox's output."""
        self._beat = -1
        """Cycle of the latest stream word."""
        self._left = -1
        """Cycle in which the latest word left the gearbox."""
        self._taken = -1
        self.accepted: list[int] = []
        """Cycles in which headers were accepted."""
        self.word: Wait = (done, 0)

    def next(self) -> int | None:
        """See Source."""
        if not self._number and not self._accept():
            return None
        if self._number % self._pieces:
            self._offered = self._left + 1
        else:  # the gearbox is free in the cycle in which its last word leaves
            self._beat = max(self._beat + 1, self._left) + self._beats - 1
            self._offered = self._beat + 1
            if self._entered is not None and self._number + self._pieces >= self._words:
                self._entered.append(self._beat)
        self._number = (self._number + 1) % self._words
        if not self._binariser:
            return self._offered
        self._left = max(self._offered, self._taken)  # into the binariser's register
        return self._left + 1

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._taken = cycle
        if not self._binariser:
            self._left = cycle

    def _accept(self) -> bool:
        """Accept the next frame's header, unless as many frames as there may be are still in flight."""
        frame = len(self.accepted)
        if self._admitted is not None and len(self._admitted) <= frame:
            self.word = (self._admitted, frame)
            return False
        if self._released is not None:
            if len(self._released) <= frame:
                self.word = (self._released, frame)
                return False
            self._beat = self._released[frame]
        cycle = self._beat + self._header + timing.JUDGING
        if not frame:
            cycle = -1
        first = frame - timing.FRAMES_IN_FLIGHT - 1
        if first >= 0:
            if len(self._done) <= first:
                self.word = (self._done, first)
                return False
            cycle = max(cycle, self._done[first] + timing.FLAG_PLACE)
        self.accepted.append(cycle)
        self._beat = cycle
        return True


class RawResults:
    """Sink: the accumulators of raw layers, one 32-bit word each.

    Parameters
    ----------
    words
        Accumulators of a frame.
    done
        Gets the cycle in which each frame has left.
    """

    def __init__(self, words: int, done: Stamps):
        self._words = words
        self._done = done
        self._number = 0
        self.room: Wait = (done, 0)  # never waited for

    def put(self, cycle: int) -> int:
        """See Sink."""
        self._number += 1
        if self._number == self._words:
            self._number = 0
            self._done.append(cycle + 2)
        return cycle


class MapResults:
    """Sink: the words of the maps that leave, which become stream words.

    Parameters
    ----------
    maps
        Words of each map that leaves for a frame, in the order in which they leave.
    word_bits, stream_bits
        Width of such a word, and of a stream word.
    done
        Gets the cycle in which each frame has left.
    """

    def __init__(self, maps: Sequence[int], word_bits: int, stream_bits: int, done: Stamps):
        self._maps = maps
        self._done = done
        self._together, self._pieces = gear(word_bits, stream_bits)
        self._number = self._map = 0
        """Of the word in its map, and of the map in its frame."""
        self._outs = [-1] * timing.MAP_HELD
        """Cycles in which the latest words left the memory of the FIFO."""
        self._taken = self._free = -1
        """Cycle in which the gearbox took the latest word, and from which on it takes the next."""
        self.room: Wait = (done, 0)  # never waited for

    def put(self, cycle: int) -> int:
        """See Sink."""
        cycle = max(cycle, self._outs.pop(0) + 1)
        out = max(cycle + 1, self._taken)
        self._outs.append(out)
        self._taken = max(out + 1, self._free)
        self._number += 1
        ends = self._number == self._maps[self._map]
        if self._number % self._together == 0 or ends:
            self._free = self._taken + self._pieces
        if ends:
            self._number = 0
            self._map = (self._map + 1) % len(self._maps)
            if not self._map:
                self._done.append(self._free + 1)
        return cycle
