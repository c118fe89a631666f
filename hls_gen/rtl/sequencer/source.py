"""The interface that the three sorts of tap source share, and the choice between them.

    direct    every tap's tuple is the next one of the stream, and windows have a fixed number of taps: dense layers
    tables    flags, addresses and jumps from memories: any window in any order
    counters  a few counters, for windows in raster order (only in NPUs with ``raster``)

All three work at the same time; the layer's row says which one is looked at.
"""

from dataclasses import dataclass
from typing import Protocol

from bitloom.hls_gen.rtl.primitives.block import Block, Signal

from .progress import Progress


class TapSource(Protocol):
    """What makes the taps of a layer.

    Attributes
    ----------
    serves : Signal
        1 in layers whose taps this source makes.
    last : Signal
        The tap at hand is the last one of its window.
    new : Signal
        The tap's tuple is claimed by this tap: no tap before has read it.
    """

    serves: Signal
    last: Signal
    new: Signal

    def advance(self, b: Block, progress: Progress) -> None:
        """What the source's registers do when the issuer takes the tap at hand, and when a layer begins."""


@dataclass(frozen=True)
class Choice:
    """What is said of the tap at hand by the source that serves its layer.

    Attributes
    ----------
    last, new : Signal
        As in TapSource.
    skip : Signal
        The tap is no tap of a window: its tuple arrives now and is read later. There is no beat.
    """

    last: Signal
    new: Signal
    skip: Signal
