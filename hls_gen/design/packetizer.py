"""The packetizer: a raw stream, such as a camera's, becomes FRAME packets for a device. Its registers, and its sizes.

    raw beat: values side by side, each in a lane of whole bytes
    group: so many beats --wires--> stream words of a frame's payload

A program says where each bit of a payload comes from (``Program.frame_source``). Where the image's values are wanted in
the order in which they come, the same wires serve all groups of a frame.
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

from .design import STREAM_WIDTHS
from .fields import Field
from .frame_layout import ZERO
from .gearbox import gear
from .program import Program
from .registers import Register
from .widths import bits_for

VLNV = "bitloom:bitloom:bitloom_packetizer:1.0"
"""Vendor, library, name and version of the generated core."""
LARGEST_GROUP_BITS = 8192
"""Bits of a group, in either form, at most: they wait in registers."""
MARKS = ("packet", "video")
"""How a raw stream tells frames apart: "packet", tlast is at a frame's last beat; "video", tuser is at a frame's first
beat, as in AXI4-Stream Video, whose tlast, the end of a line, is not looked at."""

CONTROL = Register(
    "CONTROL",
    0x00,
    "RW",
    "what the packetizer does",
    (
        Field("RUN", 0, 1, "frames are made; an error clears it; 0: ends with the frame under way"),
        Field("RESET", 1, 1, "write 1: a frame under way is dropped, and errors are cleared; reads 0"),
        Field("ERROR_IRQ", 2, 1, "interrupt while there is an error"),
    ),
)
STATUS = Register(
    "STATUS",
    0x04,
    "RW1C",
    "how the packetizer stands; of a write, the errors alone count",
    (
        Field("BUSY", 0, 1, "a frame is under way"),
        Field("SHORT", 1, 1, "a frame had too few beats; what was missing is 0"),
        Field("LONG", 2, 1, "a frame had too many beats; those in excess are dropped when frames are made again"),
    ),
)
SIGNATURE = Register("SIGNATURE", 0x08, "RW", "signature of the parameters that frames are for: the device's SIGNATURE")
NUMBER = Register(
    "NUMBER", 0x0C, "RW", "number of the next frame, counted up with each; its low 8 bits go into the header"
)
TRANSFER_FRAMES = Register(
    "TRANSFER_FRAMES",
    0x10,
    "RW",
    "frames of a result transfer: the last one's results end with tlast; 0: none do",
    (Field("FRAMES", 0, 16, "frames"),),
)
BEATS = Register("BEATS", 0x14, "RO", "beats of a frame, always the same")
REGISTERS = (CONTROL, STATUS, SIGNATURE, NUMBER, TRANSFER_FRAMES, BEATS)
"""CONTROL, ..., BEATS: the registers, all of them."""


@dataclass(frozen=True, kw_only=True)
class RawStream:
    """The form of a raw stream: how it tells frames apart, and how many values a beat has."""

    marks: str
    """How it tells frames apart, one of MARKS."""
    beat_values: int | None = None
    """Values of a beat; None: those of a pixel, one for each channel."""

    def __post_init__(self) -> None:
        if self.marks not in MARKS:
            raise ValueError(f"raw stream: marks must be {' or '.join(MARKS)}, got {self.marks!r}")
        if self.beat_values is not None and self.beat_values < 1:
            raise ValueError(f"raw stream: values of a beat must be >= 1, got {self.beat_values}")


@dataclass(frozen=True, kw_only=True)
class Packetizer:
    """Sizes of a generated packetizer, which makes frames of one form. Make it with ``of``."""

    stream_bits: int
    """Bits of a word of the device's stream."""
    marks: str
    """How the raw stream tells frames apart, one of MARKS."""
    value_bits: int
    """Bits of a value."""
    beat_values: int
    """Values of a beat."""
    beats: int
    """Beats of a frame."""
    frame_words: int
    """Input words of a frame, for the header."""
    payload_words: int
    """Stream words of a frame's payload."""
    group_beats: int
    """Beats of a group; a frame's last group may have fewer."""
    group_source: tuple[int, ...]
    """Where each bit of a group's stream words comes from: number of a bit of the group's values, or ZERO or ONE."""

    def __post_init__(self) -> None:
        """Raise ValueError if a size contradicts another one."""
        if self.stream_bits not in STREAM_WIDTHS:
            raise ValueError(f"packetizer: stream_bits must be 32 or 64, got {self.stream_bits!r}")
        if not 1 <= self.last_group_words <= self.group_words:
            raise ValueError(
                f"packetizer: {self.groups} groups must have {self.payload_words} words, {self.group_words} each but "
                f"for the last one, which has {self.last_group_words}"
            )

    @classmethod
    def of(cls, program: Program, stream_bits: int, raw: RawStream) -> "Packetizer":
        """The packetizer for a program's frames.

        Parameters
        ----------
        program
            The program of a device.
        stream_bits
            Bits of a word of the device's stream.
        raw
            Raw stream of which the frames are made.

        Raises
        ------
        ValueError
            If a raw stream can't be the program's input: weights go with each frame, values are wanted in another
            order than they come, or a frame is no whole number of beats.
        """
        values = program.input.size
        value_bits = program.input.encoding.bits
        beat_values = raw.beat_values or program.input.channels
        if len(program.weights):
            raise ValueError(f"{program.name}: for a raw stream all weights must stay on the device, got streamed ones")
        if values % beat_values:
            raise ValueError(
                f"{program.name}: a raw beat must be a whole part of the {values} values of a frame, got {beat_values}"
            )
        source = program.frame_source.reshape(-1, stream_bits)
        beats = values // beat_values
        beat_bits = beat_values * value_bits
        for group_beats in range(1, min(beats, LARGEST_GROUP_BITS // beat_bits) + 1):
            groups = -(-beats // group_beats)
            fewest = -(-len(source) // groups)
            most = (len(source) - 1) // (groups - 1) if groups > 1 else fewest
            for group_words in range(fewest, min(most, LARGEST_GROUP_BITS // stream_bits) + 1):
                group = source[:group_words]
                if np.array_equal(source, _repeated(group, group_beats * beat_bits, beats * beat_bits, len(source))):
                    return cls(
                        stream_bits=stream_bits,
                        marks=raw.marks,
                        value_bits=value_bits,
                        beat_values=beat_values,
                        beats=beats,
                        frame_words=program.frame_words,
                        payload_words=len(source),
                        group_beats=group_beats,
                        group_source=tuple(group.ravel().tolist()),
                    )
        raise ValueError(
            f"{program.name}: for a raw stream a frame's values must be wanted in the order of the image, got another "
            "order: map order raster keeps it"
        )

    @property
    def lane_bits(self) -> int:
        """Bits of a value's lane in a beat: whole bytes."""
        return 8 * gear(self.value_bits, 8).pieces

    @property
    def raw_bits(self) -> int:
        """Bits of a raw beat."""
        return self.beat_values * self.lane_bits

    @property
    def groups(self) -> int:
        """Groups of a frame."""
        return -(-self.beats // self.group_beats)

    @property
    def group_words(self) -> int:
        """Stream words of a group."""
        return len(self.group_source) // self.stream_bits

    @property
    def last_piece_bits(self) -> int:
        """Bits of the number of a stream word in its group."""
        return bits_for(self.group_words - 1)

    @property
    def last_group_words(self) -> int:
        """Stream words of a frame's last group."""
        return self.payload_words - (self.groups - 1) * self.group_words


def _repeated(group: Array, group_bits: int, bits: int, stream_words: int) -> Array:
    """(stream_words, stream bits) sources of the bits of a payload that has the words ``group`` over and over.

    Parameters
    ----------
    group
        (words, stream bits) sources of the bits of a frame's first group.
    group_bits, bits
        Bits of the values of a group, and of all values of the frame; a bit behind these is 0.
    stream_words
        Stream words of the payload.
    """
    begins = np.arange(-(-bits // group_bits)) * group_bits
    source = np.where(group < 0, group, group + begins[:, None, None])
    return np.where(source < bits, source, ZERO).reshape(-1, group.shape[1])[:stream_words]
