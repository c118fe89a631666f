"""Taps of direct layers: each tuple of the stream is a tap, and so many taps are a window.

    tap_count --> == window_taps_minus_1 --> last

Dense layers (one window of all tuples) and pools of one tap are direct, so that the largest layers need no table rows.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, choose, eq, width

from .layer_row import LayerRow
from .progress import Progress
from .source import ALWAYS, NEVER


class DirectTaps:
    """The tap source of direct layers (interface: source.TapSource)."""

    def __init__(self, b: Block, now: LayerRow):
        b.comment("Taps of direct layers: every tuple that comes is one.")
        self._b = b
        self._count = b.reg("tap_count", width(now.window_taps_minus_1))  # taps of the window before this one
        self.serves = now.direct
        self.last = eq(self._count, now.window_taps_minus_1)
        self.new, self.skip, self.placed = ALWAYS, NEVER, NEVER
        self.word: Signal | None = None

    def advance(self, progress: Progress) -> None:
        """Count the taps of each window."""
        w = width(self._count)
        self._b.on(progress.taken, (self._count, choose(progress.last, 0, add(self._count, 1, w), w)))
