"""component.xml: a core in IP-XACT (IEEE 1685-2009), which is what Vivado reads and writes.

package_ip.tcl makes Vivado write its own file with the same content; this one is for every other tool.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from bitloom.overlay.platform.block_design import access

from .core import Interface, IpCore, Port

SPIRIT = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
XILINX = "http://www.xilinx.com"
FAMILIES = ("zynq", "zynquplus")
"""Families of devices that the core is for."""
VIEWS = {
    "xilinx_anylanguagesynthesis": (":vivado.xilinx.com:synthesis", "Synthesis"),
    "xilinx_anylanguagebehavioralsimulation": (":vivado.xilinx.com:simulation", "Simulation"),
}
"""Views of the core: name, environment and title."""

ET.register_namespace("spirit", SPIRIT)
ET.register_namespace("xilinx", XILINX)


def component_xml(core: IpCore) -> str:
    """Text of component.xml; the same text for the same core."""
    root = ET.Element(_name("component"))
    for key, value in zip(("vendor", "library", "name", "version"), core.vlnv.split(":")):
        _add(root, key, value)
    buses = _add(root, "busInterfaces")
    for interface in core.interfaces:
        _bus_interface(buses, interface, core)
    if core.address_spaces:
        spaces = _add(root, "addressSpaces")
        for name, size in core.address_spaces.items():
            _address_space(spaces, name, *size)
    _memory_map(_add(root, "memoryMaps"), core)
    _model(_add(root, "model"), core)
    sets = _add(root, "fileSets")
    for view in VIEWS:
        _file_set(sets, view, core)
    _add(root, "description", core.description)
    _parameters(root, core.parameters, "PARAM_VALUE", resolve="user")
    _vendor_extensions(root, core)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _name(tag: str) -> str:
    """A name in the namespace of IP-XACT, or, with ``xilinx:``, of Xilinx' extensions."""
    prefix, _, local = tag.rpartition(":")
    return f"{{{XILINX if prefix == 'xilinx' else SPIRIT}}}{local}"


def _add(parent: ET.Element, tag: str, text: object = None, **attributes: object) -> ET.Element:
    """Append an element to ``parent``."""
    child = ET.SubElement(parent, _name(tag), {_name(key): str(value) for key, value in attributes.items()})
    if text is not None:
        child.text = str(text)
    return child


def _vlnv(parent: ET.Element, tag: str, vlnv: str) -> None:
    """Append an element that names vendor, library, name and version."""
    _add(parent, tag, **dict(zip(("vendor", "library", "name", "version"), vlnv.split(":"))))


def _parameters(parent: ET.Element, values: Mapping[str, object], scope: str, **attributes: str) -> None:
    """Append parameters, whose ids begin with ``scope``."""
    if not values:
        return
    group = _add(parent, "parameters")
    for name, value in values.items():
        parameter = _add(group, "parameter")
        _add(parameter, "name", name)
        _add(parameter, "value", value, **attributes, id=f"{scope}.{name}")


def _bus_interface(parent: ET.Element, interface: Interface, core: IpCore) -> None:
    """Append a bus interface with its port map."""
    bus = _add(parent, "busInterface")
    _add(bus, "name", interface.name)
    _vlnv(bus, "busType", interface.bus_type)
    _vlnv(bus, "abstractionType", interface.abstraction)
    mode = _add(bus, interface.mode)
    if interface.name == core.memory_map:
        _add(mode, "memoryMapRef", memoryMapRef=core.memory_map)
    if interface.name in core.address_spaces:
        _add(mode, "addressSpaceRef", addressSpaceRef=interface.name)
    maps = _add(bus, "portMaps")
    for logical, physical in interface.ports.items():
        pair = _add(maps, "portMap")
        _add(_add(pair, "logicalPort"), "name", logical)
        _add(_add(pair, "physicalPort"), "name", physical)
    _parameters(bus, interface.parameters, f"BUSIFPARAM_VALUE.{interface.name.upper()}")


def _address_space(parent: ET.Element, name: str, space_bytes: int, width: int) -> None:
    """Append what a master reaches."""
    space = _add(parent, "addressSpace")
    _add(space, "name", name)
    _add(space, "range", space_bytes, format="long")
    _add(space, "width", width, format="long")


def _memory_map(parent: ET.Element, core: IpCore) -> None:
    """Append the address space of the registers."""
    memory = _add(parent, "memoryMap")
    _add(memory, "name", core.memory_map)
    block = _add(memory, "addressBlock")
    _add(block, "name", core.address_block)
    _add(block, "baseAddress", 0, format="long")
    _add(block, "range", core.space_bytes, format="long")
    _add(block, "width", 32, format="long")
    _add(block, "usage", "register")
    _add(block, "access", "read-write")
    for register in core.registers:
        _register(block, register)


def _register(parent: ET.Element, register: Mapping[str, Any]) -> None:
    """Append a register with its fields."""
    allowed, written = access(register)
    element = _add(parent, "register")
    _add(element, "name", register["name"])
    if register.get("description"):
        _add(element, "description", register["description"])
    _add(element, "addressOffset", f"0x{register['offset']:03X}")
    _add(element, "size", 32)
    _add(element, "access", allowed)
    for part in register.get("fields", ()):
        field = _add(element, "field")
        _add(field, "name", part["name"])
        if part.get("description"):
            _add(field, "description", part["description"])
        _add(field, "bitOffset", part["lsb"])
        _add(field, "bitWidth", part["width"])
        _add(field, "access", allowed)
        if written:
            _add(field, "modifiedWriteValue", written)


def _model(parent: ET.Element, core: IpCore) -> None:
    """Append views and ports."""
    views = _add(parent, "views")
    for name, (environment, title) in VIEWS.items():
        view = _add(views, "view")
        _add(view, "name", name)
        _add(view, "displayName", title)
        _add(view, "envIdentifier", environment)
        _add(view, "language", "Verilog")
        _add(view, "modelName", core.top)
        _add(_add(view, "fileSetRef"), "localName", f"{name}_view_fileset")
    ports = _add(parent, "ports")
    for port in core.ports:
        _port(ports, port)


def _port(parent: ET.Element, port: Port) -> None:
    """Append a port."""
    element = _add(parent, "port")
    _add(element, "name", port.name)
    wire = _add(element, "wire")
    _add(wire, "direction", port.direction)
    if port.width > 1:
        vector = _add(wire, "vector")
        _add(vector, "left", port.width - 1, format="long")
        _add(vector, "right", 0, format="long")
    kind = _add(_add(wire, "wireTypeDefs"), "wireTypeDef")
    _add(kind, "typeName", "wire")
    for view in VIEWS:
        _add(kind, "viewNameRef", view)


def _file_set(parent: ET.Element, view: str, core: IpCore) -> None:
    """Append the Verilog files of a view."""
    group = _add(parent, "fileSet")
    _add(group, "name", f"{view}_view_fileset")
    for path in core.files:
        file = _add(group, "file")
        _add(file, "name", path)
        _add(file, "fileType", "verilogSource")


def _vendor_extensions(parent: ET.Element, core: IpCore) -> None:
    """Append what Vivado alone wants to know."""
    extensions = _add(_add(parent, "vendorExtensions"), "xilinx:coreExtensions")
    families = _add(extensions, "xilinx:supportedFamilies")
    for name in FAMILIES:
        _add(families, "xilinx:family", name, **{"xilinx:lifeCycle": "Production"})
    _add(_add(extensions, "xilinx:taxonomies"), "xilinx:taxonomy", "/UserIP")
    _add(extensions, "xilinx:displayName", core.display_name)
    _add(extensions, "xilinx:coreRevision", 1)
