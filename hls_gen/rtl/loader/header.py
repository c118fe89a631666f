"""Header of a packet: four 32-bit words, kept until the next packet begins (docs/reference/device.md, "Packets").

stream word --> header_0 | header_1 | header_2 | header_3 --> complete
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.headers import FIELDS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, bits, eq
from bitloom.hls_gen.rtl.primitives.register_word import field_of

from .state import LoaderContext


@dataclass(frozen=True)
class HeaderWords:
    """The header of the packet at hand."""

    words: Sequence[Signal]
    """Registers: the four words. In state DRAIN they are those of the packet that was malformed."""
    fields: Mapping[str, Signal]
    """Wires: their fields (``hls_gen.design.headers.FIELDS``), by name."""
    complete: Signal
    """Pulse: the last of the words is taken in this cycle."""
    end_row: Signal
    """Register: row behind the last one that the header names, by the low bits of its numbers alone."""

    @property
    def kind(self) -> Signal:
        """Kind of the packet."""
        return self.fields["KIND"]

    @property
    def last(self) -> Signal:
        """Of a frame: its results end the transfer. Of WEIGHTS: the layer's weights are whole with this packet."""
        return self.fields["LAST"]

    @property
    def memory(self) -> Signal:
        """Of a LOAD: id of the memory. Of WEIGHTS: how many streamed layers may be unfinished."""
        return self.fields["MEMORY"]

    @property
    def npu(self) -> Signal:
        """Number of the NPU."""
        return self.fields["NPU"]

    @property
    def address(self) -> Signal:
        """First row."""
        return self.fields["ADDRESS"]

    @property
    def length(self) -> Signal:
        """Rows, or input words of a frame."""
        return self.fields["LENGTH"]


def kind_number(b: Block, name: str, number: int) -> Signal:
    """The number of a kind of packet, as a constant ``KIND_<name>`` of the module."""
    return b.localparam(f"KIND_{name}", number, headers.word_0("KIND").width)


def header_words(c: LoaderContext, end_bits: int) -> HeaderWords:
    """Takes the header's words in state HEADER, one or two a stream word; ``end_bits``: width of ``end_row``."""
    b = c.b
    per_beat = c.design.stream_bits // 32
    b.comment("Header: four words, kept until the next packet begins.")
    beats = headers.HEADER_WORDS // per_beat
    place = b.reg("header_place", bits_for(beats - 1))
    here = b.wire("header_take", 1, c.at["HEADER"] & c.given)
    words = []
    fields = {}
    end_row = b.reg("end_row", end_bits, init=None)  # a sum beside the words: a comparison follows
    for k, parts in enumerate(FIELDS):
        word = b.reg(f"header_{k}", 32, init=None)
        comes = bits(c.data, 32 * (k % per_beat), 32)
        now = here & eq(place, k // per_beat)
        b.on(now, (word, comes))
        words.append(word)
        for part in parts:
            fields[part.name] = b.wire(f"header_{part.name.lower()}", part.width, field_of(word, part))
            if part.name == "LENGTH":  # the address came before, as a stream word has two words at most
                length = field_of(comes, part)
                sides = (bits(end, 0, min(end_bits - 1, part.width)) for end in (fields["ADDRESS"], length))
                b.on(now, (end_row, add(*sides, end_bits)))
    b.on(here, (place, add(place, 1, bits_for(beats - 1))))  # beats is a power of two: wraps
    return HeaderWords(words, fields, b.wire("header_done", 1, here & eq(place, beats - 1)), end_row)
