"""What happens to the tap at hand, as all parts of the tap source see it, and pointers that follow it."""

from collections.abc import Callable
from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, width


@dataclass(frozen=True)
class Progress:
    """Events of the present cycle, one bit each.

    Attributes
    ----------
    begin : Signal
        A layer begins: its row is taken into the registers, and its first tap is at hand in the next cycle.
    step : Signal
        The issuer takes the tap at hand. In a layer's last tap ``begin`` comes with it and wins.
    move : Signal
        ``begin`` or ``step``: another tap is at hand in the next cycle, so tables read their next rows.
    last : Signal
        The tap at hand is the last one of a pass over its window. Holds before ``step`` too, like the following ones.
    new : Signal
        The tap at hand claims the next tuple of the stream, in the first pass over its window, and reads it again in
        the others.
    rewind : Signal
        The tap at hand is the last one of a pass, and the same window comes again for the next kernel group.
    window_end : Signal
        The tap at hand is the last one of the last pass over its window.
    """

    begin: Signal
    step: Signal
    move: Signal
    last: Signal
    new: Signal
    rewind: Signal
    window_end: Signal


@dataclass(frozen=True)
class Pointer:
    """A register that runs through something with the taps, and goes back with each pass over a window.

    Attributes
    ----------
    value : Signal
        Where the tap at hand is.
    saved : Signal
        Where the window's first tap was.
    """

    value: Signal
    saved: Signal

    @classmethod
    def made(cls, b: Block, name: str, w: int) -> "Pointer":
        """Registers ``name`` and ``name_saved`` of ``w`` bits in ``b``."""
        return cls(b.reg(name, w), b.reg(f"{name}_saved", w))

    def advance(
        self,
        b: Block,
        progress: Progress,
        stepped: Callable[[Signal], Signal],
        start: Signal | None = None,
        upcoming: Signal | None = None,
    ) -> None:
        """Let the pointer follow the taps.

        Parameters
        ----------
        b : Block
            Module that the registers are in.
        progress : Progress
            What happens to the tap at hand.
        stepped : callable
            From the pointer's value to that for the window's next tap, in as many bits.
        start : Signal, optional
            Value for the first tap of a layer that begins; without it the pointer runs on from layer to layer.
        upcoming : Signal, optional
            Wire that gets the pointer's next value in this cycle already: a memory that is read with it has the row at
            hand together with the tap. Needs ``start``.
        """
        w, name = width(self.value), str(self.value.name)
        after = b.wire(f"{name}_after", w, choose(progress.rewind, self.saved, stepped(self.value), w))
        if start is not None:
            target = b.wire(f"{name}_target", w, choose(progress.begin, start, after, w))
            if upcoming is not None:
                upcoming.assign(target)
        b.on(progress.step, (self.value, after))
        b.on(progress.step & progress.window_end, (self.saved, after))
        if start is not None:
            b.on(progress.begin, (self.value, start), (self.saved, start))
