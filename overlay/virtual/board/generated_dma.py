"""The DMA of hls_gen/rtl/dma on a virtual board: its Verilog runs beside the device's, and reads and writes the DDR.

    registers --> s_axi_dma of the simulation        m_axi_mm2s, m_axi_s2mm of the simulation --> DDR

What a driver does is not judged here, as in dma.py: the hardware answers.
"""

from bitloom.hls_gen.design import dma
from bitloom.overlay.virtual.sim import Simulation
from bitloom.overlay.virtual.sim.registers import DMA

from .memory import Ddr

ENDED = dma.STATUS.field("HALTED").at(1) | dma.STATUS.field("IDLE").at(1)


class GeneratedChannel:
    """The virtual board's record of a channel: whether a transfer may be under way."""

    def __init__(self, name: str, base: int):
        self.name = f"bitloom_dma {name}"
        self.base = base
        self.active = False


class GeneratedDma:
    """Both channels. Offsets are those of the core's register space.

    Parameters
    ----------
    simulation
        Of a model that has the DMA.
    memory
        The DDR that is read and written.
    """

    def __init__(self, simulation: Simulation, memory: Ddr):
        self.simulation = simulation
        self.channels = (GeneratedChannel("MM2S", dma.MM2S), GeneratedChannel("S2MM", dma.S2MM))
        simulation.connect_memory(memory.content, memory.base)

    def read(self, offset: int) -> int:
        """Read the register at an offset; 0 where there is none."""
        return self.simulation.read_register(offset, port=DMA)

    def write(self, offset: int, value: int) -> None:
        """Write the register at an offset."""
        self.simulation.write_register(offset, value, port=DMA)
        for channel in self.channels:
            if offset == channel.base + dma.LENGTH.offset:
                channel.active = True
        self.step()

    def step(self) -> None:
        """Simulated time has passed."""
        for channel in self.channels:
            if channel.active:
                channel.active = not self.read(channel.base + dma.STATUS.offset) & ENDED

    @property
    def waiting_for(self) -> list[str]:
        """Names of conditions at which the simulation may stop because a transfer is complete."""
        return ["dma"] if any(channel.active for channel in self.channels) and not self.lines else []

    @property
    def lines(self) -> int:
        """Interrupt outputs: bit 0 of MM2S, bit 1 of S2MM."""
        return self.simulation.dma_interrupts

    def dump(self) -> dict[str, str]:
        """Registers of both channels as text, for the message of a timeout."""
        dump = {}
        for channel in self.channels:
            control, status, address, high, length = (self.read(channel.base + r.offset) for r in dma.CHANNEL)
            dump[channel.name] = (
                f"CR 0x{control:08X} SR 0x{status:08X} address 0x{high << 32 | address:X} length {length}"
                f"{' active' if channel.active else ''}"
            )
        return dump
