"""The line former, in front of a tuple memory (hls_gen/rtl/sequencer/line_former.py).

words of positions --a word a cycle--> words of the taps of a line, of those positions that complete a window
"""

from collections.abc import Sequence
from itertools import cycle as again

from bitloom.hls_gen.design.formed_lines import FormedLines

from .kahn import Wait
from .layer import Reading
from .streams import TupleMemory


class LineFormer:
    """A sink: words of the taps of lines go into a tuple memory.

    Parameters
    ----------
    memory
        The tuple memory.
    maps
        Lines that are formed of each map of a frame.
    """

    def __init__(self, memory: TupleMemory, maps: Sequence[FormedLines]):
        self._memory = memory
        self._maps = again(
            [(formed, formed.times, formed.inside().tolist(), formed.hits().tolist()) for formed in maps]
        )
        self._formed, self._times, self._inside, self._hits = next(self._maps)
        self._time = self._step = self._word = 0
        self._free = 0
        """First cycle in which a word can go through."""

    @property
    def room(self) -> Wait:
        """See Sink."""
        return self._memory.room

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        if not self.flush():
            return None
        through = self._go(cycle)
        self.flush()
        return through

    def flush(self) -> bool:
        """Go through positions beside the map, which need no word; False if it is not known yet when."""
        while not self._inside[self._step]:
            if self._go(self._free) is None:
                return False
        return True

    def _go(self, cycle: int) -> int | None:
        """The next word goes through; when, or None if that is not known yet."""
        through: int | None = max(cycle, self._free)
        if self._hits[self._step]:
            through = self._memory.put(max(cycle, self._free))
        if through is None:
            return None
        self._free = through + 1
        self._word += 1
        if self._word == self._formed.words:
            self._word = 0
            self._step += 1
        if self._step == len(self._hits):
            self._step = 0
            self._time += 1
        if self._time == self._times:
            self._time = 0
            self._formed, self._times, self._inside, self._hits = next(self._maps)
        return through


def formed_lines(readings: Sequence[Reading]) -> list[FormedLines]:
    """Lines that a line former makes of the maps of a frame, a reading after the other."""
    return [reading.lines or FormedLines.straight(reading.tuples * reading.words) for reading in readings]
