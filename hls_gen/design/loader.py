"""Loader: it takes the stream apart, fills the memories and admits frames (hls_gen/rtl/loader)."""

from dataclasses import dataclass

from .parts import NpuPart, capacity, value
from .rules import require
from .widths import LAYER_BITS, bits_for

STATES = ("HEADER", "RANGE", "JUDGE", "LOAD", "FRAME", "DRAIN")
"""Names of the states; a state's number is its place.

HEADER
    The four words of a header are taken.
RANGE
    One cycle in which sums and comparisons of the header's words go into registers (hls_gen/rtl/loader/judge.py).
JUDGE
    The packet waits until it may begin, or is found to be malformed.
LOAD
    Rows of a LOAD or of WEIGHTS are taken.
FRAME
    Input words of a frame are taken.
DRAIN
    A packet was malformed: everything is taken and dropped until reset.
"""
STATE_BITS = bits_for(len(STATES) - 1)
"""Width of a state's number."""


@dataclass(frozen=True, kw_only=True)
class Loader(NpuPart):
    """The loader's part of an NPU: how many layers and outputs it counts, and whether weights are streamed."""

    layers: int = capacity(8, least=2, added=True)
    """Layers that a network may have, 2..256. Sized."""
    outputs: int = capacity(1, least=1, most=256, rare=True)
    """Maps that leave for a frame at most. Sized."""
    stream_weights: bool = value(
        False, means="Whether weights come down the stream with every frame, in all NPUs or in none."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.layers <= 1 << LAYER_BITS, f"layers must be <= {1 << LAYER_BITS}", self.layers)
