"""Registers in streams: skid registers (hls_gen/rtl/primitives/skid.py) in front of a taker of steps, and behind a
source of words; and one in which every word waits (hls_gen/rtl/primitives/gearbox.py).

    steps --> Skid --> taker        source --> SkidSource --> writer        writer --> StreamRegister --> line former

A word that a skid register's taker doesn't take at once waits aside; the next one comes in a cycle after that has left.
"""

from .kahn import Wait
from .results import Taker
from .streams import Flushed, Source


class Skid:
    """A taker of steps in front of another one.

    Parameters
    ----------
    behind
        Taker of the steps that leave.
    """

    def __init__(self, behind: Taker):
        self._behind = behind
        self._waiting: tuple[int, bool] | None = None
        """The step that came in and whose cycle of leaving isn't known yet: the cycle in which it came, whether its
        tuple ends."""
        self._free = -1
        """First cycle in which another step comes in, as far as known."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker."""
        return self._behind.room

    def take(self, cycle: int, last: bool) -> int | None:
        """See Taker."""
        if self._waiting and not self._leave():
            return None
        cycle = max(cycle, self._free)
        self._waiting = cycle, last
        self._leave()
        return cycle

    def flush(self) -> bool:
        """See Taker."""
        return self._leave() and self._behind.flush()

    def _leave(self) -> bool:
        """Whether it is known when the step that came in leaves."""
        if self._waiting:
            taken = self._behind.take(*self._waiting)
            if taken is None:
                return False
            self._free = taken + 1
            self._waiting = None
        return True


class SkidSource:
    """A source of words behind another one.

    Parameters
    ----------
    source
        Where words come from.
    """

    def __init__(self, source: Source):
        self._source = source
        self._there: int | None = None
        """Cycle in which the word at hand came in, as far as known."""
        self._left = -1
        """Cycle in which the word before it left."""

    @property
    def word(self) -> Wait:
        """See Source."""
        return self._source.word

    def next(self) -> int | None:
        """See Source."""
        if self._there is None:
            offered = self._source.next()
            if offered is None:
                return None
            self._there = max(offered, self._left + 1)
            self._source.taken(self._there)
        return self._there

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._left = cycle
        self._there = None


class StreamRegister:
    """A sink in which each word waits a cycle, and then until the sink behind takes it. The next word comes in at the
    earliest in the cycle in which the one before leaves.

    Parameters
    ----------
    behind
        The sink behind.
    """

    def __init__(self, behind: Flushed):
        self._behind = behind
        self._there: int | None = None
        """Cycle from which on the word in the register may leave, as long as it isn't known when it does."""
        self._left = 0
        """Cycle in which the word before it left."""

    @property
    def room(self) -> Wait:
        """See Sink."""
        return self._behind.room

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        if not self._leave():
            return None
        came = max(cycle, self._left)
        self._there = came + 1
        self._leave()
        return came

    def flush(self) -> bool:
        """See Flushed."""
        return self._leave() and self._behind.flush()

    def _leave(self) -> bool:
        """Whether it is known when the word that came in leaves."""
        if self._there is not None:
            left = self._behind.put(self._there)
            if left is None:
                return False
            self._left = left
            self._there = None
        return True
