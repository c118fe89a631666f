"""Where a device shall run: the family of processors, the board and the clock."""

from dataclasses import dataclass

from .boards import CLOCK_MHZ, Board


@dataclass(frozen=True, kw_only=True)
class BoardTarget:
    """A board, or a family of boards, with the clock of the device on it.

    Attributes
    ----------
    arch
        "zynq" (Zynq-7000) or "zynqmp" (Zynq UltraScale+); None takes the board's, or zynqmp where there is no board.
    board
        The board; None for a simulated one of no special kind.
    clock_mhz
        Clock of the device in MHz.
    """

    arch: str | None = None
    board: Board | None = None
    clock_mhz: float = CLOCK_MHZ
