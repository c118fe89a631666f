"""Stand-ins for the IP packager: ipx:: commands. A finished core is kept as JSON in its folder, as component.xml."""

import json
import re
from pathlib import Path
from typing import Any

from .catalogue import one_of, whole
from .objects import Stub, VivadoError, anything, command, read_only

NAME = re.compile(r"[A-Za-z_]\w*").fullmatch
ACCESS = one_of("read-only", "write-only", "read-write", "writeOnce", "read-writeOnce")
HEX = re.compile(r"(0x)?[0-9A-Fa-f]+").fullmatch
RULES: dict[str, dict[str, Any]] = {
    "core": {
        "vendor": anything, "library": anything, "name": NAME, "version": re.compile(r"\d+\.\d+").fullmatch,
        "display_name": anything, "description": anything, "supported_families": anything,
    },
    "bus": {
        "name": read_only, "bus_type_vlnv": anything, "abstraction_type_vlnv": anything,
        "interface_mode": one_of("master", "slave", "monitor"), "slave_memory_map_ref": NAME,
    },
    "port map": {"name": read_only, "physical_name": NAME},
    "bus parameter": {"name": read_only, "value": anything},
    "memory map": {"name": read_only, "description": anything},
    "address block": {
        "name": read_only, "base_address": HEX, "range": whole(1, 1 << 32), "width": one_of(32, 64),
        "usage": one_of("memory", "register", "reserved"), "access": ACCESS,
    },
    "register": {
        "name": read_only, "address_offset": HEX, "size": one_of(8, 16, 32, 64), "access": ACCESS,
        "description": anything,
    },
    "field": {
        "name": read_only, "bit_offset": whole(0, 31), "bit_width": whole(1, 32), "access": ACCESS,
        "description": anything, "modified_write_value": one_of("oneToClear", "oneToSet", "clear", "set", "modify"),
    },
    "user parameter": {
        "name": read_only, "value": anything, "value_format": one_of("string", "long", "bool", "bitString", "float"),
        "value_resolve_type": one_of("user", "generated", "immediate", "dependent"),
    },
}  # fmt: skip
SIGNALS = {
    "xilinx.com:interface:aximm": {
        f"{channel}{signal}"
        for channel, signals in {
            "AW": "ADDR PROT VALID READY", "W": "DATA STRB VALID READY", "B": "RESP VALID READY",
            "AR": "ADDR PROT VALID READY", "R": "DATA RESP VALID READY",
        }.items()
        for signal in signals.split()
    },
    "xilinx.com:interface:axis": {"TDATA", "TVALID", "TREADY", "TLAST", "TKEEP", "TSTRB", "TUSER", "TID", "TDEST"},
    "xilinx.com:signal:clock": {"CLK"},
    "xilinx.com:signal:reset": {"RST"},
    "xilinx.com:signal:interrupt": {"INTERRUPT"},
}  # fmt: skip
NEEDED = {
    "xilinx.com:interface:aximm": SIGNALS["xilinx.com:interface:aximm"] - {"AWPROT", "ARPROT", "WSTRB"},
    "xilinx.com:interface:axis": {"TDATA", "TVALID", "TREADY"},
}
PARAMETERS = {
    "xilinx.com:interface:aximm": {"PROTOCOL", "DATA_WIDTH", "ADDR_WIDTH"},
    "xilinx.com:interface:axis": {"TDATA_NUM_BYTES"},
    "xilinx.com:signal:clock": {"ASSOCIATED_BUSIF", "ASSOCIATED_RESET", "FREQ_HZ"},
    "xilinx.com:signal:reset": {"POLARITY"},
    "xilinx.com:signal:interrupt": {"SENSITIVITY"},
}
MASTER_DRIVES = {
    **{s: s[0] != "R" and s[0] != "B" for s in SIGNALS["xilinx.com:interface:aximm"]},
    **dict.fromkeys(SIGNALS["xilinx.com:interface:axis"], True),
    **{f"{channel}READY": False for channel in ("AW", "W", "AR")}, "BREADY": True, "RREADY": True, "TREADY": False,
    "INTERRUPT": True, "CLK": True, "RST": True,
}  # fmt: skip
"""Signals that an interface's master drives; the slave drives the others."""


def ports_of(verilog: str, top: str) -> dict[str, tuple[str, int]]:
    """Direction and width of the ports of a module whose header declares each, as ours do: input [8-1:0] name, ..."""
    header = re.search(rf"\bmodule\s+{top}\s*\((.*?)\);", verilog, re.DOTALL)
    if not header:
        raise VivadoError(f"module {top} has no header with ports")
    declared = re.findall(r"(in|out)put\s+(?:\[(\d+)-1:0\]\s+)?(\w+)", header[1])
    return {name: (way, int(width or 1)) for way, width, name in declared}


class Packager(Stub):
    """ipx:: commands on one core. ``core`` is what was packaged, as data."""

    def __init__(self) -> None:
        super().__init__()
        self.core: dict[str, Any] = {}
        self.children: dict[str, list[str]] = {}
        self.saved = self.checked = False

    def sources(self) -> tuple[str, str]:
        """Top module and the text of all Verilog of the project."""
        raise NotImplementedError

    def add(self, kind: str, name: str, parent: str, **values: object) -> str:
        """A new object of the core, by name, in ``parent``."""
        if not NAME(name):
            raise VivadoError(f"{name!r} is no name for a {kind}")
        thing = self.new(f"{parent}/{kind.replace(' ', '_')}:{name}", kind, RULES[kind], name=name, **values)
        self.children.setdefault(parent, []).append(thing.handle)
        return thing.handle

    def of(self, parent: str, kind: str) -> list[str]:
        """Objects of a kind in ``parent``."""
        return [h for h in self.children.get(parent, []) if self.things[h].kind == kind]

    def found(self, options: dict[str, str], kind: str, parent_kind: str, names: tuple[str, ...]) -> str:
        """Objects of a kind, by name, in the parent that -of_objects names."""
        parent = self.thing(options.get("-of_objects", ""), parent_kind).handle
        chosen = [h for h in self.of(parent, kind) if not names or self.things[h].values["name"] == names[0]]
        if not chosen and names:
            raise VivadoError(f"no {kind} {names[0]!r}")
        return " ".join(chosen)

    @command("ipx::package_project", "-root_dir= -vendor= -library= -taxonomy= -import_files -force")
    def package_project(self, options: dict[str, str]) -> None:
        top, text = self.sources()
        self.folder = Path(options["-root_dir"])
        if self.folder.exists():
            raise VivadoError(f"{self.folder} exists")
        self.folder.mkdir(parents=True)
        self.ports = ports_of(text, top)
        core = self.new("core", "core", RULES["core"], vendor=options["-vendor"], library=options["-library"], name=top)
        core.values["version"] = "1.0"
        inferred = self.add("bus", "inferred", "core")
        self.things[inferred].values["bus_type_vlnv"] = "xilinx.com:interface:aximm:1.0"
        self.add("memory map", "inferred", "core")

    @command("ipx::current_core")
    def current_core(self, options: dict[str, str]) -> str:
        return self.thing("core").handle

    @command("ipx::remove_all_bus_interface", "", 1)
    def remove_all_bus_interface(self, options: dict[str, str], core: str) -> None:
        for handle in self.of(self.thing(core, "core").handle, "bus"):
            self.children["core"].remove(handle)

    @command("ipx::get_memory_maps", "-of_objects=", 0, 1)
    def get_memory_maps(self, options: dict[str, str], *names: str) -> str:
        return self.found(options, "memory map", "core", names)

    @command("ipx::remove_memory_map", "", 2)
    def remove_memory_map(self, options: dict[str, str], name: str, core: str) -> None:
        self.children["core"].remove(self.found({"-of_objects": core}, "memory map", "core", (name,)))

    @command("ipx::add_bus_interface", "", 2)
    def add_bus_interface(self, options: dict[str, str], name: str, core: str) -> str:
        return self.add("bus", name, self.thing(core, "core").handle)

    @command("ipx::get_bus_interfaces", "-of_objects=", 0, 1)
    def get_bus_interfaces(self, options: dict[str, str], *names: str) -> str:
        return self.found(options, "bus", "core", names)

    @command("ipx::add_port_map", "", 2)
    def add_port_map(self, options: dict[str, str], name: str, bus: str) -> str:
        return self.add("port map", name, self.thing(bus, "bus").handle)

    @command("ipx::add_bus_parameter", "", 2)
    def add_bus_parameter(self, options: dict[str, str], name: str, bus: str) -> str:
        return self.add("bus parameter", name, self.thing(bus, "bus").handle)

    @command("ipx::add_memory_map", "", 2)
    def add_memory_map(self, options: dict[str, str], name: str, core: str) -> str:
        return self.add("memory map", name, self.thing(core, "core").handle)

    @command("ipx::add_address_block", "", 2)
    def add_address_block(self, options: dict[str, str], name: str, memory_map: str) -> str:
        return self.add("address block", name, self.thing(memory_map, "memory map").handle)

    @command("ipx::add_register", "", 2)
    def add_register(self, options: dict[str, str], name: str, block: str) -> str:
        return self.add("register", name, self.thing(block, "address block").handle)

    @command("ipx::get_registers", "-of_objects=", 0, 1)
    def get_registers(self, options: dict[str, str], *names: str) -> str:
        return self.found(options, "register", "address block", names)

    @command("ipx::add_field", "", 2)
    def add_field(self, options: dict[str, str], name: str, register: str) -> str:
        return self.add("field", name, self.thing(register, "register").handle)

    @command("ipx::add_user_parameter", "", 2)
    def add_user_parameter(self, options: dict[str, str], name: str, core: str) -> str:
        return self.add("user parameter", name, self.thing(core, "core").handle)

    @command("ipx::create_xgui_files", "", 1)
    def create_xgui_files(self, options: dict[str, str], core: str) -> None:
        self.thing(core, "core")

    @command("ipx::update_checksums", "", 1)
    def update_checksums(self, options: dict[str, str], core: str) -> None:
        self.thing(core, "core")

    @command("ipx::check_integrity", "", 1)
    def check_integrity(self, options: dict[str, str], core: str) -> None:
        self.core = self._data(self.thing(core, "core").handle)
        self._check_buses()
        self._check_registers()
        self.checked = True

    @command("ipx::save_core", "", 1)
    def save_core(self, options: dict[str, str], core: str) -> None:
        if not self.checked:
            raise VivadoError("a core must be checked before it is saved")
        self.core = self._data(self.thing(core, "core").handle)
        (self.folder / "component.xml").write_text(json.dumps(self.core))

    def _values(self, handle: str) -> dict[str, str]:
        return dict(self.things[handle].values)

    def _named(self, parent: str, kind: str, key: str) -> dict[str, str]:
        return {self.things[h].values["name"]: self.things[h].get(key) for h in self.of(parent, kind)}

    def _data(self, core: str) -> dict[str, Any]:
        """The core as data."""
        values = self._values(core)
        return {
            "vlnv": ":".join(values[key] for key in ("vendor", "library", "name", "version")),
            "ports": self.ports,
            "buses": {
                self.things[h].values["name"]: {
                    **self._values(h),
                    "ports": self._named(h, "port map", "physical_name"),
                    "parameters": self._named(h, "bus parameter", "value"),
                }
                for h in self.of(core, "bus")
            },
            "parameters": self._named(core, "user parameter", "value"),
            "maps": {
                self.things[m].values["name"]: {
                    self.things[b].values["name"]: {
                        **self._values(b),
                        "registers": [
                            {**self._values(r), "fields": [self._values(f) for f in self.of(r, "field")]}
                            for r in self.of(b, "register")
                        ],
                    }
                    for b in self.of(m, "address block")
                }
                for m in self.of(core, "memory map")
            },
        }

    def _check_buses(self) -> None:
        used: set[str] = set()
        for name, bus in self.core["buses"].items():
            kind = bus.get("bus_type_vlnv", "").removesuffix(":1.0")
            if kind not in SIGNALS or bus.get("abstraction_type_vlnv") != f"{kind}_rtl:1.0":
                raise VivadoError(f"bus interface {name}: no such bus type {kind}")
            if set(bus["ports"]) - SIGNALS[kind] or NEEDED.get(kind, SIGNALS[kind]) - set(bus["ports"]):
                raise VivadoError(f"bus interface {name}: signals are not those of {kind}")
            if set(bus["parameters"]) - PARAMETERS[kind]:
                raise VivadoError(f"bus interface {name}: parameters are not those of {kind}")
            mapped = kind.endswith("aximm") and bus["interface_mode"] == "slave"
            if mapped and bus.get("slave_memory_map_ref") not in self.core["maps"]:
                raise VivadoError(f"bus interface {name}: has no memory map")
            for signal, port in bus["ports"].items():
                way = "out" if (bus["interface_mode"] == "master") == MASTER_DRIVES[signal] else "in"
                if self.ports.get(port, ("", 0))[0] != way:
                    raise VivadoError(f"bus interface {name}: {signal} must be an {way}put, got {port}")
                if port in used:
                    raise VivadoError(f"bus interface {name}: port {port} is in two")
                used.add(port)
        if set(self.ports) - used:
            raise VivadoError(f"ports in no bus interface: {', '.join(sorted(set(self.ports) - used))}")
        for name, bus in self.core["buses"].items():
            for key in ("ASSOCIATED_BUSIF", "ASSOCIATED_RESET"):
                for other in filter(None, bus["parameters"].get(key, "").split(":")):
                    if other not in (self.core["buses"] if key.endswith("BUSIF") else self.ports):
                        raise VivadoError(f"bus interface {name}: {key} names {other}, which is not there")

    def _check_registers(self) -> None:
        for blocks in self.core["maps"].values():
            for block in blocks.values():
                taken: set[int] = set()
                for register in block["registers"]:
                    offset = int(register["address_offset"], 16)
                    if offset in taken or offset % 4 or offset + 4 > int(block["range"]):
                        raise VivadoError(f"register {register['name']}: offset {offset:#x} is taken or out of range")
                    taken.add(offset)
                    bits: set[int] = set()
                    for f in register["fields"]:
                        own = set(range(int(f["bit_offset"]), int(f["bit_offset"]) + int(f["bit_width"])))
                        if own & bits or max(own) > 31:
                            raise VivadoError(f"field {register['name']}.{f['name']}: bits overlap or are out of range")
                        bits |= own
