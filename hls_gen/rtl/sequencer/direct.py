"""Taps of direct layers: each tuple of the stream is a tap, and so many taps are a window.

    taps_left, counted down --> last

Dense layers (one window of all tuples) and pools of one tap are direct, so that the largest layers need no table rows.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, width
from bitloom.hls_gen.rtl.primitives.countdown import Countdown

from .layers import Layers
from .source import ALWAYS, NEVER
from .tap_events import TapEvents


class DirectTaps:
    """The tap source of direct layers (interface: source.TapSource)."""

    def __init__(self, b: Block, layers: Layers):
        b.comment("Taps of direct layers: every tuple that comes is one.")
        self._layers = layers
        limit = layers.now.window_taps_minus_1
        self._count = Countdown(b, "taps", width(limit))
        self.serves = layers.now.direct
        self.will_serve = choose(layers.change, layers.upcoming.direct, layers.now.direct, 1)
        self.new = ALWAYS
        self.skip = NEVER
        self.placed = NEVER
        self.word: Signal | None = None

    def advance(self, events: TapEvents) -> Signal:
        """Count the taps of each window."""
        now = self._layers.now.window_taps_minus_1
        upcoming = self._layers.upcoming.window_taps_minus_1
        return self._count.advance(events.move, events.change, upcoming, now)
