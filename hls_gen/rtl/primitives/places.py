"""Counters of the items of a packet, which know ahead of time which one is the last.

    begins --> 1     else --> 1 more, and whether that is the last

The number of items comes from outside, so that the count goes up to it; the comparison goes into a register as the
count moves (as in countdown.py, whose counts begin with a number less 1).
"""

from .block import Block, Signal, add, eq, width


class Places:
    """The place of the item at hand, from 1 on.

    Attributes
    ----------
    last : Signal
        Register: the item at hand is the last one.
    """

    def __init__(self, b: Block, name: str, number: Signal):
        self._b = b
        self._number = number
        self._next = b.reg(f"{name}_next", width(number), init=None)  # place of the item after the one at hand
        self.last = b.reg(f"{name}_last", init=None)

    def advance(self, moves: Signal, begins: Signal) -> None:
        """Let the count follow.

        Parameters
        ----------
        moves : Signal
            The item at hand is done. It may come late: it only enables the registers.
        begins : Signal
            The first item will be at hand, of as many as ``number`` says; until the last one is done it says the same.
            Not in a cycle with ``moves``.
        """
        b = self._b
        w = width(self._number)
        b.on(begins, (self._next, 2 % (1 << w)), (self.last, eq(self._number, 1)))
        b.on(moves, (self._next, add(self._next, 1, w)), (self.last, eq(self._next, self._number)))
