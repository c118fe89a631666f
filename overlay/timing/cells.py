"""Delays of the cells of Xilinx 7 series, in ns: Artix-7, speed grade -1, slow corner.

Source: the timing files of Project X-Ray's database (CC0), artix7/timings: slicem.sdf, DSP_L.sdf and those of block
RAM. Where a file has a value for each input or each LUT of a slice, the largest is taken.
"""

import re
from collections.abc import Mapping
from typing import Any

from bitloom.overlay.area.netlist import reads

Cell = Mapping[str, Any]
"""A cell of Yosys's JSON netlist."""

LUT = 0.124
MUX = {"MUXF7": 0.193, "MUXF8": 0.104}
CARRY_FROM_CI = {"O": (0.219, 0.323, 0.239, 0.315), "CO": (0.254, 0.157, 0.229, 0.117)}
"""Delay from CI to each output of a CARRY4."""
CARRY_FROM_CYINIT = {"O": (0.510, 0.630, 0.602, 0.662), "CO": (0.561, 0.511, 0.608, 0.595)}
CARRY_FROM_S = {
    "O": ((0.228, 0.403, 0.520, 0.584), (0.210, 0.558, 0.623), (0.228, 0.330), (0.233,)),
    "CO": ((0.340, 0.434, 0.514, 0.508), (0.472, 0.554, 0.513), (0.296, 0.358), (0.354,)),
}
"""Delay from S[i] to the outputs i, i + 1, ... 3. From DI it is taken to be the same."""

FF_OUT = 0.340
FF_SETUP = {"D": 0.0, "CE": 0.109, "R": 0.552, "S": 0.552}
LUT_RAM_SETUP = {"WE": 0.654, "D": 0.311, "A": 0.248}
LUT_RAM_OUT = 1.16
"""A value that is written to a LUT RAM is seen at once by a read of the same address."""
SHIFT_REGISTER_OUT = 1.47
SHIFT_REGISTER_SETUP = {"CE": 0.654, "D": 0.173}
BLOCK_RAM_OUT = 2.454
BLOCK_RAM_OUT_REGISTERED = 0.882
BLOCK_RAM_SETUP = 0.570
"""Setup of the address; taken for the other inputs too."""

DSP_THROUGH = {"A": 3.841, "B": 3.656, "C": 1.840, "PCIN": 1.518}
"""Delay from an input to P without a register on the way. From A: that of B, and 0.185 that A's setups have more."""
DSP_OUT = {"A": 4.009, "M": 2.305, "P": 0.434}
"""Delay from the clock to P, by the last register on the way: at the inputs, behind the multiplier, at the output."""
DSP_SETUP = {"A": 0.362, "M": 1.928, "P": 3.721, "PCIN": 1.400}
"""Setup of an input, by the first register on the way; PCIN is for the register at the output."""


def is_combinational(cell: Cell) -> bool:
    """Whether outputs follow inputs without a clock. LUT RAM is read so, and written with the clock."""
    kind = cell["type"]
    if kind.startswith("DSP48"):
        return not dsp_registers(cell)
    return kind.startswith(("LUT", "INV", "MUXF", "CARRY4", "RAM32", "RAM64", "RAM128", "RAM256", "BUF"))


def is_lut_ram(cell: Cell) -> bool:
    """Whether the cell is a memory made of LUTs, but no shift register."""
    return cell["type"].startswith(("RAM32", "RAM64", "RAM128", "RAM256"))


def dsp_registers(cell: Cell) -> str:
    """Letters of the registers in a DSP that are used, in the order of the data: A, M, P."""
    return "".join(name for name in "AMP" if any(_is_set(cell, f"{letter}REG") for letter in _REGISTERS[name]))


_REGISTERS = {"A": "AB", "M": "M", "P": "P"}


def _is_set(cell: Cell, parameter: str) -> bool:
    return "1" in str(cell["parameters"].get(parameter, ""))[-2:]


def through(cell: Cell, source: tuple[str, int], target: tuple[str, int]) -> float | None:
    """Delay from an input to an output of a combinational cell, each a port and a bit; None: there is no such way."""
    kind = cell["type"]
    (port, i), (out, j) = source, target
    if kind == "CARRY4":
        return _carry(port, i, out, j)
    if kind.startswith("MUXF"):
        return MUX[kind]
    if kind.startswith("DSP48"):
        name = re.match(r"PCIN|[ABC]$", port)
        return DSP_THROUGH[name[0]] if name and out in ("P", "PCOUT") else None
    if is_lut_ram(cell):
        return LUT if reads(port, out) else None
    return LUT


def _carry(port: str, i: int, out: str, j: int) -> float | None:
    if port == "CI":
        return CARRY_FROM_CI[out][j]
    if port == "CYINIT":
        return CARRY_FROM_CYINIT[out][j]
    return CARRY_FROM_S[out][i][j - i] if j >= i else None


def clock_to_out(cell: Cell) -> float:
    """From the clock's edge to an output of a cell with a register or memory."""
    kind = cell["type"]
    if kind.startswith("RAMB"):
        return BLOCK_RAM_OUT_REGISTERED if _is_set(cell, "DOA_REG") or _is_set(cell, "DOB_REG") else BLOCK_RAM_OUT
    if kind.startswith("SRL"):
        return SHIFT_REGISTER_OUT
    if kind.startswith("DSP48"):
        return DSP_OUT[dsp_registers(cell)[-1]]
    return LUT_RAM_OUT if is_lut_ram(cell) else FF_OUT


def setup(cell: Cell, port: str) -> float | None:
    """How long before the clock's edge an input must stand; None: the clock doesn't sample the input."""
    kind = cell["type"]
    if port in ("C", "CLK", "WCLK") and not kind.startswith("DSP48"):
        return None
    if kind.startswith("RAMB"):
        return None if "CLK" in port else BLOCK_RAM_SETUP
    if kind.startswith("DSP48"):
        return _dsp_setup(cell, port)
    if kind.startswith("SRL"):
        return SHIFT_REGISTER_SETUP.get(port)
    if is_lut_ram(cell):
        return None if reads_only(port) else LUT_RAM_SETUP.get(port[0] if port != "WE" else port, 0.248)
    return FF_SETUP.get(port, 0.0)


def reads_only(port: str) -> bool:
    """Whether a port of LUT RAM is an address that is read, not written. The last address port of each is both."""
    return re.fullmatch(r"ADDR[A-C]\d*|ADDR[E-G]\d*|DPRA\d*", port) is not None


def _dsp_setup(cell: Cell, port: str) -> float | None:
    registers = dsp_registers(cell)
    if port == "PCIN":
        return DSP_SETUP["PCIN"] if "P" in registers else None
    return DSP_SETUP[registers[0]] if port in ("A", "B", "C", "D") else None
