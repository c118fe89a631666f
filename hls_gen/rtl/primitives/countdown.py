"""Counters of windows, of kernel groups and of taps, which know ahead of time which one is the last.

    begins --> left, last     else --> left - 1, and whether that is the last

The comparison goes into a register as the count moves. Where the count was compared as it was needed, the longest paths
of the tap source and of the results unit began there: count, comparison, end of the window, end of the layer, row of
the next tap or place of the next threshold.
"""

from .block import Block, Signal, choose, eq, sub


class Countdown:
    """A count of items that come one after another.

    Attributes
    ----------
    last : Signal
        Register: the item at hand is the last one.
    before_last : Signal
        The item at hand is the one before the last.
    """

    def __init__(self, b: Block, name: str, w: int):
        self._b = b
        self._w = w
        self._left = b.reg(f"{name}_left", w, init=None)  # items that come after the item at hand
        self.last = b.reg(f"{name}_last", init=None)
        self.before_last: Signal = eq(self._left, 1)

    def advance(self, moves: Signal, begins: Signal, first: Signal, again: Signal | None = None) -> Signal:
        """Let the count follow.

        Parameters
        ----------
        moves : Signal
            The item at hand is done, or the count begins. It may come late: it only enables the registers.
        begins : Signal
            Where the count moves, it begins: ``first`` items come after the item that is at hand then.
        first : Signal
            As wide as the count.
        again : Signal, optional
            When the last item is done the count begins again: ``again`` items come after the first one. Without it the
            count means nothing after the last item.

        Returns
        -------
        Signal
            Value of ``last`` after a move of the count.
        """
        b = self._b
        left = self._left
        last = self.last
        onward = sub(left, 1, self._w)
        ends = self.before_last
        if again is not None:
            onward = choose(last, again, onward, self._w)
            ends = choose(last, eq(again, 0), ends, 1)
        onward = choose(begins, first, onward, self._w)
        following = choose(begins, eq(first, 0), ends, 1)
        b.on(moves, (left, onward), (last, following))
        return following
