"""Changes of word width, and the outlets that words leave by (hls_gen/rtl/primitives/gearbox.py,
hls_gen/rtl/shell/npu.py).

    steps or words --> gearbox of their map's outlet --> sink

A gearbox takes a word when its output is free. Outlets of the same width share one, so that a word for one waits behind
one for the other.
"""

from collections.abc import Sequence
from itertools import cycle as again

from bitloom.hls_gen.design.gearbox import gear

from .kahn import Wait
from .streams import Sink


class Gearbox:
    """From words of ``source`` lanes to words of ``target`` lanes in a sink."""

    def __init__(self, source: int, target: int, sink: Sink):
        self.sink = sink
        self._together, self._pieces = gear(source, target)
        self._place = 0
        self._offers = self._offer = 0
        """Words at the output, and from which cycle on the next is offered."""
        self._free = -1
        """Cycle in which the output was last taken."""

    def take(self, cycle: int, last: bool) -> int | None:
        """Cycle, >= ``cycle``, in which it takes the next word; None if not known yet. last : of its tuple."""
        if not self.flush():
            return None
        cycle = max(cycle, self._free)
        self._place += 1
        if last or self._place == self._together:
            self._place, self._offer, self._offers = 0, cycle + 1, self._pieces
            self.flush()
        return cycle

    def flush(self) -> bool:
        """Give what is at the output to the sink; False if it is not known yet when all of it leaves."""
        while self._offers:
            cycle = self.sink.put(self._offer)
            if cycle is None:
                return False
            self._free, self._offer, self._offers = cycle, cycle + 1, self._offers - 1
        return True


class Gears:
    """Gearboxes side by side. maps : (words of a map, its gearbox), round and round."""

    def __init__(self, maps: Sequence[tuple[int, Gearbox]]):
        self._boxes = list(dict.fromkeys(box for _, box in maps))
        self._maps = again(maps)
        self._left = 0
        self._box: Gearbox | None = None

    @property
    def room(self) -> tuple[Wait, ...]:
        """What ``take`` or ``flush`` waits for; that of the gearbox at hand stands first."""
        full = [b for b in self._boxes if not b.flush()]
        return tuple(b.sink.room for b in sorted(full, key=lambda b: b is not self._box))

    def take(self, cycle: int, last: bool) -> int | None:
        """See Gearbox."""
        if not self._left:
            self._left, self._box = next(self._maps)
        assert self._box is not None
        taken = self._box.take(cycle, last)
        if taken is not None:
            self._left -= 1
        return taken

    def flush(self) -> bool:
        """See Gearbox: of all."""
        done = True
        for box in self._boxes:
            done &= box.flush()
        return done
