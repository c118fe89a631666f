"""A netlist of Xilinx 7-series cells, as Yosys writes it as JSON: what it is made of, and its longest paths.

Levels of logic between two registers:

    LUT, inverter, asynchronous read of LUT RAM   1
    entry to a carry chain (CARRY4)               1, and for each further CARRY4 of the chain 1/4
    MUXF7, MUXF8                                  0
    DSP48 without a register inside               4

The sum is rounded down; the quarter is there because four CARRY4 take about as long as a LUT with its wire. A path
begins and ends at flip-flops, block RAM, shift registers and DSPs with a register, and may end at the write port of LUT
RAM. Paths from and to the ports of the module don't count.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

QUARTERS = {"LUT": 4, "INV": 4, "MUXF": 0, "RAM": 4, "CARRY4": 4, "DSP": 16, "BUF": 0}
"""Quarter levels from an input to an output, by the beginning of the cell's type."""

LUT_RAM = {
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
    "RAM128X1D": 4,
    "RAM256X1D": 8,
    "SRL16E": 1,
    "SRLC16E": 1,
    "SRLC32E": 1,
    "RAM32X1S": 1,
    "RAM64X1S": 1,
    "RAM128X1S": 2,
    "RAM256X1S": 4,
}
"""LUTs in which a memory cell sits."""

Cells = Mapping[str, Any]
"""The cells of a module, by name."""


@dataclass(frozen=True)
class Resources:
    """Cells of a device that a design takes."""

    lut: int = 0
    """LUTs of logic as Yosys makes them: each has one function."""
    ff: int = 0
    """Flip-flops."""
    bram36: float = 0
    """Block RAM in units of 36 Kbit."""
    lutram: int = 0
    """LUTs used as memory or shift register; they are not in ``lut``."""
    dsp: int = 0
    """DSP blocks."""
    carry4: int = 0
    """Carry chains' cells."""
    pairs: int = 0
    """LUTs of logic that a device saves, as it puts two functions into one LUT (`bitloom.overlay.area.pairing`)."""

    @property
    def paired_lut(self) -> int:
        """LUTs of logic where a LUT holds two functions."""
        return self.lut - self.pairs

    @property
    def device_lut(self) -> int:
        """LUTs as a device counts them: those of logic in pairs, and those of memory."""
        return self.lut - self.pairs + self.lutram

    @property
    def figures(self) -> dict[str, float]:
        """The figures that files and tables have of an area, by their names."""
        return {
            "lut": self.lut,
            "paired_lut": self.paired_lut,
            "lutram": self.lutram,
            "ff": self.ff,
            "bram36": self.bram36,
            "dsp": self.dsp,
        }

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values())))

    def __mul__(self, times: int) -> "Resources":
        return Resources(*(times * a for a in asdict(self).values()))


@dataclass(frozen=True)
class LogicPath:
    """A path between two registers."""

    levels: int
    """Levels of logic, rounded down."""
    start: str
    end: str
    """start, end: names of the registers."""
    through: tuple[str, ...] = ()
    """Named nets on the path."""


def resources(cells: Counter[str]) -> Resources:
    """Resources of cells, counted by type. Types that are no Xilinx cells (instances of modules) don't count."""
    lut = sum(n for kind, n in cells.items() if re.fullmatch(r"LUT[1-6]|INV", kind))
    return Resources(
        lut=lut,
        ff=sum(n for kind, n in cells.items() if re.fullmatch(r"FD[RSCP]E(_1)?", kind)),
        bram36=sum(n / (1 if "36" in kind else 2) for kind, n in cells.items() if kind.startswith("RAMB")),
        lutram=sum(n * LUT_RAM[kind] for kind, n in cells.items() if kind in LUT_RAM),
        dsp=sum(n for kind, n in cells.items() if kind.startswith("DSP48")),
        carry4=cells["CARRY4"],
    )


def sized_name(module: str, values: Mapping[str, int]) -> str:
    """Name of a module with the values of its parameters, ``lut_ram #(DEPTH = 4, WIDTH = 25)``; the bare name of one
    without parameters."""
    given = ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))
    return f"{module} #({given})" if given else module


def module_name(name: str, module: Mapping[str, Any]) -> str:
    """The `sized_name` of a module of the netlist, which Yosys calls ``name``."""
    values = {key: int(value, 2) for key, value in module.get("parameter_default_values", {}).items()}
    return sized_name(module["attributes"].get("hdlname", name), values)


def is_cell(module: Mapping[str, Any]) -> bool:
    """Whether a module of the netlist is a cell of the library, not a module of ours."""
    return bool({"blackbox", "whitebox", "abc9_box"} & set(module["attributes"]))


def count(module: Mapping[str, Any]) -> Counter[str]:
    """Cells of a module of the netlist, counted by type."""
    return Counter(cell["type"] for cell in module["cells"].values())


def _kind(cell: Mapping[str, Any]) -> str:
    """Kind of a combinational cell, as in QUARTERS (LUT RAM is both); "" for all others."""
    kind = cell["type"]
    if kind.startswith("DSP48"):
        inside = ("PREG", "MREG", "AREG", "BREG")
        return "" if any(re.search("1", str(cell["parameters"].get(name, ""))[-2:]) for name in inside) else "DSP"
    if kind.startswith("RAMB"):
        return ""
    return next((known for known in QUARTERS if kind.startswith(known)), "")


def ports(cell: Mapping[str, Any], direction: str) -> Iterator[tuple[str, int, int]]:
    """Port, number of the bit in it and wire, of each bit of the cell's inputs or outputs that is no constant."""
    for port, wires in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            yield from ((port, bit, wire) for bit, wire in enumerate(wires) if isinstance(wire, int))


def _arcs(cell: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """From wire, to wire and quarter levels of each path through a combinational cell."""
    kind = _kind(cell)
    for port, _, wire in ports(cell, "input"):
        quarters = 1 if kind == "CARRY4" and port == "CI" else QUARTERS[kind]
        for out, _, to in ports(cell, "output"):
            if kind != "RAM" or reads(port, out):
                yield wire, to, quarters


def reads(port: str, out: str) -> bool:
    """Whether that port of LUT RAM is the address of what stands at that output."""
    if port.startswith("ADDR"):
        return out == f"DO{port[4]}"
    if port.startswith("DPRA"):
        return out == "DPO"
    return re.fullmatch(r"A\d*", port) is not None and out in ("O", "SPO")


def longest_paths(module: Mapping[str, Any], limit: int = 10, least: int = 0) -> list[LogicPath]:
    """The longest path to each register, the longest first.

    Bits of one register count as one, and of the paths between the same two registers only the longest is told.

    Parameters
    ----------
    module
        A module of the netlist; it must be flat.
    limit
        Paths at most.
    least
        Levels that a path must have.
    """
    cells = module["cells"]
    names = wire_names(module)
    starts: dict[int, str] = {}
    arcs: dict[int, list[tuple[int, int]]] = {}
    waiting: Counter[int] = Counter()
    for name, cell in cells.items():
        kind = _kind(cell)
        if not kind:
            starts.update((wire, register_name(name, cell, names)) for _, _, wire in ports(cell, "output"))
            continue
        for wire, to, quarters in _arcs(cell):
            arcs.setdefault(wire, []).append((to, quarters))
            waiting[to] += 1
    arrival, came = _arrivals(starts, arcs, waiting)
    paths: dict[tuple[str, str], LogicPath] = {}
    for name, cell in cells.items():
        kind = _kind(cell)
        if kind and kind != "RAM":
            continue
        end = register_name(name, cell, names)
        for port, _, wire in ports(cell, "input"):
            if wire not in arrival or (kind == "RAM" and re.fullmatch(r"ADDR[A-C]\d*|DPRA\d*", port)):
                continue
            levels = arrival[wire] // 4
            path = _path(wire, came)
            key = (starts[path[0]], end)
            if levels >= least and (key not in paths or levels > paths[key].levels):
                through = [names[w] for w in path[1:] if w in names and not names[w].startswith("$")]
                paths[key] = LogicPath(levels, *key, tuple(dict.fromkeys(through)))
    return sorted(paths.values(), key=lambda p: (-p.levels, p.start, p.end))[:limit]


def _arrivals(
    starts: Mapping[int, str], arcs: Mapping[int, list[tuple[int, int]]], waiting: Counter[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Longest path to each wire from a register, in quarter levels; and the wire before it on that path."""
    arrival = dict.fromkeys(starts, 0)
    came: dict[int, int] = {}
    ready = [wire for wire in arcs if not waiting[wire]]
    while ready:
        wire = ready.pop()
        for to, quarters in arcs.get(wire, ()):
            if wire in arrival and arrival[wire] + quarters > arrival.get(to, -1):
                arrival[to] = arrival[wire] + quarters
                came[to] = wire
            waiting[to] -= 1
            if not waiting[to]:
                ready.append(to)
    return arrival, came


def _path(wire: int, came: Mapping[int, int]) -> list[int]:
    """The wires of the longest path to a wire, from a register on."""
    path = [wire]
    while path[-1] in came:
        path.append(came[path[-1]])
    return path[::-1]


def wire_names(module: Mapping[str, Any]) -> dict[int, str]:
    """A name for each wire: the one that a person gave, the shortest of them."""
    names: dict[int, str] = {}
    for name, net in module["netnames"].items():
        if net["hide_name"]:
            continue
        for wire in net["bits"]:
            if isinstance(wire, int) and (wire not in names or (len(name), name) < (len(names[wire]), names[wire])):
                names[wire] = name
    return names


def register_name(name: str, cell: Mapping[str, Any], names: Mapping[int, str]) -> str:
    """Name of a register: of the net at a flip-flop's output, or of the cell itself, without bit numbers."""
    if cell["type"].startswith("FD"):
        return names.get(cell["connections"]["Q"][0], name)
    return re.sub(r"(\.\d+)+(_\w+)?$", "", name)
