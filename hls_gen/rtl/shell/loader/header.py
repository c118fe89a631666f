"""Header of a packet: four 32-bit words, kept until the next packet begins (docs/reference/device.md, "Packets").

stream word --> header_0 | header_1 | header_2 | header_3 --> complete
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, bits, eq

from .state import LoaderContext

KIND_BITS = 4
"""Width of a packet's kind."""


@dataclass(frozen=True)
class HeaderWords:
    """The header of the packet at hand, in registers.

    Attributes
    ----------
    words : sequence of Signal
        The four words. In state DRAIN they are those of the packet that was malformed.
    complete : Signal
        Pulse: the last of them is taken in this cycle.
    """

    words: Sequence[Signal]
    complete: Signal

    @property
    def kind(self) -> Signal:
        """Kind of the packet, KIND_BITS wide."""
        return bits(self.words[0], 0, KIND_BITS)

    @property
    def last(self) -> Signal:
        """Of a frame: its results end the transfer. Of WEIGHTS: the layer's weights are whole with this packet."""
        return bits(self.words[0], 4, 1)

    @property
    def memory(self) -> Signal:
        """Of a LOAD: id of the memory. Of WEIGHTS: how many streamed layers may be unfinished. 8 bits."""
        return bits(self.words[0], 8, 8)

    @property
    def npu(self) -> Signal:
        """Number of the NPU, 8 bits."""
        return bits(self.words[0], 16, 8)

    @property
    def magic(self) -> Signal:
        """What every header has at its top, 8 bits."""
        return bits(self.words[0], 24, 8)

    @property
    def address(self) -> Signal:
        """First row, 32 bits."""
        return self.words[1]

    @property
    def length(self) -> Signal:
        """Rows, or input words of a frame; 32 bits."""
        return self.words[2]

    @property
    def check(self) -> Signal:
        """Word 3: all bits of the other three words' XOR, turned."""
        return self.words[3]


def kind_number(b: Block, name: str, number: int) -> Signal:
    """The number of a kind of packet, as a constant ``KIND_<name>`` of the module."""
    return b.localparam(f"KIND_{name}", number, KIND_BITS)


def header_words(c: LoaderContext) -> HeaderWords:
    """Takes the header's words in state HEADER, one or two a stream word."""
    b, per_beat = c.b, c.design.stream_bits // 32
    b.comment("Header: four words, kept until the next packet begins.")
    beats = headers.HEADER_WORDS // per_beat
    place = b.reg("header_place", bits_for(beats - 1))
    here = b.wire("header_take", 1, c.at["HEADER"] & c.given)
    words = []
    for k in range(headers.HEADER_WORDS):
        word = b.reg(f"header_{k}", 32, init=None)
        b.on(here & eq(place, k // per_beat), (word, bits(c.data, 32 * (k % per_beat), 32)))
        words.append(word)
    b.on(here, (place, add(place, 1, bits_for(beats - 1))))  # beats is a power of two: wraps
    return HeaderWords(words, b.wire("header_done", 1, here & eq(place, beats - 1)))
