"""Stand-ins for the IP packager: ipx:: commands, with names and options checked. A core is kept as JSON in its folder,
as component.xml."""

import json
import re
from pathlib import Path
from typing import Any

from .objects import Stub, VivadoError, anything, command

PROPERTIES = {
    "core": "vendor library name version display_name description supported_families",
    "bus": "name bus_type_vlnv abstraction_type_vlnv interface_mode slave_memory_map_ref master_address_space_ref",
    "port map": "name physical_name",
    "bus parameter": "name value",
    "memory map": "name description",
    "address space": "name range width",
    "address block": "name base_address range width usage access",
    "register": "name address_offset size access description",
    "field": "name bit_offset bit_width access description modified_write_value",
    "user parameter": "name value value_format value_resolve_type",
}
"""Kind of object -> names of its properties."""
ADDRESS = "ADDR LEN SIZE BURST CACHE PROT VALID READY"
CHANNELS = {"AW": ADDRESS, "W": "DATA STRB LAST VALID READY", "B": "RESP VALID READY"}
CHANNELS |= {"AR": ADDRESS, "R": "DATA RESP LAST VALID READY"}
SIGNALS = {
    "xilinx.com:interface:aximm": {
        f"{channel}{signal}" for channel, signals in CHANNELS.items() for signal in signals.split()
    },
    "xilinx.com:interface:axis": {"TDATA", "TVALID", "TREADY", "TLAST", "TKEEP", "TSTRB", "TUSER", "TID", "TDEST"},
    "xilinx.com:signal:clock": {"CLK"},
    "xilinx.com:signal:reset": {"RST"},
    "xilinx.com:signal:interrupt": {"INTERRUPT"},
}
"""Type of a bus -> names of its signals."""
PARAMETERS = {
    "xilinx.com:interface:aximm": {
        "PROTOCOL",
        "DATA_WIDTH",
        "ADDR_WIDTH",
        "READ_WRITE_MODE",
        "MAX_BURST_LENGTH",
    },
    "xilinx.com:interface:axis": {"TDATA_NUM_BYTES"},
    "xilinx.com:signal:clock": {"ASSOCIATED_BUSIF", "ASSOCIATED_RESET", "FREQ_HZ"},
    "xilinx.com:signal:reset": {"POLARITY"},
    "xilinx.com:signal:interrupt": {"SENSITIVITY"},
}
"""The same of its parameters."""


def ports_of(verilog: str, top: str) -> dict[str, tuple[str, int]]:
    """Direction and width of the ports of a module whose header declares each, as ours do: input [7:0] name, ..."""
    header = re.search(rf"\bmodule\s+{top}\s*\((.*?)\);", verilog, re.DOTALL)
    if not header:
        raise VivadoError(f"module {top} has no header with ports")
    declared = re.findall(r"(in|out)put\s+(?:reg\s+)?(?:\[(\d+):0\]\s+)?(\w+)", header[1])
    return {name: (way, int(top or 0) + 1) for way, top, name in declared}


class Packager(Stub):
    """ipx:: commands on one core. ``core`` is what was packaged, as data."""

    def __init__(self) -> None:
        super().__init__()
        self.core: dict[str, Any] = {}
        self.children: dict[str, list[str]] = {}

    def sources(self) -> tuple[str, str]:
        """Top module and the text of all Verilog of the project."""
        raise NotImplementedError

    def add(self, kind: str, name: str, parent: str, **values: object) -> str:
        """A new object of the core, by name, in ``parent``."""
        rules = dict.fromkeys(PROPERTIES[kind].split(), anything)
        thing = self.new(f"{parent}/{kind.replace(' ', '_')}:{name}", kind, rules, name=name, **values)
        self.children.setdefault(parent, []).append(thing.handle)
        return thing.handle

    def of(self, parent: str, kind: str) -> list[str]:
        """Objects of a kind in ``parent``."""
        return [h for h in self.children.get(parent, []) if self.things[h].kind == kind]

    def children_named(self, options: dict[str, str], kind: str, parent_kind: str, names: tuple[str, ...]) -> str:
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
        rules = dict.fromkeys(PROPERTIES["core"].split(), anything)
        self.new("core", "core", rules, vendor=options["-vendor"], library=options["-library"], name=top, version="1.0")
        self.add("bus", "inferred", "core")
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
        return self.children_named(options, "memory map", "core", names)

    @command("ipx::remove_memory_map", "", 2)
    def remove_memory_map(self, options: dict[str, str], name: str, core: str) -> None:
        self.children["core"].remove(self.children_named({"-of_objects": core}, "memory map", "core", (name,)))

    @command("ipx::add_bus_interface", "", 2)
    def add_bus_interface(self, options: dict[str, str], name: str, core: str) -> str:
        return self.add("bus", name, self.thing(core, "core").handle)

    @command("ipx::get_bus_interfaces", "-of_objects=", 0, 1)
    def get_bus_interfaces(self, options: dict[str, str], *names: str) -> str:
        return self.children_named(options, "bus", "core", names)

    @command("ipx::add_port_map", "", 2)
    def add_port_map(self, options: dict[str, str], name: str, bus: str) -> str:
        return self.add_named("port map", name, bus, SIGNALS)

    @command("ipx::add_bus_parameter", "", 2)
    def add_bus_parameter(self, options: dict[str, str], name: str, bus: str) -> str:
        return self.add_named("bus parameter", name, bus, PARAMETERS)

    def add_named(self, kind: str, name: str, bus: str, names: dict[str, set[str]]) -> str:
        """A new object of a bus interface, which has one of the names that its type has."""
        thing = self.thing(bus, "bus")
        bus_type = thing.get("bus_type_vlnv")
        if name not in names.get(bus_type.removesuffix(":1.0"), ()):
            raise VivadoError(f"ipx::add_{kind.replace(' ', '_')}: {bus_type} has no {name}")
        return self.add(kind, name, thing.handle)

    @command("ipx::add_address_space", "", 2)
    def add_address_space(self, options: dict[str, str], name: str, core: str) -> str:
        return self.add("address space", name, self.thing(core, "core").handle)

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
        return self.children_named(options, "register", "address block", names)

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
        self.thing(core, "core")

    @command("ipx::save_core", "", 1)
    def save_core(self, options: dict[str, str], core: str) -> None:
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
            "spaces": {self.things[h].values["name"]: self._values(h) for h in self.of(core, "address space")},
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
