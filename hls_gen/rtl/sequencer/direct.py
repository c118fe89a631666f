"""Taps of direct layers: each tuple of the stream is a tap, and so many taps are a window.

    tap_count --> == window_taps_minus_1 --> last

Dense layers (one window of all tuples) and pools of one tap are direct, so that the largest layers need no table rows.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, choose, const, eq, width

from .layer_row import LayerRow
from .progress import Progress


class DirectTaps:
    """The tap source of direct layers (interface: source.TapSource)."""

    def __init__(self, b: Block, now: LayerRow):
        self.serves = now.direct
        self.new: Signal = const(1, 1)
        self._count = b.reg("tap_count", width(now.window_taps_minus_1))
        self.last = eq(self._count, now.window_taps_minus_1)

    def advance(self, b: Block, progress: Progress) -> None:
        """Count the taps of each window."""
        w = width(self._count)
        b.on(progress.step, (self._count, choose(progress.last, 0, add(self._count, 1, w), w)))
