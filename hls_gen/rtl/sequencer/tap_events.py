"""Events of the tap at hand, as all parts of the tap source see them, and pointers that follow the events."""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, width


@dataclass(frozen=True)
class TapEvents:
    """Events of the present cycle, one bit each.

    Whether a tap is taken is known last in a cycle. So ``taken``, and what depends on it, only enables registers; which
    value they take is chosen by ``change``, ``last``, ``rewind`` and ``window_end``.
    """

    begin: Signal
    """A layer begins: its row is taken into registers, and its first tap is at hand in the next cycle."""
    change: Signal
    """A layer begins with the next move; this doesn't depend on ``taken``, which is known last."""
    taken: Signal
    """The issuer takes the tap at hand. With a layer's last tap ``begin`` comes in the same cycle, and wins."""
    move: Signal
    """The issuer is ready: ``taken`` if there is a tap, ``begin`` before the first one. Another tap is at hand in the
    next cycle."""
    passes: Signal
    """``begin``, or the tap taken is the last one of its pass: another pass is at hand in the next cycle."""
    windows: Signal
    """``begin``, or the tap taken is the last one of its window: another window is at hand in the next cycle."""
    last: Signal
    """The tap at hand is the last one of a pass over its window. This and the following hold before ``taken`` too."""
    first: Signal | None
    """Register: the tap at hand is the first one of its pass. None in the pool's sequencer."""
    rewind: Signal | None
    """The tap at hand is the last one of a pass, and the same window comes again for the next kernel group. None in the
    pool's sequencer, which passes each window once."""
    window_end: Signal
    """The tap at hand is the last one of the last pass over its window."""


class Pointer:
    """A register that follows the taps through the tuple memory, from layer to layer. At the end of each pass over a
    window but the last it goes back to the window's first tap.

    Parameters
    ----------
    have : Signal
        There is a tap; before the first one the pointer is 0.

    Attributes
    ----------
    value : Signal
        Where the tap at hand is.
    """

    def __init__(self, b: Block, name: str, w: int, have: Signal):
        self._b = b
        self._name = name
        self._have = have
        self.value = b.reg(name, w)

    def advance(self, events: TapEvents, stepped: Signal) -> None:
        """Let the pointer follow the taps.

        Parameters
        ----------
        events : TapEvents
            Events of the tap at hand.
        stepped : Signal
            The pointer's value for the window's next tap.
        """
        b = self._b
        after = stepped
        w = width(self.value)
        if events.rewind is not None:
            saved = b.reg(f"{self._name}_saved", w)  # where the window's first tap was
            after = b.wire(f"{self._name}_next", w, choose(events.rewind, saved, stepped, w))
            b.on(events.move & events.window_end, (saved, after))
            b.on(~self._have, (saved, 0))
        b.on(events.move, (self.value, after))
        b.on(~self._have, (self.value, 0))
