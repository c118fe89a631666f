"""The addition behind the activation (hls_gen/rtl/results/addition.py).

    activation -+-> row register --> stages -+-> skid register
                |        ^                   |
                |   skip store --> steps of OL lanes: words collected, or cut
                `-> layers that add nothing -'

In the row register a step of a layer that adds waits until what it adds is there; the stages behind all move at once,
as those of the activation do. Steps of other layers pass the stages by when these are empty.
"""

from collections.abc import Sequence
from itertools import cycle as again

from .kahn import Process, Stamps, Wait
from .results import ResultStages, Taker
from .stores import SkipFifo
from .streams import Source


class CollectedSteps:
    """The collector that makes steps of words of the skip store (hls_gen/rtl/primitives/gearbox.py);
    a source of steps.

    The collector takes words as soon as its output is free, whether or not a step of results waits for them: the words
    leave the skip store, where others may need the room.

    Parameters
    ----------
    words
        Words that come out of the skip store.
    together
        Words of a step, >= 1.
    count
        Steps that are collected.
    offered, freed
        Get the cycles from which on steps are at the output, and in which they are taken.
    """

    def __init__(self, words: Source, together: int, count: int, offered: Stamps, freed: Stamps):
        self._words = words
        self._together = together
        self._count = count
        self.offered = offered
        self.freed = freed

    def process(self) -> Process:
        """The process: collects the steps."""
        free = -1
        for step in range(self._count):
            cycle = free
            for _ in range(self._together):
                while (there := self._words.next()) is None:
                    yield (self._words.word,)
                cycle = max(there, free)
                self._words.taken(cycle)
            self.offered.append(cycle + 1)
            if len(self.freed) <= step:
                yield ((self.freed, step),)
            free = self.freed[step]

    @property
    def word(self) -> Wait:
        """See Source."""
        return self.offered, len(self.freed)

    def next(self) -> int | None:
        """See Source, for steps."""
        step = len(self.freed)
        return self.offered[step] if step < len(self.offered) else None

    def taken(self, cycle: int) -> None:
        """See Source, for steps."""
        self.freed.append(cycle)


class AddedSteps:
    """Words of a collector cut into steps of OL lanes.

    Parameters
    ----------
    source
        The words, or the steps that it made of them.
    pieces
        Steps of a word, >= 1.
    """

    def __init__(self, source: Source, pieces: int):
        self._source = source
        self._pieces = pieces
        self._place = 0
        self._there: int | None = None
        """Cycle from which on the word at hand is there, as far as known."""

    @property
    def word(self) -> Wait:
        """See Source."""
        return self._source.word

    def next(self) -> int | None:
        """See Source, for steps."""
        if self._there is None:
            self._there = self._source.next()
        return self._there

    def taken(self, cycle: int, last: bool) -> None:
        """The step that ``next`` told of was taken; ``last``: its tuple ends with it."""
        self._place += 1
        if last or self._place == self._pieces:
            self._place = 0
            self._there = None
            self._source.taken(cycle)


class AdditionUnit:
    """The stages from the activation to the skid register behind the addition, which steps pass. A taker of steps.

    Parameters
    ----------
    latency
        Cycles from the activation to the skid register behind the addition, >= 1.
    maps
        (steps of a map, whether something is added) in the order in which the maps come, round and round.
    added
        The steps that are added.
    behind
        Taker of the steps that leave.
    """

    def __init__(self, latency: int, maps: Sequence[tuple[int, bool]], added: AddedSteps, behind: Taker):
        self._stages = ResultStages(latency - 1, behind)
        self._behind = behind
        self._maps = again(maps)
        self._left = 0
        self._adds = False
        self._added = added
        self._row: tuple[int, bool] | None = None
        """The step that came into the row register and waits for what is added: its cycle, whether its tuple ends."""
        self._leaving: bool | None = None
        """Of a step in the row register whose cycle of leaving isn't known yet: whether its tuple ends."""
        self._gone = -1
        """Cycle in which the latest step left the row register."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker."""
        if self._row is None:
            return self._stages.room
        return (self._added.word,) if self._stages.drained() else (*self._stages.room, self._added.word)

    def take(self, cycle: int, last: bool) -> int | None:
        """Take the next step into the row register, or past it; see Taker."""
        if (self._row or self._leaving) is not None and not self._empty():
            return None
        if not self._left:
            self._left, self._adds = next(self._maps)
        if not self._adds:
            return self._pass_by(cycle, last)
        self._left -= 1
        cycle = max(cycle, self._gone)
        self._row = cycle, last
        self._empty()
        return cycle

    def _pass_by(self, cycle: int, last: bool) -> int | None:
        """Take the next step past the stages, from the second cycle on after the steps before have left them."""
        given = self._stages.given()
        if given is None:
            return None
        taken = self._behind.take(max(cycle, given + 2), last)
        self._left -= taken is not None
        return taken

    def flush(self) -> bool:
        """See Taker."""
        return self._empty() and self._stages.drained()

    def _empty(self) -> bool:
        """Whether the cycle is known in which the step leaves the row register."""
        if self._row is not None:
            cycle, last = self._row
            there = self._added.next()
            if there is None:
                self._stages.drained()  # what is added may be on its way, behind the steps before
                return False
            self._stages.enter(max(cycle, there - 1), last)
            self._row = None
            self._leaving = last
        if self._leaving is not None:
            gone = self._stages.left()
            if gone is None:
                return False
            self._added.taken(gone, self._leaving)
            self._gone = gone
            self._leaving = None
        return True


class KeptSteps:
    """The fork behind the addition of a binary NPU (hls_gen/rtl/results/signs.py): steps go on and, of maps that are
    kept, to the skip store as well, each side taking a step when it can. A taker of steps.

    Parameters
    ----------
    maps
        (steps of a map, whether it is kept) in the order in which the maps come, round and round.
    store
        The skip store.
    behind
        Taker of the steps that go on.
    """

    def __init__(self, maps: Sequence[tuple[int, bool]], store: SkipFifo, behind: Taker):
        self._maps = again(maps)
        self._left = 0
        self._keeps = False
        self._store = store
        self._behind = behind
        self._stored: int | None = None
        self._given: int | None = None
        """Cycles in which the two sides took the step at hand."""
        self._full = False
        """Whether the store had no room for it, as far as known."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker."""
        store = (self._store.room,) if self._full else ()
        return store if self._given is not None else (*self._behind.room, *store)

    def take(self, cycle: int, last: bool) -> int | None:
        """See Taker."""
        if not self._left:
            self._left, self._keeps = next(self._maps)
        if self._keeps and self._stored is None:
            self._stored = self._store.put(cycle)
            self._full = self._stored is None
        if self._given is None:
            self._given = self._behind.take(cycle, last)
        if self._given is None or (self._keeps and self._stored is None):
            return None
        taken = max(self._given, self._stored or 0)
        self._left -= 1
        self._stored = self._given = None
        return taken

    def flush(self) -> bool:
        """See Taker."""
        return self._behind.flush()
