"""The DMA between memory and a device's streams: its registers, and the sizes of the one that is generated.

The registers are those of AMD's AXI DMA in direct register mode (AMD PG021, "Register Space"), so that one driver runs
both cores. Each of the two channels has the same registers: MM2S (memory to stream) from byte 0x00 on, S2MM (stream to
memory) from byte 0x30 on.
"""

from dataclasses import dataclass, replace

from .design import STREAM_WIDTHS
from .fields import Field
from .registers import Register

VLNV = "bitloom:bitloom:bitloom_dma:1.0"
"""Vendor, library, name and version of the generated core."""
SYSTEM_TOP = "bitloom_system"
"""Name of the module that holds a device and the DMA."""
MM2S, S2MM = 0x00, 0x30
"""Byte offsets of the two channels' registers."""

CONTROL = Register(
    "CONTROL",
    0x00,
    "RW",
    "DMACR: control",
    (
        Field("RUN", 0, 1, "transfers may begin; 0: the channel halts at the end of the one under way"),
        Field("ONE", 1, 1, "always 1"),
        Field("RESET", 2, 1, "write 1: reset of both channels; reads 1 until it has ended"),
        Field("DONE_IRQ", 12, 1, "interrupt at the end of a transfer"),
        Field("ERROR_IRQ", 14, 1, "interrupt at an error"),
        Field("THRESHOLD", 16, 8, "always 1: an interrupt each transfer"),
    ),
)
"""The register by which a channel runs, and both are reset."""
STATUS = Register(
    "STATUS",
    0x04,
    "RW1C",
    "DMASR: status; of a write, the interrupts alone count",
    (
        Field("HALTED", 0, 1, "the channel does not run"),
        Field("IDLE", 1, 1, "the transfer has ended"),
        Field("INTERNAL", 4, 1, "length 0, an unaligned address or length, or a packet longer than its buffer"),
        Field("SLAVE", 5, 1, "memory refused an access (SLVERR)"),
        Field("DECODE", 6, 1, "there is no memory at an address (DECERR)"),
        Field("DONE_IRQ", 12, 1, "a transfer has ended"),
        Field("ERROR_IRQ", 14, 1, "a transfer has ended with an error; only a reset helps"),
    ),
)
"""The register that says how a channel's transfer stands."""
ADDRESS = Register("ADDRESS", 0x18, "RW", "SA, DA: low 32 bits of the buffer's address")
ADDRESS_MSB = Register("ADDRESS_MSB", 0x1C, "RW", "SA_MSB, DA_MSB: high bits of the buffer's address")
LENGTH = Register("LENGTH", 0x28, "RW", "bytes; a write begins a transfer. Of S2MM at its end: bytes that came")
CHANNEL = (CONTROL, STATUS, ADDRESS, ADDRESS_MSB, LENGTH)
"""Registers of a channel; offsets from the channel's first one."""
CHANNELS = {"MM2S": MM2S, "S2MM": S2MM}
"""Offset of each channel's registers."""
REGISTERS = tuple(
    replace(register, name=f"{side}_{register.name}", offset=base + register.offset)
    for side, base in CHANNELS.items()
    for register in CHANNEL
)
"""All registers: MM2S_CONTROL and so on."""
RESET_CONTROL = CONTROL.field("ONE").at(1) | CONTROL.field("THRESHOLD").at(1)
"""CONTROL after a reset."""

LENGTH_BITS = 26
"""Width of LENGTH, as many as AMD's core can have: a transfer has fewer than 2^26 bytes."""
BURST_BEATS = 16
"""Beats of a burst at most: AXI3 has no longer ones, so that the ports of a Zynq-7000 take them as they are."""
MOST_BURSTS = 4
"""Bursts of a channel that are under way at most: 64 words hide some 48 cycles of a memory's latency."""
READ_WORDS = BURST_BEATS * MOST_BURSTS
"""Words that MM2S has room for. MM2S asks only for words that it has room for, so that it never stops the bus."""
WRITE_WORDS = 2 * BURST_BEATS
"""Words that S2MM has room for: a burst that is gathered, and one that is written. It writes bursts that are there
alone, so that it never lets the bus wait."""


@dataclass(frozen=True, kw_only=True)
class Dma:
    """Sizes of a generated DMA.

    Raises
    ------
    ValueError
        If a size is none of those below.
    """

    stream_bits: int
    """Bits of a word of both streams and of memory: 32 or 64."""
    address_bits: int = 32
    """Bits of a byte address: 32 (Zynq-7000) to 64; 40 on Zynq UltraScale+."""
    length_bits: int = LENGTH_BITS
    """Bits of LENGTH, 8 to 26."""

    def __post_init__(self) -> None:
        if self.stream_bits not in STREAM_WIDTHS:
            raise ValueError(f"dma: stream_bits must be 32 or 64, got {self.stream_bits!r}")
        for name, low, high in (("address_bits", 32, 64), ("length_bits", 8, LENGTH_BITS)):
            value = getattr(self, name)
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"dma: {name} must be {low}..{high}, got {value!r}")

    @property
    def unit_bits(self) -> int:
        """Low bits of an address or a length that are 0: they count bytes in a word."""
        return (self.stream_bits // 8).bit_length() - 1

    @property
    def place_bits(self) -> int:
        """Bits of a word's address."""
        return self.address_bits - self.unit_bits

    @property
    def count_bits(self) -> int:
        """Bits of a count of words."""
        return self.length_bits - self.unit_bits
