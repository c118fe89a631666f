"""AXI DMA in direct register mode (Xilinx PG021), as far as a driver can see it.

    MM2S: DDR --> source queue of the simulation --> s_axis
    S2MM: m_axis --> sink queue of the simulation --> DDR

The registers are those of hls_gen/design/dma.py.

Where the hardware leaves behaviour open, this model is strict, so that a wrong driver fails here:

- A packet that is longer than the S2MM buffer is an internal error: the buffer is full and its last word had no tlast.
- A transfer must lie inside one allocated buffer, start at a stream word and be a multiple of it (no DRE, no tkeep).
- LENGTH must not be written during a transfer.

It is looser than the hardware in two things: MM2S reads the DDR when LENGTH is written, and S2MM takes nothing before
LENGTH is written.
"""

from bitloom.hls_gen.design import dma
from bitloom.overlay.virtual.sim import Simulation

from .memory import Ddr

RUN, RESET = (dma.CONTROL.field(name).at(1) for name in ("RUN", "RESET"))
HALTED, IDLE, INTERNAL, SLAVE, DECODE, DONE_IRQ, ERROR_IRQ = (field.at(1) for field in dma.STATUS.fields)
ALL_IRQ = 0x7000
CONTROL, STATUS, ADDRESS, ADDRESS_MSB, LENGTH = (register.offset for register in dma.CHANNEL)


class DmaMisuseError(RuntimeError):
    """A driver did what the AXI DMA leaves undefined. The message says what."""


class Channel:
    """Registers of one direction. Subclasses move the data, in ``start`` and ``step``.

    Parameters
    ----------
    simulation
        Whose streams are driven.
    memory
        The DDR that is read or written.
    """

    name = ""

    def __init__(self, simulation: Simulation, memory: Ddr):
        self.simulation = simulation
        self.memory = memory
        self.word_bytes = simulation.stream_bits // 8
        self.clear()

    def clear(self) -> None:
        """State after a reset."""
        self.control = dma.RESET_CONTROL
        self.status = HALTED
        self.address = self.length = 0
        self.active = False

    def read(self, offset: int) -> int:
        """The register at an offset; 0 where there is none."""
        known = {CONTROL: self.control, STATUS: self.status, LENGTH: self.length}
        known |= {ADDRESS: self.address & 0xFFFFFFFF, ADDRESS_MSB: self.address >> 32}
        return known.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """Write the register at an offset. Writing LENGTH starts a transfer."""
        if offset == CONTROL:
            self.control = (value & ~RESET) | 2
            if value & RUN:
                self.status &= ~HALTED
            elif not self.active:
                self.status = (self.status | HALTED) & ~IDLE
        elif offset == STATUS:
            self.status &= ~(value & ALL_IRQ)
        elif offset == ADDRESS:
            self.address = self.address >> 32 << 32 | value
        elif offset == ADDRESS_MSB:
            self.address = value << 32 | self.address & 0xFFFFFFFF
        elif offset == LENGTH and not self.status & HALTED:
            self._begin(value & (1 << dma.LENGTH_BITS) - 1)

    def _begin(self, length: int) -> None:
        """Start a transfer of so many bytes, or fail as the DMA does."""
        if self.active:
            raise DmaMisuseError(f"{self.name}: LENGTH written while a transfer is running")
        if length % self.word_bytes or self.address % self.word_bytes:
            raise DmaMisuseError(
                f"{self.name}: address and length must be multiples of {self.word_bytes} bytes (the stream word),"
                f" got 0x{self.address:X} and {length}"
            )
        self.length = length
        self.status &= ~IDLE
        if not length:
            self.fail(INTERNAL)
        elif not self.memory.holds(self.address, length):
            self.fail(DECODE)
        else:
            self.active = True
            self.start()

    def finish(self) -> None:
        """The transfer is complete."""
        self.active = False
        self.status |= IDLE | DONE_IRQ
        if not self.control & RUN:
            self.status = (self.status | HALTED) & ~IDLE

    def fail(self, error: int) -> None:
        """The transfer ended with an error; only a reset helps then."""
        self.active = False
        self.control &= ~RUN
        self.status = (self.status | error | ERROR_IRQ | HALTED) & ~IDLE

    @property
    def interrupt(self) -> bool:
        """The interrupt output of the channel."""
        return bool(self.status & self.control & ALL_IRQ)

    def start(self) -> None:
        """A transfer of ``length`` bytes at ``address`` begins."""
        raise NotImplementedError

    def step(self) -> None:
        """Simulated time has passed."""
        raise NotImplementedError


class MemoryToStream(Channel):
    """MM2S: reads a buffer and sends it, with tlast on its last word."""

    name = "axi_dma MM2S"
    condition = "source_empty"  # simulate until then

    def start(self) -> None:
        """Queue the whole buffer."""
        data = self.memory.buffer(self.address, self.length, self.name)
        self.simulation.send(data.view("<u4"), last=True)

    def step(self) -> None:
        """Complete when every word has been taken."""
        if self.active and not self.simulation.state()["source_queued"]:
            self.finish()


class StreamToMemory(Channel):
    """S2MM: writes a packet to a buffer. Once it is complete, LENGTH reads as the bytes that came."""

    name = "axi_dma S2MM"
    condition = "sink_closed"

    def clear(self) -> None:
        """State after a reset: nothing is taken from the stream."""
        super().clear()
        self.received = 0

    def start(self) -> None:
        """Open the sink for one packet."""
        self.memory.buffer(self.address, self.length, self.name)
        self.received = 0
        self.simulation.open_sink(self.length // 4, close_on_last=True)

    def step(self) -> None:
        """Store what has arrived; complete at tlast, fail where the buffer is full before it."""
        if not self.active:
            return
        words, lasts = self.simulation.received()
        if words.size:
            self.memory.buffer(self.address + self.received, words.nbytes, self.name)[:] = words.view("u1")
            self.received += words.nbytes
        if lasts.size and lasts[-1]:
            self.length = self.received
            self.finish()
        elif self.received == self.length:
            self.fail(INTERNAL)


class AxiDma:
    """Both channels. Offsets are those of the core's register space.

    Parameters
    ----------
    simulation
        Whose streams are driven.
    memory
        The DDR that is read and written.
    """

    def __init__(self, simulation: Simulation, memory: Ddr):
        self.simulation = simulation
        self.send = MemoryToStream(simulation, memory)
        self.receive = StreamToMemory(simulation, memory)
        self.channels: tuple[Channel, ...] = (self.send, self.receive)
        simulation.open_sink(0)

    def _channel(self, offset: int) -> tuple[Channel, int]:
        """The channel at an offset, and the offset in that channel."""
        return (self.receive, offset - dma.S2MM) if offset >= dma.S2MM else (self.send, offset)

    def read(self, offset: int) -> int:
        """Read the register at an offset."""
        channel, inner = self._channel(offset)
        return channel.read(inner)

    def write(self, offset: int, value: int) -> None:
        """Write the register at an offset. The reset bit of either channel resets both and aborts their transfers."""
        channel, inner = self._channel(offset)
        if inner == CONTROL and value & RESET:
            self.reset()
        else:
            channel.write(inner, value)

    def reset(self) -> None:
        """Abort: words that have not been sent are lost, and nothing more is received."""
        self.simulation.clear_source()
        self.simulation.open_sink(0)
        self.simulation.received()
        for channel in self.channels:
            channel.clear()

    def step(self) -> None:
        """Simulated time has passed."""
        for channel in self.channels:
            channel.step()

    @property
    def waiting_for(self) -> list[str]:
        """Names of conditions at which the simulation may stop because a transfer is complete."""
        return [channel.condition for channel in self.channels if channel.active]

    @property
    def lines(self) -> int:
        """Interrupt outputs: bit 0 of MM2S, bit 1 of S2MM."""
        return self.send.interrupt | self.receive.interrupt << 1

    def dump(self) -> dict[str, str]:
        """Registers of both channels as text, for the message of a timeout."""
        return {
            channel.name: f"CR 0x{channel.control:08X} SR 0x{channel.status:08X} address 0x{channel.address:X}"
            f" length {channel.length}{' active' if channel.active else ''}"
            for channel in self.channels
        }
