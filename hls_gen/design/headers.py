"""Headers of packets, and the rules by which the hardware refuses one (docs/reference/device.md, "Packets").

    word 0: kind, NPU, memory   word 1: row, or signature   word 2: length, number   word 3: ~(word 0 ^ word 1 ^ word 2)

The loader decodes these bits (hls_gen/rtl/loader), and compiler and driver write them (packets.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .design import Design
from .fields import Field, named
from .widths import LAYER_BITS, MEMORY_BITS, ROW_BITS

Words = NDArray[np.uint32]

MAGIC = 0xB1
"""Top byte of word 0: tells a header from payload that came out of step."""
HEADER_WORDS = 4
"""32-bit words of a header."""
HEADER_BITS = 32 * HEADER_WORDS
"""Bits of a header."""
MASK = 0xFFFFFFFF
NUMBER_BITS = 8
"""Width of the number of a FRAME or WEIGHTS packet, which counts modulo 2^8."""
FIELDS = (
    (
        Field("KIND", 0, 4, "LOAD, FRAME or WEIGHTS"),
        Field("LAST", 4, 1, "FRAME: its results end the transfer; WEIGHTS: the layer's weights are whole"),
        Field("MEMORY", 8, MEMORY_BITS, "LOAD: id of the memory; WEIGHTS: streamed layers that may be unfinished"),
        Field("NPU", 16, 8, "number of the NPU"),
        Field("MAGIC", 24, 8, "what every header begins with"),
    ),
    (
        Field("ADDRESS", 0, ROW_BITS, "first row"),
        Field("LAYER", ROW_BITS, LAYER_BITS, "WEIGHTS: number of the layer among the streamed ones"),
    ),
    (
        Field("LENGTH", 0, ROW_BITS, "rows, or input words of a frame"),
        Field("NUMBER", ROW_BITS, NUMBER_BITS, "FRAME, WEIGHTS: how many of them came since the last LOAD"),
    ),
    (Field("CHECK", 0, 32, "what makes a header known as one"),),
)
"""Fields of each word of a header, low bits first. Word 1 of a FRAME is one number: the signature of the parameters
that it is for (signature.py)."""
MOST_AHEAD = (1 << MEMORY_BITS) - 1
"""Streamed layers that may be unfinished at most when a WEIGHTS packet is written: what its field MEMORY can say."""
LOAD, FRAME, WEIGHTS = 1, 2, 3
"""Kinds of packets: rows of a memory; the input words of a frame; rows of the kernel memory while frames are computed,
which only designs with ``stream_weights`` take."""
PROGRAM, RUN = 4, 5
"""Kinds of packets of the training machine: instructions for its cache; a run of the program, with the words that IO
takes."""


@dataclass(frozen=True)
class ErrorCode:
    """A value of register ERROR_CODE."""

    code: int
    """The value, >= 1."""
    name: str
    """Its name."""
    rule: str
    """The rule that the packet broke, as a sentence that should have been true."""


BAD_HEADER, BAD_KIND, BAD_NPU, BAD_MEMORY, BAD_RANGE, BAD_FRAME, TRUNCATED, NOT_LOADED = range(1, 9)
BAD_ORDER, BAD_PROGRAM = 9, 10
"""Values of register ERROR_CODE."""
ERROR_BITS = 4
"""Width of an error code."""
ERRORS = (
    ErrorCode(BAD_HEADER, "BAD_HEADER", f"word 0 begins with 0x{MAGIC:02X} and word 3 is the check"),
    ErrorCode(BAD_KIND, "BAD_KIND", "kind is 1 or 2"),
    ErrorCode(BAD_NPU, "BAD_NPU", "the NPU exists"),
    ErrorCode(BAD_MEMORY, "BAD_MEMORY", "the memory exists"),
    ErrorCode(BAD_RANGE, "BAD_RANGE", "rows >= 1 and first row + rows <= depth of the memory"),
    ErrorCode(BAD_FRAME, "BAD_FRAME", "the frame has as many input words as the loaded network says"),
    ErrorCode(TRUNCATED, "TRUNCATED", "tlast does not come before the end of a packet"),
    ErrorCode(NOT_LOADED, "NOT_LOADED", "a network row was loaded since the last reset"),
    ErrorCode(BAD_ORDER, "BAD_ORDER", "frames come in the order of their numbers"),
    ErrorCode(BAD_PROGRAM, "BAD_PROGRAM", "the frame is for the parameters that were loaded, none of which was lost"),
)
"""The errors of a design whose weights all stay on the device."""


def kinds(design: Design) -> dict[str, int]:
    """The kinds of packets that ``design`` takes, by name."""
    return {"LOAD": LOAD, "FRAME": FRAME, **({"WEIGHTS": WEIGHTS} if design.npus[0].loader.stream_weights else {})}


def errors(design: Design) -> tuple[ErrorCode, ...]:
    """The errors that ``design`` reports, by code."""
    if not design.npus[0].loader.stream_weights:
        return ERRORS
    other = {
        BAD_KIND: ErrorCode(BAD_KIND, "BAD_KIND", "kind is 1, 2 or 3"),
        BAD_ORDER: ErrorCode(BAD_ORDER, "BAD_ORDER", "frames, weights and streamed layers come in order"),
    }
    return tuple(other.get(error.code, error) for error in ERRORS)


def word_0(name: str) -> Field:
    """The field of a header's word 0 of that name; KeyError with the names that there are."""
    return named(FIELDS[0], name, "header: field of word 0")


@dataclass(frozen=True)
class PacketHeader:
    """A packet's header, decoded."""

    kind: int
    """LOAD, FRAME or WEIGHTS; 4 bits."""
    npu: int
    """Number of the NPU; 8 bits."""
    memory: int
    """Id of the memory that a LOAD fills; of WEIGHTS ``ahead``: how many streamed layers may be unfinished when the
    rows are written; 8 bits."""
    address: int
    """First row; 24 bits. Of a FRAME the signature of the parameters that it is for; 32 bits."""
    length: int
    """Rows, or input words of a frame; 24 bits."""
    last: bool = False
    """Of a FRAME: its results end the transfer. Of WEIGHTS: the layer's weights are whole with this packet."""
    layer: int = 0
    """Of WEIGHTS: number of the layer among the streamed ones; 8 bits."""
    number: int = 0
    """Of FRAME and WEIGHTS: how many such packets came before it since the last LOAD, modulo 256."""

    def words(self, magic: int = MAGIC) -> Words:
        """(4,) uint32, the check included; ``magic`` is the one that the manifest of the design says."""
        values = {"KIND": self.kind, "LAST": self.last, "MEMORY": self.memory, "NPU": self.npu, "MAGIC": magic}
        word0 = sum(field.at(int(values[field.name])) for field in FIELDS[0])
        word1 = self.address | self.layer << ROW_BITS
        word2 = self.length | (self.number << ROW_BITS & MASK)
        return np.array([word0, word1, word2, check(word0, word1, word2)], np.uint32)

    @classmethod
    def of(cls, word0: int, word1: int, word2: int) -> "PacketHeader":
        """Decode words 0 to 2; the magic byte and the check are not looked at."""
        kind, npu, memory, last = (word_0(name).of(word0) for name in ("KIND", "NPU", "MEMORY", "LAST"))
        (address, layer), (length, number) = (
            [field.of(word) for field in fields] for fields, word in zip(FIELDS[1:], (word1, word2))
        )
        if kind == FRAME:
            address = word1
            layer = 0
        return cls(kind, npu, memory, address, length, bool(last), layer, number)


def check(word0: int, word1: int, word2: int) -> int:
    """Word 3 of a header with these words 0 to 2."""
    return ~(word0 ^ word1 ^ word2) & MASK
