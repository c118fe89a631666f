"""The skip store and the fork in front of it (hls_gen/rtl/shell/outlets.py): maps that wait for an addition, or for
their second reader.

    gearbox --> fork --+--> map store
                       `--> skip store --+--> writer of the tuple memory (inlet "skip")
                                         `--> addition

Words leave the store in the order in which they came, each by the side that its map is for. Every side has stamps of
its own, since stamps have one reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle as again

from bitloom.hls_gen.design import timing

from .kahn import Stamps, Wait
from .streams import Sink, Source, level, room_from


@dataclass(eq=False)
class SkipSide:
    """One of the two readers of a skip store: when its words come, and when it takes them."""

    puts: Stamps = field(default_factory=lambda: Stamps("words in its skip store"))
    """Cycles in which words for it come into the store."""
    takes: Stamps = field(default_factory=lambda: Stamps("room in its skip store"))
    """Cycles in which it takes them; read by the process that fills the store."""
    seen: Stamps = field(default_factory=lambda: Stamps("the words before in its skip store"))
    """The same cycles; read by the other side."""
    numbers: list[int] = field(default_factory=list)
    """Number of each of these words among all words of the store."""


class SkipFifo:
    """A FIFO whose words are for two sides; a sink.

    Parameters
    ----------
    depth
        Words that its memory holds; None: without limit.
    maps
        (words, whether they are for the addition) of each map that comes, in turn.
    inlet, addition
        Its two sides.
    """

    def __init__(self, depth: int | None, maps: Sequence[tuple[int, bool]], inlet: SkipSide, addition: SkipSide):
        self._depth = depth
        self._maps = again(maps)
        self._left = 0
        self._added = False
        self._puts: list[int] = []
        self._of: list[tuple[SkipSide, int]] = []
        """By word: its side, and its number among those of the side."""
        self._outs: list[int] = []
        """Cycles in which words leave the memory, as far as known."""
        self.inlet = inlet
        self.addition = addition
        self.room: Wait = (self.inlet.takes, 0)

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        free = room_from(cycle, self._depth, self._puts, self.out)
        if free is None:
            return None
        if not self._left:
            self._left, self._added = next(self._maps)
        self._left -= 1
        side = self.addition if self._added else self.inlet
        self._of.append((side, len(side.numbers)))
        side.numbers.append(len(self._puts))
        side.puts.append(free)
        self._puts.append(free)
        return free

    def out(self, k: int) -> int | None:
        """Cycle in which word ``k``, which is in, leaves the memory for the first of the two registers behind it. The
        word before goes on from there to the second one then, at the earliest in the cycle in which the word before
        that one is taken."""
        while len(self._outs) <= k:
            n = len(self._outs)
            free = self._outs[-1] + 1 if n else 0
            if n > 1:
                side, number = self._of[n - 2]
                if len(side.takes) <= number:
                    self.room = (side.takes, number)
                    return None
                free = max(free, side.takes[number])
            self._outs.append(max(self._puts[n] + 1, free))
        return self._outs[k]

    def level(self) -> int:
        """Most words that were in its memory at a time."""
        return level(self._puts, [out for k in range(len(self._puts)) if (out := self.out(k)) is not None])

    def before(self, number: int) -> tuple[SkipSide, int]:
        """SkipSide of the word before word ``number`` >= 1, and its number there."""
        return self._of[number - 1]


class SkipSource:
    """A source of the words that one side takes from a skip store.

    Parameters
    ----------
    store
        The store.
    side
        The side of it.
    """

    def __init__(self, store: SkipFifo, side: SkipSide):
        self._store = store
        self._side = side
        self.word: Wait = (side.puts, 0)

    def next(self) -> int | None:
        """See Source."""
        side = self._side
        k = len(side.takes)
        if len(side.puts) <= k:
            self.word = (side.puts, k)
            return None
        number = side.numbers[k]
        if not number:
            return side.puts[k] + timing.SKIP_WORD
        other, before = self._store.before(number)
        if other is not side and len(other.seen) <= before:
            self.word = (other.seen, before)
            return None
        return max(side.puts[k] + timing.SKIP_WORD, other.takes[before] + 1)

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._side.takes.append(cycle)
        self._side.seen.append(cycle)


class JoinedSource:
    """Words of two maps side by side, tuple by tuple; a source.

    Parameters
    ----------
    sources
        Where the words of each come from.
    words
        Words of a tuple that are of each.
    """

    def __init__(self, sources: Sequence[Source], words: Sequence[int]):
        self._order = again([source for source, count in zip(sources, words) for _ in range(count)])
        self._now = next(self._order)

    @property
    def word(self) -> Wait:
        """See Source."""
        return self._now.word

    def next(self) -> int | None:
        """See Source."""
        return self._now.next()

    def taken(self, cycle: int) -> None:
        """See Source."""
        self._now.taken(cycle)
        self._now = next(self._order)


class Fork:
    """A sink that puts each word into two others, each as soon as that one can take it.

    Parameters
    ----------
    sinks
        The two.
    """

    def __init__(self, *sinks: Sink):
        self._sinks = sinks
        self._done: list[int | None] = [None] * len(sinks)

    @property
    def room(self) -> Wait:
        """See Sink."""
        return next(sink.room for sink, done in zip(self._sinks, self._done) if done is None)

    def put(self, cycle: int) -> int | None:
        """See Sink."""
        self._done = [sink.put(cycle) if done is None else done for sink, done in zip(self._sinks, self._done)]
        cycles = [done for done in self._done if done is not None]
        if len(cycles) < len(self._sinks):
            return None
        self._done = [None] * len(self._sinks)
        return max(cycles)
