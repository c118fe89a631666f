"""Boards, and what their devices have. Sources: AMD DS190 (Zynq-7000) and DS891 (Zynq UltraScale+), selection tables.

LUTs of UltraScale+ are the same six-input kind, and its block RAM comes in the same units of 36 Kbit. UltraRAM isn't
counted.
"""

from dataclasses import dataclass, replace

from bitloom.golden.names import check_name
from bitloom.overlay.area.netlist import Resources


@dataclass(frozen=True)
class Board:
    """A board.

    Attributes
    ----------
    name
        As PYNQ writes it.
    part
        Its device, with package and speed grade.
    arch
        Its family of processors: "zynq" (Zynq-7000) or "zynqmp" (Zynq UltraScale+).
    lut, ff, bram36, dsp
        What the device has; block RAM in units of 36 Kbit.
    board_part
        Vivado's name of the board's files without their version, which differs between releases.
    board_files
        Where to get these files: some come from the boards' makers, not from Vivado's installer.

    Raises
    ------
    ValueError
        If the name is none that ``bitloom.golden.names`` allows.
    """

    name: str
    part: str
    arch: str
    lut: int
    ff: int
    bram36: float
    dsp: int
    board_part: str
    board_files: str

    def __post_init__(self) -> None:
        check_name("board", self.name)

    def holds(self, area: Resources) -> bool:
        """Whether a design of that area fits, LUT RAM counted as LUTs."""
        return (
            area.lut + area.lutram <= self.lut
            and area.ff <= self.ff
            and area.bram36 <= self.bram36
            and area.dsp <= self.dsp
        )


STORE = "https://github.com/Xilinx/XilinxBoardStore"
"""Where Vivado's own collection of board files lies."""
PYNQ_Z2 = Board("Pynq-Z2", "xc7z020clg400-1", "zynq", 53_200, 106_400, 140, 220,
                board_part="tul.com.tw:pynq-z2:part0", board_files=STORE)  # fmt: skip

_ALL = (
    replace(PYNQ_Z2, name="Pynq-Z1", board_part="www.digilentinc.com:pynq-z1:part0",
            board_files="https://github.com/cathalmccabe/pynq-z1_board_files"),
    PYNQ_Z2,
    Board("Ultra96", "xczu3eg-sbva484-1-i", "zynqmp", 70_560, 141_120, 216, 360,  # version 2 of the board
          board_part="avnet.com:ultra96v2:part0", board_files="https://github.com/Avnet/bdf"),
    Board("KV260", "xck26-sfvc784-2LV-c", "zynqmp", 117_120, 234_240, 144, 1_248,
          board_part="xilinx.com:kv260_som:part0", board_files=STORE),
    Board("ZCU104", "xczu7ev-ffvc1156-2-e", "zynqmp", 230_400, 460_800, 312, 1_728,
          board_part="xilinx.com:zcu104:part0", board_files=STORE),
)  # fmt: skip
BOARDS = {board.name: board for board in _ALL}


def board(name: str) -> Board:
    """The board of that name, in upper or lower case.

    Raises
    ------
    ValueError
        If there is none.
    """
    for found in _ALL:
        if found.name.lower() == name.lower():
            return found
    raise ValueError(f"board: name must be one of {', '.join(BOARDS)}, got {name!r}")
