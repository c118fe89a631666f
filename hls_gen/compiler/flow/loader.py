"""Process of the loader that writes weights while frames are computed (hls_gen/rtl/loader/weights.py; spec B18).

    stream:  W W FRAME W ...      released --> source of frames --entered--.
                                     ^------------- this process <---------'
                                  there --> issuer of the layer's NPU --done--> this process

The stream is taken in order: a packet that waits holds up all that is behind it, whichever NPU that is for.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.headers import HEADER_BITS

from .kahn import Process, Stamps, Wait

LONG_AGO = -(1 << 40)
"""A cycle before all others: packets before the first frame come while nothing is computed."""
TO_MEMORY = 2
"""Cycles from a layer's last word of weights to the first in which its first tap may be taken."""


@dataclass(frozen=True)
class WeightPacket:
    """A packet of weights that comes with every frame."""

    layer: int
    """Number of its layer in the network."""
    ahead: int
    """Streamed layers of the same NPU that may be unfinished when it is written."""
    words: int
    """Stream words of its rows."""


@dataclass(eq=False)
class WeightLoader:
    """The loader, as far as weights go."""

    npus: Sequence[int]
    """The NPU of each packet."""
    packets: Sequence[WeightPacket]
    """The packets of a frame, in the order of the stream."""
    before: int
    """How many of them come before the frame."""
    stream_bits: int
    """Width of a stream word."""
    there: dict[int, Stamps] = field(default_factory=dict)
    done: dict[int, Stamps] = field(default_factory=dict)
    """there, done: by NPU: cycles from which on a streamed layer's first tap may be taken; cycles of streamed layers'
    last beats."""
    entered: Stamps = field(default_factory=lambda: Stamps("a frame to come in"))
    """Cycles in which the last stream words of frames were taken."""
    released: Stamps = field(default_factory=lambda: Stamps("the weights before a frame"))
    """Cycles of the last words of the packets before each frame."""

    def __post_init__(self) -> None:
        for n in dict.fromkeys(self.npus):
            self.there[n], self.done[n] = Stamps("the weights of its next layer"), Stamps("a layer to be done")

    @property
    def writes(self) -> tuple[Stamps, ...]:
        """The stamps that the process writes."""
        return (*self.there.values(), self.released)

    def process(self, frames: int) -> Process:
        """The process."""
        cycle = LONG_AGO
        items = list(zip(self.packets, self.npus))
        for frame in range(frames):
            for packet, npu in items[: self.before]:
                cycle = yield from self._packet(packet, npu, cycle)
            self.released.append(cycle)
            if len(self.entered) <= frame:
                yield ((self.entered, frame),)
            cycle = self.entered[frame]
            for packet, npu in items[self.before :]:
                cycle = yield from self._packet(packet, npu, cycle)

    def _packet(self, packet: WeightPacket, npu: int, last: int) -> Generator[tuple[Wait, ...], None, int]:
        """Take a packet behind the word of cycle ``last``; returns the cycle of its last word."""
        cycle = last + HEADER_BITS // self.stream_bits + timing.JUDGING
        done = self.done[npu]
        first = len(self.there[npu]) - packet.ahead - 1
        if first >= 0:
            if len(done) <= first:
                yield ((done, first),)
            cycle = max(cycle, done[first] + 1)
        self.there[npu].append(cycle + packet.words + TO_MEMORY)
        return cycle + packet.words
