"""Memories on a Xilinx 7-series device, as Yosys maps them: by a rule that is computed here.

Each memory of hls_gen/rtl/primitives/memory.py becomes block RAM or LUT RAM (memory_libmap with the libraries
brams_xc6v and lutrams_xc5v). Every kind of RAM has units of a width and a depth. What a memory costs in units of a
kind, by Yosys' own count:

    units x fixed cost + width-proportional cost + 1/2 (banks - 1) x width + 1/2 banks (where there are several banks)

The cheapest kind is taken; a memory with asynchronous reads can't be block RAM. How many LUTs choose between banks is
not exact, the rest is. Source: Yosys, passes/memory/memory_libmap.cc (MemMapping::handle_geom) and
techlibs/xilinx/*.txt; tests/overlay/area_model/test_memory.py compares with Yosys.
"""

from dataclasses import dataclass
from functools import cache

from bitloom.hls_gen.design.parts import ONE_PORT, RAM_STYLES
from bitloom.overlay.area.netlist import Resources


@dataclass(frozen=True)
class RamPrimitive:
    """A kind of RAM of the device."""

    width: int
    depth: int
    """width, depth: bits of a row and rows of a unit."""
    cost: float
    """Yosys' cost of a unit."""
    scaled: float
    """The part of the cost that goes by the used width."""
    pad: int
    """The used width is rounded up to a multiple of this."""
    lutram: int = 0
    bram36: float = 0
    """lutram, bram36: what a unit is made of: LUTs, or block RAM in units of 36 Kbit."""


LUT_RAM = (
    RamPrimitive(6, 32, 8, 7, 6, lutram=4),  # RAM32M
    RamPrimitive(3, 64, 8, 7, 3, lutram=4),  # RAM64M
)
ONE_PORT_LUT_RAM = (
    RamPrimitive(8, 32, 8, 8, 8, lutram=4),  # RAM32M, all of whose outputs are read
    RamPrimitive(1, 64, 2, 2, 1, lutram=1),  # RAM64X1S
    RamPrimitive(1, 128, 4, 4, 1, lutram=2),  # RAM128X1S
    RamPrimitive(1, 256, 8, 8, 1, lutram=4),  # RAM256X1S
)
BLOCK_RAM = (
    *(
        RamPrimitive(w, 512 * 36 // w if w > 8 else 16384 // w, 129, 0, min(w, 9), bram36=0.5)
        for w in (1, 2, 4, 9, 18, 36)
    ),
    *(
        RamPrimitive(w, 512 * 72 // w if w > 8 else 32768 // w, 257, 0, min(w, 9), bram36=1)
        for w in (1, 2, 4, 9, 18, 36, 72)
    ),
)
MOST_LOGIC = 6
"""Bits of a memory that is made of flip-flops, if Yosys may choose."""


@dataclass(frozen=True)
class MappedMemory:
    """A memory as synthesis maps it to block RAM or LUT RAM."""

    resources: Resources
    """Cells and block RAM that the memory takes."""
    block: bool
    """Whether it is block RAM."""
    banks: int
    """Units one behind the other, between which a multiplexer chooses."""


@cache
def mapped(width: int, depth: int, latency: int = 1, style: str = "auto") -> MappedMemory:
    """The memory as synthesis maps it.

    Parameters
    ----------
    width
        Bits of a row.
    depth
        Rows.
    latency
        Of the read port: 0 (asynchronous) or 1.
    style
        "auto", "block" or "distributed", with one write port and one read port; or `ONE_PORT`.

    Raises
    ------
    ValueError
        If there is no such style.
    """
    if style not in (*RAM_STYLES, ONE_PORT):
        raise ValueError(f"memory: style must be one of {', '.join(RAM_STYLES)}, got {style!r}")
    if style == "auto" and width * depth <= MOST_LOGIC:
        return MappedMemory(Resources(lut=width + 2, ff=width * (depth + latency)), False, 1)
    kinds = (LUT_RAM if style != "block" or not latency else ()) + (
        BLOCK_RAM if latency and style != "distributed" else ()
    )
    if style == ONE_PORT:
        kinds = ONE_PORT_LUT_RAM
    return _mapped_to(min(kinds, key=lambda kind: _cost(kind, width, depth)), width, depth, latency)


def _units(kind: RamPrimitive, width: int, depth: int) -> tuple[int, int]:
    """Banks, and units of all of them, of a memory in one kind of RAM."""
    banks = -(-depth // kind.depth)
    return banks, -(-banks * (-(-width // kind.pad) * kind.pad) // kind.width)


def _cost(kind: RamPrimitive, width: int, depth: int) -> float:
    """Cost of a memory in one kind of RAM."""
    banks, units = _units(kind, width, depth)
    cost = (kind.cost - kind.scaled) * units + kind.scaled * banks * width / kind.width
    return cost + ((banks - 1) * width / 2 + (banks / 2 if banks > 1 else 0))


def _mapped_to(kind: RamPrimitive, width: int, depth: int, latency: int) -> MappedMemory:
    """The memory in one kind of RAM."""
    banks, units = _units(kind, width, depth)
    ff = (width if kind.lutram else (banks - 1).bit_length()) if latency else 0
    enables = 2 * banks if kind.lutram else 1.5 * banks
    lut = 0.0 if banks == 1 else width * _choice(banks, bool(kind.lutram)) + enables
    resources = Resources(lut=round(lut), ff=ff, lutram=kind.lutram * units, bram36=kind.bram36 * units)
    return MappedMemory(resources, not kind.lutram, banks)


def _choice(banks: int, lut_ram: bool) -> float:
    """LUTs, about, that choose a bit among banks: of 4 each, and only behind LUT RAM does Yosys join them by MUXF7."""
    if banks <= 4:
        return 1
    return 1 + banks / 5 if lut_ram else -(-(banks - 1) // 3)
