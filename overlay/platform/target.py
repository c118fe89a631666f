"""Where a device shall run: the family of processors, the board, the clock, the DMA, and a raw stream."""

from dataclasses import dataclass

from bitloom.hls_gen.design.packetizer import RawStream

from .boards import CLOCK_MHZ, Board
from .dma_core import AMD, DmaCore


@dataclass(frozen=True, kw_only=True)
class BoardTarget:
    """A board, or a family of boards, with the clock of the device on it."""

    arch: str | None = None
    """"zynq" (Zynq-7000) or "zynqmp" (Zynq UltraScale+); None takes the board's, or zynqmp where there is no board."""
    board: Board | None = None
    """The board; None for a simulated one of no special kind."""
    clock_mhz: float = CLOCK_MHZ
    """Clock of the device in MHz."""
    dma: DmaCore = AMD
    """The DMA that moves its streams."""
    raw_stream: RawStream | None = None
    """A stream of the board's own, frames of which go to the device beside those of the DMA; for the sources of a
    bitstream alone."""
