"""Memories on a Xilinx 7-series device, as Yosys maps them (memory_libmap with the libraries brams_xc6v and
lutrams_xc5v): each memory of hls_gen/memory.py becomes block RAM or LUT RAM, by a rule that is computed here.

Every kind of RAM has units, a width and a depth each. What a memory costs in units of a kind, by Yosys' own count:

    units x fixed cost + width-proportional cost + 1/2 (banks - 1) x width + 1/2 banks (where there are several banks)

and the cheapest kind is taken; one with asynchronous reads can't be block RAM. Source: Yosys,
passes/memory/memory_libmap.cc (MemMapping::handle_geom) and techlibs/xilinx/*.txt; tests/overlay/test_explore_memory.py
compares with Yosys.
"""

from dataclasses import dataclass
from functools import lru_cache

from ..netlist import Resources


@dataclass(frozen=True)
class Kind:
    """A kind of RAM. ``cost`` of a unit, of which ``scaled`` is charged by used width; ``pad``: used width is a
    multiple of it; then what a unit is made of."""

    width: int
    depth: int
    cost: float
    scaled: float
    pad: int
    lutram: int = 0
    bram36: float = 0


LUT_RAM = (
    Kind(6, 32, 8, 7, 6, lutram=4),  # RAM32M
    Kind(3, 64, 8, 7, 3, lutram=4),  # RAM64M
    Kind(4, 32, 8, 8, 4, lutram=8),  # 4 x RAM32X1D
    Kind(2, 64, 8, 8, 2, lutram=8),
    Kind(1, 128, 8, 8, 1, lutram=4),  # RAM128X1D
)
BLOCK_RAM = (
    *(Kind(w, 512 * 36 // w if w > 8 else 16384 // w, 129, 0, min(w, 9), bram36=0.5) for w in (1, 2, 4, 9, 18, 36)),
    *(Kind(w, 512 * 72 // w if w > 8 else 32768 // w, 257, 0, min(w, 9), bram36=1) for w in (1, 2, 4, 9, 18, 36, 72)),
)
RAM32X1D = LUT_RAM[2]
RAM64X1D = LUT_RAM[3]
STYLES = ("auto", "block", "distributed")


@dataclass(frozen=True)
class Mapped:
    """What a memory becomes. banks : units one behind the other, between which a multiplexer chooses."""

    resources: Resources
    block: bool
    banks: int


@lru_cache(maxsize=None)
def mapped(width: int, depth: int, latency: int = 1, style: str = "auto") -> Mapped:
    """A memory of ``depth`` words of ``width`` bits with one write and one read port of that latency, 0 or 1.

    style : "auto", "block" or "distributed", the attribute ram_style.
    """
    if style not in STYLES:
        raise ValueError(f"memory: style must be one of {', '.join(STYLES)}, got {style!r}")
    kinds = (LUT_RAM if style != "block" or not latency else ()) + (
        BLOCK_RAM if latency and style != "distributed" else ()
    )
    return min((_as(kind, width, depth, latency) for kind in kinds), key=lambda found: found[0])[1]


def _as(kind: Kind, width: int, depth: int, latency: int) -> tuple[float, Mapped]:
    """(cost, what it becomes) as that kind."""
    banks = -(-depth // kind.depth)
    units = -(-banks * (-(-width // kind.pad) * kind.pad) // kind.width)
    cost = (kind.cost - kind.scaled) * units + kind.scaled * banks * width / kind.width
    cost += (banks - 1) * width / 2 + (banks / 2 if banks > 1 else 0)
    lutram = kind.lutram * units
    if kind in (RAM32X1D, RAM64X1D):
        lutram = 2 * banks * width
    choose, address = 0.0, (banks - 1).bit_length()
    if banks > 1:
        choose = width * _mux(banks) + banks
    ff = (width if kind.lutram else 0) + (address if not kind.lutram else 0) if latency else 0
    found = Resources(lut=round(choose), ff=ff, lutram=lutram, bram36=kind.bram36 * units)
    return cost, Mapped(found, not kind.lutram, banks)


def _mux(inputs: int) -> float:
    """LUTs of a multiplexer of one bit: LUT6 with MUXF7 and MUXF8, of 4, 8, 16 inputs; beyond, a tree."""
    if inputs <= 4:
        return 1
    return inputs / 4 + (0 if inputs <= 16 else inputs / 16)
