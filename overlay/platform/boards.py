"""Boards, and what their devices have. Sources: selection tables of AMD DS190 (Zynq-7000),
DS891 (Zynq UltraScale+), DS889 (RFSoC) and DS987 (Kria K26). How many LUTs may be memory these say in Mb of distributed
RAM, if at all; the number itself stands in reports of Vivado's ``report_utilization``, at "LUT as Memory".

LUTs of UltraScale+ are the same six-input kind, and its block RAM comes in the same units of 36 Kbit. UltraRAM isn't
counted.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from bitloom.golden.names import check_name, shown
from bitloom.overlay.area.netlist import Resources

CLOCK_MHZ = 100.0
"""Clock of a board's design in MHz, where none is given."""
FAMILIES = {"xc7z": "zynq", "xczu": "zynqmp", "xck": "zynqmp"}
"""Family of processors by the beginning of a device's name: Zynq-7000, and Zynq UltraScale+ with Kria's modules."""

RESOURCES = {"lut": "LUT", "lutram": "LUT RAM", "ff": "FF", "bram36": "BRAM36", "dsp": "DSP"}
"""Resources of a board's device: the name of the field, and its heading in tables."""

_PART = re.compile(
    rf"(({'|'.join(FAMILIES)})[0-9]+(?:s|[a-z]{{2}})?)-?([a-z]{{3,4}}[0-9]{{2,4}})(-\w{{1,4}}(?:-[a-z])?)", re.ASCII
)
_BOARD_PART = re.compile(r"[\w.-]{1,64}:[\w.-]{1,64}:part[0-9]", re.ASCII)
_SOURCE = re.compile(r"[ -~]{1,200}")


@dataclass(frozen=True)
class Board:
    """A board.

    Raises
    ------
    ValueError
        If the name is none that ``bitloom.golden.names`` allows, the part no Zynq, ``board_part`` has a version, or
        more LUTs may be memory than there are.
    """

    name: str
    """As PYNQ writes it."""
    part: str
    """Its device, with package and speed grade, as Vivado writes it."""
    lut: int
    ff: int
    bram36: float
    dsp: int
    """lut, ff, bram36, dsp: what the device has; block RAM in units of 36 Kbit."""
    lutram: int
    """How many of the LUTs may be memory."""
    board_part: str
    """Vivado's name of the board's files without their version, which differs between releases."""
    board_files: str
    """Where to get these files: some come from the boards' makers, not from Vivado's installer."""

    def __post_init__(self) -> None:
        check_name("board", self.name)
        where = f"board {self.name}"
        if not _PART.fullmatch(self.part):
            rule = "part must be a Zynq with package and speed grade, such as xc7z020clg400-1"
            raise ValueError(f"{where}: {rule}, got {shown(self.part)}")
        if not _BOARD_PART.fullmatch(self.board_part):
            rule = "board_part must be vendor:board:part0, without a version"
            raise ValueError(f"{where}: {rule}, got {shown(self.board_part)}")
        if not _SOURCE.fullmatch(self.board_files):
            rule = "board_files must be 1..200 printable ASCII characters"
            raise ValueError(f"{where}: {rule}, got {shown(self.board_files)}")
        if self.lutram > self.lut:
            raise ValueError(f"{where}: lutram must be <= {self.lut}, its LUTs, got {self.lutram}")

    @property
    def device(self) -> tuple[str, str, str]:
        """Device, package and speed grade."""
        match = _PART.fullmatch(self.part)
        assert match is not None
        return match[1], match[3], match[4]

    @property
    def arch(self) -> str:
        """Its family of processors: "zynq" (Zynq-7000) or "zynqmp" (Zynq UltraScale+)."""
        match = _PART.fullmatch(self.part)
        assert match is not None
        return FAMILIES[match[2]]

    def to_dict(self) -> dict[str, Any]:
        """JSON data: what a board's file says."""
        texts = {key: getattr(self, key) for key in ("name", "part", "board_part", "board_files")}
        return {**texts, "budget": self.sizes}

    @property
    def sizes(self) -> dict[str, float]:
        """How many of each of RESOURCES the device has."""
        return {key: getattr(self, key) for key in RESOURCES}

    def shares(self, area: Resources) -> dict[str, float]:
        """Share of each of RESOURCES that a design of that area takes, 1 for all of it."""
        return {key: size / self.sizes[key] for key, size in taken(area).items()}

    def holds(self, area: Resources) -> bool:
        """Whether a design of that area fits."""
        return max(self.shares(area).values()) <= 1


STORE = "https://github.com/Xilinx/XilinxBoardStore"
"""Where Vivado's own collection of board files lies."""
DIGILENT = "https://github.com/Digilent/vivado-boards"
"""Digilent's board files, which Vivado's store has, too."""
PYNQ_Z2 = Board(
    "Pynq-Z2",
    "xc7z020clg400-1",
    53_200,
    106_400,
    140,
    220,
    17_400,
    board_part="tul.com.tw:pynq-z2:part0",
    board_files=STORE,
)

BOARDS = {
    board.name: board
    for board in (
        replace(
            PYNQ_Z2,
            name="Pynq-Z1",
            board_part="www.digilentinc.com:pynq-z1:part0",
            board_files="https://github.com/cathalmccabe/pynq-z1_board_files",
        ),
        PYNQ_Z2,
        replace(PYNQ_Z2, name="Zybo-Z7-20", board_part="digilentinc.com:zybo-z7-20:part0", board_files=DIGILENT),
        replace(PYNQ_Z2, name="Arty-Z7-20", board_part="digilentinc.com:arty-z7-20:part0", board_files=DIGILENT),
        Board(
            "Cora-Z7-07S",
            "xc7z007sclg400-1",
            14_400,
            28_800,
            50,
            66,
            6_000,
            board_part="digilentinc.com:cora-z7-07s:part0",
            board_files=DIGILENT,
        ),
        Board(
            "AUP-ZU3",
            "xczu3eg-sfvc784-2-e",
            70_560,
            141_120,
            216,
            360,
            28_800,
            board_part="realdigital.org:aup-zu3-8gb:part0",
            board_files="https://github.com/RealDigitalOrg/aup-zu3-bsp",
        ),
        Board(
            "Ultra96",
            "xczu3eg-sbva484-1-i",
            70_560,
            141_120,
            216,
            360,
            28_800,
            board_part="avnet.com:ultra96v2:part0",
            board_files="https://github.com/Avnet/bdf",
        ),
        Board(
            "KV260",
            "xck26-sfvc784-2LV-c",
            117_120,
            234_240,
            144,
            1_248,
            57_600,
            board_part="xilinx.com:kv260_som:part0",
            board_files=STORE,
        ),
        Board(
            "KR260",
            "xck26-sfvc784-2LV-c",
            117_120,
            234_240,
            144,
            1_248,
            57_600,
            board_part="xilinx.com:kr260_som:part0",
            board_files=STORE,
        ),
        Board(
            "ZCU104",
            "xczu7ev-ffvc1156-2-e",
            230_400,
            460_800,
            312,
            1_728,
            101_760,
            board_part="xilinx.com:zcu104:part0",
            board_files=STORE,
        ),
        Board(
            "RFSoC4x2",
            "xczu48dr-ffvg1517-2-e",
            425_280,
            850_560,
            1_080,
            4_272,
            213_600,
            board_part="realdigital.org:rfsoc4x2:part0",
            board_files="https://github.com/RealDigitalOrg/RFSoC4x2-BSP",
        ),
    )
}


def taken(area: Resources) -> dict[str, float]:
    """How much of each of RESOURCES a design takes; LUT RAM is among the LUTs, and has a limit of its own."""
    return {"lut": area.device_lut, "lutram": area.lutram, "ff": area.ff, "bram36": area.bram36, "dsp": area.dsp}


def smallest_board(area: Resources) -> Board:
    """The first board, by LUTs, that holds a design of that area; the one with most LUTs where none holds it."""
    by_size = sorted(BOARDS.values(), key=lambda board: board.lut)
    return next((board for board in by_size if board.holds(area)), by_size[-1])


def how_large(holds: bool) -> str:
    """Words for the board of `smallest_board`, by whether the board holds the design."""
    return "the smallest that holds it" if holds else "the largest: too small"


def board(name: str) -> Board:
    """The board of that name, in upper or lower case.

    Raises
    ------
    ValueError
        If there is none.
    """
    for candidate in BOARDS.values():
        if candidate.name.lower() == name.lower():
            return candidate
    raise ValueError(f"board: name must be one of {', '.join(BOARDS)}, got {name!r}")
