"""Stand-ins for the commands of block designs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .catalogue import AUTOMATION, CATALOGUE, Bus, IpCore, Pin
from .objects import Stub, Thing, VivadoError, anything, command, read_only
from .tcl import split


@dataclass
class Cell:
    """An instance. values : its parameters."""

    name: str
    vlnv: str
    core: IpCore
    values: dict[str, str]
    automated: bool = False

    @property
    def pins(self) -> dict[str, Pin]:
        """Pins that it has with its parameters."""
        return {pin.name: pin for pin in self.core.pins(self.values)}

    @property
    def buses(self) -> dict[str, Bus]:
        """The same of interfaces."""
        return {bus.name: bus for bus in self.core.buses(self.values)}


@dataclass
class Recorded:
    """What a script made. links : target -> source.  drivers : sink -> driver.  segments : (space, segment) -> base,
    bytes."""

    cells: dict[str, Cell] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    external: set[str] = field(default_factory=set)
    segments: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    validated: bool = False


def core_of(packaged: dict[str, Any]) -> IpCore:
    """A packaged core as one of the catalogue."""
    pins, buses = [], []
    clock = next(b for b in packaged["buses"].values() if "CLK" in b["ports"])
    for name, bus in packaged["buses"].items():
        kind = bus["bus_type_vlnv"].split(":")[2]
        way = "O" if bus["interface_mode"] == "master" else "I"
        if kind == "clock":
            pins.append(Pin(bus["ports"]["CLK"], way, "clk"))
        elif kind == "reset":
            high = bus["parameters"].get("POLARITY") == "ACTIVE_HIGH"
            pins.append(Pin(bus["ports"]["RST"], way, "rst_high" if high else "rst"))
        elif kind == "interrupt":
            if bus["parameters"].get("SENSITIVITY") != "LEVEL_HIGH":
                raise VivadoError(f"interrupt {name} must be LEVEL_HIGH for the interrupt controller")
            pins.append(Pin(bus["ports"]["INTERRUPT"], way, "interrupt"))
        else:
            bits = packaged["ports"][bus["ports"]["TDATA"]][1] if kind == "axis" else 0
            block = next(iter(packaged["maps"][bus["slave_memory_map_ref"]])) if kind == "aximm" else ""
            timed = clock["ports"]["CLK"] if name in clock["parameters"]["ASSOCIATED_BUSIF"].split(":") else ""
            buses.append(Bus(name, kind, bus["interface_mode"], timed, bits, block))
    parameters = {name: (value, anything) for name, value in packaged["parameters"].items()}
    return IpCore(parameters, lambda v: pins, lambda v: buses)


NO_CELL = Cell("", "", IpCore({}, lambda v: [], lambda v: []), {})


class BlockDesigns(Stub):
    """Commands of block designs; ``design`` records what they make."""

    def __init__(self) -> None:
        super().__init__()
        self.catalogue = dict(CATALOGUE)
        self.design = Recorded()
        self.design_name = ""

    @command("get_ipdefs", "-quiet -all", 0, 1)
    def get_ipdefs(self, options: dict[str, str], pattern: str = "*") -> str:
        return " ".join(vlnv for vlnv in self.catalogue if fnmatchcase(vlnv, pattern))

    @command("create_bd_design", "", 1)
    def create_bd_design(self, options: dict[str, str], name: str) -> None:
        self.thing("project")
        self.design_name = name

    @command("create_bd_cell", "-type= -vlnv=", 1)
    def create_bd_cell(self, options: dict[str, str], name: str) -> str:
        vlnv = options.get("-vlnv", "")
        if not self.design_name:
            raise VivadoError("create_bd_cell: no block design is open")
        if options.get("-type") != "ip" or vlnv not in self.catalogue:
            raise VivadoError(f"create_bd_cell: no IP core {vlnv}")
        core = self.catalogue[vlnv]
        cell = Cell(name, vlnv, core, {key: str(default) for key, (default, _) in core.parameters.items()})
        rules = {f"config.{key.lower()}": rule for key, (_, rule) in core.parameters.items()}
        self.new(f"/{name}", "cell", rules)
        self.design.cells[name] = cell
        return f"/{name}"

    def set_thing(self, thing: Thing, name: str, value: str) -> None:
        super().set_thing(thing, name, value)
        if thing.kind == "cell":
            cell = self.design.cells[thing.handle.strip("/")]
            key = next(key for key in cell.values if f"config.{key}".lower() == name.lower())
            cell.values[key] = value
            self.design.validated = False

    def _found(self, options: dict[str, str], kind: str, handle: str, there: bool, rules: dict[str, Any]) -> str:
        if not there:
            if "-quiet" in options:
                return ""
            raise VivadoError(f"no {kind} {handle}")
        if handle not in self.things:
            self.new(handle, kind, rules)
        return handle

    def _part(self, path: str) -> tuple[Cell, str]:
        """The cell and the name in the path of a pin or interface."""
        cell, _, name = path.strip("/").partition("/")
        return self.design.cells.get(cell, NO_CELL), name

    @command("get_bd_cells", "-quiet", 1)
    def get_bd_cells(self, options: dict[str, str], name: str) -> str:
        return self._found(options, "cell", f"/{name.strip('/')}", name.strip("/") in self.design.cells, {})

    @command("get_bd_pins", "-quiet", 1)
    def get_bd_pins(self, options: dict[str, str], path: str) -> str:
        cell, name = self._part(path)
        there = name in cell.pins
        rules = {"config.freq_hz": read_only} if there and cell.pins[name].kind == "clk" else {}
        return self._found(options, "pin", f"/{path.strip('/')}", there, rules)

    @command("get_bd_intf_pins", "-quiet", 1)
    def get_bd_intf_pins(self, options: dict[str, str], path: str) -> str:
        cell, name = self._part(path)
        return self._found(options, "interface pin", f"/{path.strip('/')}", name in cell.buses, {})

    @command("get_bd_addr_spaces", "-quiet", 1)
    def get_bd_addr_spaces(self, options: dict[str, str], path: str) -> str:
        there = path.strip("/") in {space for space, *_ in self._masters()}
        return self._found(options, "address space", f"/{path.strip('/')}", there, {})

    @command("get_bd_addr_segs", "-quiet -of_objects=")
    def get_bd_addr_segs(self, options: dict[str, str]) -> str:
        pin = self.thing(options.get("-of_objects", ""), "interface pin").handle
        cell, name = self._part(pin)
        segment = cell.buses[name].segment
        if not segment:
            raise VivadoError(f"get_bd_addr_segs: {pin} has no segments")
        return self._found({}, "segment", f"{pin}/{segment}", True, {})

    @command("apply_bd_automation", "-rule= -config=", 1)
    def apply_bd_automation(self, options: dict[str, str], handle: str) -> None:
        cell = self.design.cells[self.thing(handle, "cell").handle.strip("/")]
        module, known = AUTOMATION.get(options.get("-rule", ""), ("", set()))
        if cell.vlnv.split(":")[2] != module:
            raise VivadoError(f"apply_bd_automation: rule {options.get('-rule')} is not for {cell.vlnv}")
        words = split(options.get("-config", ""))
        config = dict(zip(words[::2], words[1::2]))
        if set(config) - known:
            raise VivadoError(f"apply_bd_automation: unknown {', '.join(sorted(set(config) - known))}")
        if config.get("apply_board_preset") == "1":
            if not self.thing("project").values.get("board_part"):
                raise VivadoError("apply_bd_automation: the project has no board")
            cell.values.update({key: str(value) for key, value in cell.core.preset.items()})
        for name in filter(None, config.get("make_external", "").split(", ")):
            if name not in cell.buses:
                raise VivadoError(f"apply_bd_automation: no interface {name}")
            self.design.external.add(f"{cell.name}/{name}")

    @command("connect_bd_intf_net", "-boundary_type= -intf_net=", 2)
    def connect_bd_intf_net(self, options: dict[str, str], one: str, other: str) -> None:
        if options.get("-boundary_type", "upper") not in ("upper", "lower", "both"):
            raise VivadoError("connect_bd_intf_net: -boundary_type must be upper, lower or both")
        ends = {}
        for handle in (one, other):
            cell, name = self._part(self.thing(handle, "interface pin").handle)
            ends[cell.buses[name].mode] = (cell.buses[name], f"{cell.name}/{name}")
        if set(ends) != {"master", "slave"} or ends["master"][0].kind != ends["slave"][0].kind:
            raise VivadoError(f"connect_bd_intf_net: {one} and {other} do not go together")
        source, target = ends["master"][1], ends["slave"][1]
        if target in self.design.links or source in self.design.links.values():
            raise VivadoError(f"connect_bd_intf_net: {one} or {other} is connected already")
        self.design.links[target] = source
        self.design.validated = False

    @command("connect_bd_net", "-net=", 2, 100)
    def connect_bd_net(self, options: dict[str, str], *handles: str) -> None:
        pins: dict[str, Pin] = {}
        for handle in handles:
            cell, name = self._part(self.thing(handle, "pin").handle)
            pins[f"{cell.name}/{name}"] = cell.pins[name]
        drivers = [path for path, pin in pins.items() if pin.direction == "O"]
        if len(drivers) != 1 or len(pins) != len(handles):
            raise VivadoError(f"connect_bd_net: one of the pins must drive, and none be named twice, got {drivers}")
        kind = pins[drivers[0]].kind
        for path, pin in pins.items():
            if path == drivers[0]:
                continue
            if path in self.design.drivers:
                raise VivadoError(f"connect_bd_net: {path} is driven by {self.design.drivers[path]} already")
            if pin.kind != kind:
                raise VivadoError(f"connect_bd_net: {drivers[0]} ({kind}) cannot drive {path} ({pin.kind})")
            self.design.drivers[path] = drivers[0]
        self.design.validated = False

    def _masters(self) -> Iterator[tuple[str, str, Cell]]:
        """Address spaces, and the interfaces that have them."""
        for cell in self.design.cells.values():
            for bus in cell.buses.values():
                if bus.space and bus.mode == "master":
                    yield f"{cell.name}/{bus.space}", f"{cell.name}/{bus.name}", cell

    def _reached(self, source: str) -> Iterator[str]:
        """Segments that a master's interface reaches, through interconnects."""
        for target, master in self.design.links.items():
            if master != source:
                continue
            cell, name = self._part(target)
            if cell.buses[name].segment:
                yield f"{target}/{cell.buses[name].segment}"
            else:
                for bus in cell.buses.values():
                    if bus.mode == "master" and bus.kind == "aximm":
                        yield from self._reached(f"{cell.name}/{bus.name}")

    @command("assign_bd_address", "-offset= -range= -target_address_space=", 0, 1)
    def assign_bd_address(self, options: dict[str, str], *segments: str) -> None:
        if not segments:
            self._assign_the_rest()
            return
        space = self.thing(options.get("-target_address_space", ""), "address space").handle.strip("/")
        segment = self.thing(segments[0], "segment").handle.strip("/")
        base, size = int(options["-offset"], 0), int(options["-range"], 0)
        masters = {name: (bus, cell) for name, bus, cell in self._masters() if segment in set(self._reached(bus))}
        if space not in masters:
            raise VivadoError(f"assign_bd_address: {space} does not reach {segment}")
        low, high = masters[space][1].core.window
        if size < 4096 or size & (size - 1) or base % size or not low <= base <= base + size <= high:
            raise VivadoError(f"assign_bd_address: {segment} cannot be at {base:#x}, {size:#x} bytes")
        for (other, name), (start, length) in self.design.segments.items():
            if other == space and (name == segment or (base < start + length and start < base + size)):
                raise VivadoError(f"assign_bd_address: {segment} overlaps {name}")
        self.design.segments[space, segment] = base, size

    def _assign_the_rest(self) -> None:
        """The memory where the processor has it; registers that are left anywhere, which a test would see."""
        for space, bus, _ in self._masters():
            for segment in self._reached(bus):
                if (space, segment) not in self.design.segments:
                    self.design.segments[space, segment] = (0, 0x2000_0000) if "DDR" in segment else (-1, 0)

    @command("validate_bd_design")
    def validate_bd_design(self, options: dict[str, str]) -> None:
        linked = {*self.design.links, *self.design.links.values(), *self.design.external}
        wired = {*self.design.drivers, *self.design.drivers.values()}
        for cell in self.design.cells.values():
            for name, pin in cell.pins.items():
                if pin.needed and pin.direction == "I" and f"{cell.name}/{name}" not in wired:
                    raise VivadoError(f"pin {cell.name}/{name} is not connected")
            for name in cell.buses:
                if f"{cell.name}/{name}" not in linked:
                    raise VivadoError(f"interface {cell.name}/{name} is not connected")
        for path in (*self.design.drivers, *self.design.links):
            cell, name = self._part(path)
            if name not in {**cell.pins, **cell.buses}:
                raise VivadoError(f"{path} is connected, and the parameters took it away")
        for target, source in self.design.links.items():
            self._check_link(target, source)
        for space, bus, _ in self._masters():
            for segment in self._reached(bus):
                if (space, segment) not in self.design.segments:
                    raise VivadoError(f"{segment} has no address in {space}")
        for cell in self.design.cells.values():
            if cell.core.clock_pin in cell.pins:
                pin = self.things.get(f"/{cell.name}/{cell.core.clock_pin}")
                if pin:
                    hertz = float(cell.values[cell.core.clock_parameter]) * 1e6
                    pin.values["config.freq_hz"] = f"{hertz:.0f}"
        self.design.validated = True

    def _check_link(self, target: str, source: str) -> None:
        (left, a), (right, b) = self._part(source), self._part(target)
        one, other = left.buses[a], right.buses[b]
        clocks = {self.design.drivers.get(f"{c.name}/{bus.clock}") for c, bus in ((left, one), (right, other))}
        if len(clocks) != 1 or None in clocks:
            raise VivadoError(f"{source} and {target} must have one clock")
        if one.bits != other.bits:
            raise VivadoError(f"{source} has {one.bits} bits and {target} {other.bits}")

    @command("save_bd_design")
    def save_bd_design(self, options: dict[str, str]) -> None:
        if not self.design.validated:
            raise VivadoError("save_bd_design: the design is not validated")
