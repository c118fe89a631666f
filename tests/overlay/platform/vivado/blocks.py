"""Stand-ins for the commands of block designs: names and options are checked, and what a script makes is recorded."""

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
    """The block design of a script. links : target -> source.  drivers : sink -> driver.  segments : (space, segment)
    -> base, bytes."""

    cells: dict[str, Cell] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    external: set[str] = field(default_factory=set)
    segments: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)


def core_of(packaged: dict[str, Any]) -> IpCore:
    """A packaged core as one of the catalogue."""
    pins, buses = [], []
    for name, bus in packaged["buses"].items():
        kind = bus["bus_type_vlnv"].split(":")[2]
        way = "O" if bus["interface_mode"] == "master" else "I"
        if kind == "clock":
            pins.append(Pin(bus["ports"]["CLK"], way, "clk"))
        elif kind == "reset":
            high = bus["parameters"].get("POLARITY") == "ACTIVE_HIGH"
            pins.append(Pin(bus["ports"]["RST"], way, "rst_high" if high else "rst"))
        elif kind == "interrupt":
            pins.append(Pin(bus["ports"]["INTERRUPT"], way, "interrupt"))
        else:
            slave = kind == "aximm" and bus["interface_mode"] == "slave"
            block = next(iter(packaged["maps"][bus["slave_memory_map_ref"]])) if slave else ""
            space = bus["master_address_space_ref"] if kind == "aximm" and not slave else ""
            if space and space not in packaged["spaces"]:
                raise VivadoError(f"{name}: no address space {space}")
            buses.append(Bus(name, kind, bus["interface_mode"], segment=block, space=space))
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

    def _handle_of(self, options: dict[str, str], kind: str, handle: str, there: bool, rules: dict[str, Any]) -> str:
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
        return self._handle_of(options, "cell", f"/{name.strip('/')}", name.strip("/") in self.design.cells, {})

    @command("get_bd_pins", "-quiet", 1)
    def get_bd_pins(self, options: dict[str, str], path: str) -> str:
        cell, name = self._part(path)
        there = name in cell.pins
        rules = {"config.freq_hz": read_only} if there and cell.pins[name].kind == "clk" else {}
        return self._handle_of(options, "pin", f"/{path.strip('/')}", there, rules)

    @command("get_bd_intf_pins", "-quiet", 1)
    def get_bd_intf_pins(self, options: dict[str, str], path: str) -> str:
        cell, name = self._part(path)
        return self._handle_of(options, "interface pin", f"/{path.strip('/')}", name in cell.buses, {})

    @command("get_bd_addr_spaces", "-quiet", 1)
    def get_bd_addr_spaces(self, options: dict[str, str], path: str) -> str:
        cell, name = self._part(path)
        there = name in {bus.space for bus in cell.buses.values() if bus.mode == "master"}
        return self._handle_of(options, "address space", f"/{path.strip('/')}", there, {})

    @command("get_bd_addr_segs", "-quiet -of_objects=")
    def get_bd_addr_segs(self, options: dict[str, str]) -> str:
        pin = self.thing(options.get("-of_objects", ""), "interface pin").handle
        cell, name = self._part(pin)
        segment = cell.buses[name].segment
        if not segment:
            raise VivadoError(f"get_bd_addr_segs: {pin} has no segments")
        return self._handle_of({}, "segment", f"{pin}/{segment}", True, {})

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
            ends[cell.buses[name].mode] = f"{cell.name}/{name}"
        if set(ends) != {"master", "slave"}:
            raise VivadoError(f"connect_bd_intf_net: {one} and {other} do not go together")
        self.design.links[ends["slave"]] = ends["master"]

    @command("connect_bd_net", "-net=", 2, 100)
    def connect_bd_net(self, options: dict[str, str], *handles: str) -> None:
        pins: dict[str, Pin] = {}
        for handle in handles:
            cell, name = self._part(self.thing(handle, "pin").handle)
            pins[f"{cell.name}/{name}"] = cell.pins[name]
        drivers = [path for path, pin in pins.items() if pin.direction == "O"]
        if len(drivers) != 1 or len(pins) != len(handles):
            raise VivadoError(f"connect_bd_net: one of the pins must drive, and none be named twice, got {drivers}")
        self.design.drivers |= {path: drivers[0] for path in pins if path != drivers[0]}

    @command("assign_bd_address", "-offset= -range= -target_address_space=", 0, 1)
    def assign_bd_address(self, options: dict[str, str], *segments: str) -> None:
        for handle in segments:
            space = self.thing(options.get("-target_address_space", ""), "address space").handle.strip("/")
            segment = self.thing(handle, "segment").handle.strip("/")
            self.design.segments[space, segment] = int(options["-offset"], 0), int(options["-range"], 0)

    @command("validate_bd_design")
    def validate_bd_design(self, options: dict[str, str]) -> None:
        for cell in self.design.cells.values():
            if cell.core.clock_pin in cell.pins:
                pin = self.things.get(f"/{cell.name}/{cell.core.clock_pin}")
                if pin:
                    hertz = float(cell.values[cell.core.clock_parameter]) * 1e6
                    pin.values["config.freq_hz"] = f"{hertz:.0f}"

    @command("save_bd_design")
    def save_bd_design(self, options: dict[str, str]) -> None:
        pass
