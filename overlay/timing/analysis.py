"""The longest paths of a netlist of Xilinx 7-series cells, in ns: cells as cells.py has them, wires as wires.py does.

A path begins at the clock of a register or memory and ends at an input that the clock samples; paths from and to the
ports of the module don't count. A wire's delay depends on the net's fan-out and on what it leads to; within a slice,
along a carry chain and along a cascade of DSPs there is none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bitloom.overlay.area.netlist import Cells, ports, register_name, wire_names

from . import cells
from .wires import WireModel, is_dedicated


@dataclass(frozen=True)
class TimedPath:
    """A path between two registers."""

    ns: float
    """Its delay, with the clock-to-out of its beginning and the setup of its end."""
    cells_ns: float
    """The part of cells; the rest is wires."""
    start: str
    end: str
    """start, end: names of the registers."""
    fan_outs: tuple[int, ...] = ()
    """Inputs of each net on the path that the wire model has a delay for."""
    through: tuple[str, ...] = ()
    """Named nets on the path."""


@dataclass(frozen=True)
class _Arrival:
    """The latest arrival at a net, in ns after the clock; the part that cells took; the net before it and its inputs,
    0 where the wire is a dedicated one.
    """

    ns: float
    cells_ns: float
    before: int | None = None
    fan_out: int = 0


class _Netlist:
    """Nets of a module: who drives each and how many inputs it leads to."""

    def __init__(self, module: Mapping[str, Any]):
        self.cells: Cells = module["cells"]
        self.names = wire_names(module)
        self.driver: dict[int, Mapping[str, Any]] = {}
        self.driver_name: dict[int, str] = {}
        self.fan_out: Counter[int] = Counter()
        for name, cell in self.cells.items():
            self.driver.update((wire, cell) for _, _, wire in ports(cell, "output"))
            self.driver_name.update((wire, name) for _, _, wire in ports(cell, "output"))
            self.fan_out.update(wire for _, _, wire in ports(cell, "input"))

    def inputs(self, wire: int, sink: Mapping[str, Any], port: str) -> int:
        """Number of inputs of the net; 0 if a dedicated wire leads to ``sink``."""
        return 0 if is_dedicated(self.driver[wire], sink, port) else self.fan_out[wire]


def timed_paths(module: Mapping[str, Any], wires: WireModel, limit: int = 10) -> list[TimedPath]:
    """The longest path between each two registers, the longest first.

    Parameters
    ----------
    module
        A module of the netlist; it must be flat.
    wires
        Delays of wires.
    limit
        Paths at most.
    """
    netlist = _Netlist(module)
    size = sum(1 for cell in netlist.cells.values() if cell["type"].startswith("LUT"))
    arrival = _arrivals(netlist, wires, size)
    paths: dict[tuple[str, str], TimedPath] = {}
    for name, cell in netlist.cells.items():
        for port, _, wire in ports(cell, "input"):
            before = cells.setup(cell, port) if not cells.is_combinational(cell) or cells.is_lut_ram(cell) else None
            if before is None or wire not in arrival:
                continue
            came = arrival[wire]
            fan_out = netlist.inputs(wire, cell, port)
            ns = came.ns + wires.delay(fan_out, size) + before
            path = _path(wire, arrival)
            first = register_name(netlist.driver_name[path[0]], netlist.driver[path[0]], netlist.names)
            key = (first, register_name(name, cell, netlist.names))
            if key not in paths or ns > paths[key].ns:
                through = [netlist.names[w] for w in path[1:] if w in netlist.names and "$" not in netlist.names[w]]
                fan_outs = tuple(n for n in (*(arrival[w].fan_out for w in path), fan_out) if n)
                paths[key] = TimedPath(ns, came.cells_ns + before, *key, fan_outs, tuple(dict.fromkeys(through)))
    return sorted(paths.values(), key=lambda p: (-p.ns, p.start, p.end))[:limit]


def _arrivals(netlist: _Netlist, wires: WireModel, size: int) -> dict[int, _Arrival]:
    """The latest moment at each net that a register reaches."""
    arrival: dict[int, _Arrival] = {}
    arcs: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    waiting: Counter[int] = Counter()
    for cell in netlist.cells.values():
        if not cells.is_combinational(cell) or cells.is_lut_ram(cell):
            first = cells.clock_to_out(cell)
            arrival.update((wire, _Arrival(first, first)) for _, _, wire in ports(cell, "output"))
        if cells.is_combinational(cell):
            for wire, to, fan_out, delay in _arcs(netlist, cell):
                arcs[wire].append((to, fan_out, delay))
                waiting[to] += 1
    ready = [wire for wire in arcs if not waiting[wire]]
    while ready:
        wire = ready.pop()
        for to, fan_out, delay in arcs.get(wire, ()):
            came = arrival.get(wire)
            length = wires.delay(fan_out, size)
            if came and (to not in arrival or came.ns + length + delay > arrival[to].ns):
                arrival[to] = _Arrival(came.ns + length + delay, came.cells_ns + delay, wire, fan_out)
            waiting[to] -= 1
            if not waiting[to]:
                ready.append(to)
    return arrival


def _arcs(netlist: _Netlist, cell: Mapping[str, Any]) -> Iterator[tuple[int, int, int, float]]:
    """Net, next net, inputs of the net and delay of the cell, for each path through a combinational cell."""
    outputs = list(ports(cell, "output"))
    for port, i, wire in ports(cell, "input"):
        if wire not in netlist.driver:
            continue
        fan_out = netlist.inputs(wire, cell, port)
        for out, j, to in outputs:
            delay = cells.through(cell, (port, i), (out, j))
            if delay is not None:
                yield wire, to, fan_out, delay


def _path(wire: int, arrival: Mapping[int, _Arrival]) -> list[int]:
    """The nets of the longest path to a net, from a register on."""
    path = [wire]
    while (before := arrival[path[-1]].before) is not None:
        path.append(before)
    return path[::-1]
