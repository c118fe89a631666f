"""Longest paths in ns, worked out by hand on small netlists."""

import math
from typing import Any

import pytest

from bitloom.overlay.timing import cells
from bitloom.overlay.timing.analysis import TimedPath, timed_paths
from bitloom.overlay.timing.wires import WireModel
from tests.overlay.area.test_area import lut, netlist

WIRES = WireModel(base=0.3, fan_out=0.1)
NONE = WireModel(base=0, fan_out=0)


def between(*middle: tuple[str, dict[str, list[Any]]], end: int, wires: WireModel = NONE) -> list[TimedPath]:
    """Paths from a flip-flop at net 1 to one at net ``end``."""
    cells = {"start": ("FDRE", {"D": [90], "Q": [1]})}
    cells |= {f"cell_{k}": cell for k, cell in enumerate(middle)} | {"end": ("FDRE", {"D": [end], "Q": [92]})}
    return timed_paths(netlist(cells, {"start": 1, "end": 92}), wires)


def test_cells_of_a_path_add_up() -> None:
    (path,) = between(lut(1, 2), lut(2, 3), ("MUXF7", {"I0": [3], "I1": ["0"], "O": [4]}), end=4)
    assert path.ns == path.cells_ns == pytest.approx(0.340 + 2 * 0.124 + 0.193)
    assert (path.start, path.end) == ("start", "end")


def test_wires_go_by_fan_out_and_by_the_size_of_the_design() -> None:
    """From the flip-flop to two LUTs, from one of these to the other; the last one sits before the flip-flop."""
    (path,) = between(lut(1, 2), lut(1, 2, 3), end=3, wires=WIRES)
    size = (2 / 1000) ** 0.15
    assert path.fan_outs == (2, 1)
    assert path.ns == pytest.approx(0.340 + 2 * 0.124 + size * (0.3 + 0.1 * math.log2(2) + 0.3))
    assert path.ns - path.cells_ns == pytest.approx(size * 0.7)


def test_a_carry_chain_goes_by_its_arcs_without_wires() -> None:
    low = ("CARRY4", {"CI": ["0"], "S": [2, "0", "0", "0"], "CO": [10, 11, 12, 13]})
    high = ("CARRY4", {"CI": [13], "S": ["0", "0", "0", "0"], "O": [20, 21, 22, 23]})
    start, end = ("FDRE", {"D": [90], "Q": [1]}), ("FDRE", {"D": [21], "Q": [92]})
    module = netlist({"start": start, "lut": lut(1, 2), "low": low, "high": high, "end": end})
    module["cells"]["high"]["port_directions"]["O"] = "output"
    (path,) = timed_paths(module, WIRES)
    assert path.fan_outs == (1,)
    assert path.cells_ns == pytest.approx(0.340 + 0.124 + 0.508 + 0.323)


def test_memories_and_multipliers_begin_and_end_paths() -> None:
    ram = ("RAMB18E1", {"ADDRARDADDR": [2], "DO": [3], "CLKARDCLK": [99]})
    start, end = ("FDRE", {"D": [90], "Q": [1]}), ("FDRE", {"D": [4], "Q": [92]})
    mult = ("DSP48E1", {"A": [3], "B": [1], "P": [4]})
    cells = {"start": start, "lut": lut(1, 2), "ram": ram, "mult": mult, "end": end}
    module = netlist(cells, mult={"MREG": "1", "PREG": "1"}, ram={"DOA_REG": "0" * 32})
    paths = {(p.start, p.end): p.ns for p in timed_paths(module, NONE)}
    to_memory = {("start", "ram"): 0.340 + 0.124 + 0.570, ("ram", "mult"): 2.454 + 1.928}
    assert paths == pytest.approx({**to_memory, ("start", "mult"): 0.340 + 1.928, ("mult", "end"): 0.434})


def test_lut_ram_is_read_like_a_lut_and_written_with_the_clock() -> None:
    ram = ("RAM32M", {"ADDRA": [1], "ADDRD": [1], "DIA": [2], "DOA": [3], "WCLK": [99]})
    start, end = ("FDRE", {"D": [90], "Q": [1]}), ("FDRE", {"D": [3], "Q": [92]})
    cells = {"start": start, "lut": lut(1, 2), "ram": ram, "end": end}
    paths = {(p.start, p.end): p.ns for p in timed_paths(netlist(cells), NONE)}
    assert paths == pytest.approx({("start", "ram"): 0.340 + 0.124 + 0.311, ("ram", "end"): 1.16})
    cells |= {f"lut_{k}": lut(k, k + 1) for k in range(10, 20)}
    cells |= {"first": lut(1, 10), "ram": ("RAM32M", {**ram[1], "ADDRA": [20]})}  # the address comes late
    late = {(p.start, p.end): p.ns for p in timed_paths(netlist(cells), NONE)}
    assert late["start", "end"] == pytest.approx(0.340 + 12 * 0.124)


def test_every_arc_of_a_carry_chain_has_a_delay() -> None:
    cell = {"type": "CARRY4"}
    for out in ("O", "CO"):
        for j in range(4):
            assert cells.through(cell, ("CI", 0), (out, j)) > 0
            assert [cells.through(cell, ("S", i), (out, j)) is not None for i in range(4)] == [i <= j for i in range(4)]
