"""Changes of word width, and the outlets that words leave by (hls_gen/rtl/primitives/gearbox.py,
hls_gen/rtl/shell/npu.py).

    steps or words --> gearbox of their map's outlet --> sink

A gearbox takes a word when its output is free. Outlets of the same width share a gearbox, so that a word for one outlet
waits behind a word for the other.
"""

from collections.abc import Sequence
from itertools import cycle as again

from bitloom.hls_gen.design.gearbox import gear

from .kahn import Wait
from .line_former import LineFormer
from .streams import Sink


class Gearbox:
    """A gearbox: words of ``source`` lanes become words of ``target`` lanes, which go into ``sink``.

    Parameters
    ----------
    source, target
        Lanes of a word that comes and of a word that leaves.
    sink
        Taker of the words that leave.
    """

    def __init__(self, source: int, target: int, sink: Sink):
        self.sink = sink
        self._together, self._pieces = gear(source, target)
        self._place = 0
        self._offers = self._offer = 0
        """Words at the output, and from which cycle on the next is offered."""
        self._free = -1
        """Cycle in which the output was last taken."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker."""
        return () if self.flush() else (self.sink.room,)

    def take(self, cycle: int, last: bool) -> int | None:
        """See Taker."""
        if self._offers and not self._empty():
            return None
        cycle = max(cycle, self._free)
        self._place += 1
        if self._place == self._together or last:
            self._place = 0
            self._offer = cycle + 1
            self._offers = self._pieces
            self._empty()
        return cycle

    def flush(self) -> bool:
        """See Taker."""
        return self._empty()

    def _empty(self) -> bool:
        """Give the words at the output to the sink; False if the cycles in which all of them leave aren't known yet."""
        while self._offers:
            cycle = self.sink.put(self._offer)
            if cycle is None:
                return False
            self._free = cycle
            self._offer = cycle + 1
            self._offers -= 1
        return True


class LineGearbox(Gearbox):
    """A gearbox in front of a line former.

    Parameters
    ----------
    source, target, former
        As of `Gearbox`; ``former`` is the sink.
    """

    def __init__(self, source: int, target: int, former: LineFormer):
        super().__init__(source, target, former)
        self._former = former

    def flush(self) -> bool:
        """As of `Gearbox`; what the line former gives by itself leaves, too."""
        return super().flush() and self._former.flush()


def different(maps: Sequence[tuple[int, Gearbox]]) -> list[Gearbox]:
    """Each of the maps' gearboxes once."""
    return list(dict.fromkeys(box for _, box in maps))


class Gears:
    """Gearboxes side by side, one for each width of words that leave.

    Parameters
    ----------
    maps
        (words of a map, its gearbox) in the order in which the maps come, round and round.
    """

    def __init__(self, maps: Sequence[tuple[int, Gearbox]]):
        self._boxes = different(maps)
        self._maps = again(maps)
        self._left = 0
        self._box: Gearbox | None = None

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker. What the gearbox of the map at hand waits for stands first."""
        boxes = sorted(self._boxes, key=lambda box: box is not self._box)
        return tuple(wait for box in boxes for wait in box.room)

    def take(self, cycle: int, last: bool) -> int | None:
        """Take the next word into the gearbox of its map; see Taker."""
        if not self._left:
            self._left, self._box = next(self._maps)
        assert self._box is not None
        taken = self._box.take(cycle, last)
        self._left -= taken is not None
        return taken

    def flush(self) -> bool:
        """Empty all gearboxes; see Taker."""
        done = True
        for box in self._boxes:
            done &= box.flush()
        return done
