"""Stores between two processes: who puts a word in, who takes it out, and when.

    put(cycle) --> store --> next() .. taken(cycle)

A *sink* has ``put``: the first cycle, not before the given one, in which the next word is taken in. A *source* has
``next``: the first cycle in which the next word can be taken out, and ``taken``, which says when it was. Both answer
None while that depends on stamps that do not exist yet, and then ``room`` or ``word`` is what they wait for.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle as again
from typing import Protocol

import numpy as np

from bitloom.hls_gen.design import timing

from .kahn import Stamps, Wait


class Sink(Protocol):
    """Takes words in."""

    @property
    def room(self) -> Wait:
        """Stamp for which ``put`` waits."""

    def put(self, cycle: int) -> int | None:
        """Cycle in which the next word goes in, >= ``cycle``; None if not known yet."""


class Flushed(Sink, Protocol):
    """A sink that may have words to give on when no other comes."""

    def flush(self) -> bool:
        """Give on all that can be; False where a word waits for ``room``."""


class Source(Protocol):
    """Gives words out."""

    @property
    def word(self) -> Wait:
        """Stamp for which ``next`` waits."""

    def next(self) -> int | None:
        """First cycle in which the next word can be taken; None if not known yet. Asked until known, then no more."""

    def taken(self, cycle: int) -> None:
        """The word that ``next`` told of was taken."""


class TupleMemory:
    """Tuple memory: words are written, and the reader gives words back.

    Parameters
    ----------
    capacity
        Words that it holds.
    written
        Gets the cycle in which each word is written.
    given
        Cycles in which the reader gave words back.
    """

    def __init__(self, capacity: int, written: Stamps, given: Stamps):
        self._capacity = capacity
        self._written = written
        self._given = given
        self.room: Wait = (given, 0)

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        over = len(self._written) - self._capacity
        if over >= 0:
            if len(self._given) <= over:
                self.room = (self._given, over)
                return None
            cycle = max(cycle, self._given[over] + timing.GIVE_BACK)
        self._written.append(cycle)
        return cycle

    def flush(self) -> bool:
        """See Flushed."""
        return True

    def level(self) -> int:
        """Most words that were in it at a time."""
        return level(self._written, self._given)


def room_from(cycle: int, depth: int | None, puts: Sequence[int], out: Callable[[int], int | None]) -> int | None:
    """First cycle from ``cycle`` on in which a FIFO takes another word; None if that is not known yet.

    Parameters
    ----------
    cycle
        The cycle.
    depth
        Words that the memory holds; None: without limit.
    puts
        Cycles in which words came in.
    out
        Gives the cycle in which a word, by its number, leaves the memory; None if not known yet.
    """
    if depth is None:
        return cycle
    if depth > timing.LUT_RAM_WORDS:
        while True:  # ready is a register: it knows of what happened two cycles ago, and keeps a word free
            over = len(puts) - (bool(puts) and puts[-1] == cycle - 1) - (depth - 1)
            if over < 0:
                return cycle
            left = out(over)
            if left is None:
                return None
            if left <= cycle - 2:
                return cycle
            cycle = left + 2
    if len(puts) < depth:
        return cycle
    left = out(len(puts) - depth)
    return None if left is None else max(cycle, left + 1)


class Fifo:
    """A FIFO: a memory and an output register (hls_gen/rtl/primitives/fifo.py).

    Parameters
    ----------
    depth
        Words that the memory holds; None: without limit.
    puts, takes
        Get the cycles in which words come in and are taken out.
    """

    def __init__(self, depth: int | None, puts: Stamps, takes: Stamps):
        self._depth = depth
        self._puts = puts
        self._takes = takes
        self.room: Wait = (takes, 0)
        self.word: Wait = (puts, 0)

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        room = room_from(cycle, self._depth, self._puts, self.out)
        if room is not None:
            self._puts.append(room)
        return room

    def out(self, k: int) -> int | None:
        """Cycle in which word ``k``, which is in, goes to the output register."""
        if not k:
            return self._puts[0] + 1
        if len(self._takes) < k:
            self.room = (self._takes, k - 1)
            return None
        return max(self._puts[k] + 1, self._takes[k - 1])

    def next(self) -> int | None:
        """See Source."""
        k = len(self._takes)
        if len(self._puts) <= k:
            self.word = (self._puts, k)
            return None
        return max(self._puts[k] + 2, self._takes[k - 1] + 1 if k else 0)

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._takes.append(cycle)

    def level(self) -> int:
        """Most words that were in its memory at a time."""
        return level(self._puts, [out for k in range(len(self._puts)) if (out := self.out(k)) is not None])


class PingPong:
    """Two buffers, filled and emptied in turn (hls_gen/rtl/ports/ping_pong.py).

    Parameters
    ----------
    maps
        (words, words of a chunk) of the maps that come, in turn.
    full
        Gets the cycle in which each chunk is whole.
    cleared
        Gets the cycle in which each chunk has been read.
    """

    def __init__(self, maps: Sequence[tuple[int, int]], full: Stamps, cleared: Stamps):
        self._full = full
        self._cleared = cleared
        self._writing, self._reading = _chunks(maps), _chunks(maps)
        self._to_write = self._to_read = 0
        self._chunk = -1
        self._read = self._taken = -1
        self.room: Wait = (cleared, 0)
        self.word: Wait = (full, 0)
        self._largest = 0

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        if not self._to_write:
            before = len(self._full) - 2  # the chunk that was in this buffer
            if before >= 0:
                if len(self._cleared) <= before:
                    self.room = (self._cleared, before)
                    return None
                cycle = max(cycle, self._cleared[before] + 1)
            self._to_write = next(self._writing)
            self._largest = max(self._largest, self._to_write)
        self._to_write -= 1
        if not self._to_write:
            self._full.append(cycle)
        return cycle

    def flush(self) -> bool:
        """See Flushed."""
        return True

    def next(self) -> int | None:
        """See Source."""
        if not self._to_read:
            if len(self._full) <= self._chunk + 1:
                self.word = (self._full, self._chunk + 1)
                return None
            self._chunk += 1
            self._to_read = next(self._reading)
        self._read = max(self._full[self._chunk] + 1, self._read + 1, self._taken)
        self._to_read -= 1
        if not self._to_read:
            self._cleared.append(self._read)
        return self._read + 1

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._taken = cycle

    def level(self) -> int:
        """Words of the largest chunk so far."""
        return self._largest


def level(ins: Sequence[int], outs: Sequence[int]) -> int:
    """Most words in a store that came in and left in these cycles."""
    if not ins:
        return 0
    left = np.searchsorted(np.array(outs, np.int64), np.array(ins, np.int64), side="left")
    return int((np.arange(1, len(ins) + 1) - left).max())


def _chunks(maps: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Words of each chunk, round and round."""
    for words, chunk in again(maps):
        yield from [chunk] * (words // chunk)
        if words % chunk:
            yield words % chunk


class Router:
    """A sink that hands words on to one sink after another, round and round.

    Parameters
    ----------
    maps
        (words, the sink that they go to) in their order.
    """

    def __init__(self, maps: Sequence[tuple[int, Sink]]):
        self._maps = again(maps)
        self._left, self._sink = next(self._maps)

    @property
    def room(self) -> Wait:
        """See Sink."""
        return self._sink.room

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        if not self._left:
            self._left, self._sink = next(self._maps)
        given = self._sink.put(cycle)
        if given is not None:
            self._left -= 1
        return given
