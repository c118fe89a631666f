"""Boards, and what their devices have. Sources: AMD DS190 (Zynq-7000) and DS891 (Zynq UltraScale+), selection tables.

LUTs of UltraScale+ are the same six-input kind; its block RAM comes in the same 36 Kbit units. UltraRAM isn't counted.
"""

from dataclasses import dataclass

from .netlist import Resources


@dataclass(frozen=True)
class Board:
    """A board. part : of its device.  arch : of its processor, as ``bitloom build --arch`` takes it."""

    name: str
    part: str
    arch: str
    lut: int
    ff: int
    bram36: float
    dsp: int

    def holds(self, area: Resources) -> bool:
        """Whether a design of that area fits, LUT RAM counted as LUTs."""
        return (
            area.lut + area.lutram <= self.lut
            and area.ff <= self.ff
            and area.bram36 <= self.bram36
            and area.dsp <= self.dsp
        )


_ALL = (
    Board("pynq-z1", "xc7z020clg400-1", "zynq", 53_200, 106_400, 140, 220),
    Board("pynq-z2", "xc7z020clg400-1", "zynq", 53_200, 106_400, 140, 220),
    Board("ultra96", "xczu3eg-sbva484-1-i", "zynqmp", 70_560, 141_120, 216, 360),
    Board("kv260", "xck26-sfvc784-2LV-c", "zynqmp", 117_120, 234_240, 144, 1_248),
    Board("zcu104", "xczu7ev-ffvc1156-2-e", "zynqmp", 230_400, 460_800, 312, 1_728),
)
BOARDS = {board.name: board for board in _ALL}


def board(name: str) -> Board:
    """The board of that name; ValueError if there is none."""
    if name not in BOARDS:
        raise ValueError(f"board: name must be one of {', '.join(BOARDS)}, got {name!r}")
    return BOARDS[name]
