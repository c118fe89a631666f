"""The hardware handoff file (.hwh) of a block design, as pynqmetadata reads it.

Vivado writes more. Here is what the block design says (cores, their parameters, buses, wires, addresses), and what pynq
looks at besides: registers and fields, clocks, and the digest of the design as a parameter of the device.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from .block_design import (
    ADDRESS_BLOCK,
    DEVICE,
    DEVICE_BYTES,
    BlockDesign,
    BusConnection,
    CoreInstance,
    Net,
    Pin,
    access,
)

ENDS = {"aximm": ("MASTER", "SLAVE"), "axis": ("INITIATOR", "TARGET")}
"""Types of the two ends of a bus, the master's first."""
SIGNALS = {"clk": "clk", "rst": "rst", "rst_high": "rst", "interrupt": "INTERRUPT"}
"""Word of the hwh for each kind of wire."""


def _tag(name: str, attributes: Mapping[str, object], children: Iterable[str] = ()) -> str:
    """An XML element."""
    head = " ".join([name, *(f"{key}={quoteattr(str(value))}" for key, value in attributes.items())])
    body = "".join(children)
    return f"<{head}>{body}</{name}>" if body else f"<{head}/>"


def _properties(values: Mapping[str, object]) -> list[str]:
    """A PROPERTY element for each value."""
    return [_tag("PROPERTY", {"NAME": name, "VALUE": value}) for name, value in values.items()]


def _register(register: Mapping[str, Any]) -> str:
    """A register of the device, with its fields."""
    allowed, written = access(register)
    offset = f"0x{register['offset']:X}"
    fields = [
        _tag(
            "FIELD",
            {"NAME": part["name"]},
            _properties(
                {
                    "DESCRIPTION": part.get("description", ""),
                    "ADDRESS_OFFSET": offset,
                    "ACCESS": allowed,
                    "BIT_OFFSET": part["lsb"],
                    "BIT_WIDTH": part["width"],
                    **({"MODIFIED_WRITE_VALUE": written} if written else {}),
                }
            ),
        )
        for part in register.get("fields", ())
    ]
    properties = {
        "DESCRIPTION": register.get("description", ""),
        "ADDRESS_OFFSET": offset,
        "SIZE": 32,
        "ACCESS": allowed,
        "IS_ENABLED": "true",
        "RESET_VALUE": "0x0",
    }
    return _tag("REGISTER", {"NAME": register["name"]}, [*_properties(properties), _tag("FIELDS", {}, fields)])


def _bus(link: BusConnection, name: str, ends: tuple[str, str], target: bool) -> str:
    """One end of a bus, as the core at that end has it."""
    vlnv = f"xilinx.com:interface:{link.kind}:1.0"
    return _tag("BUSINTERFACE", {"BUSNAME": link.name, "NAME": name, "TYPE": ends[target], "VLNV": vlnv})


def _buses(design: BlockDesign, instance: str) -> list[str]:
    """The interfaces of a core that are connected."""
    buses = []
    for link in design.links:
        for target, (core, name) in enumerate((link.source, link.target)):
            if core == instance:
                buses.append(_bus(link, name, ENDS[link.kind], bool(target)))
    return buses


def _port(net: Net, name: str, direction: str, others: Iterable[Pin]) -> str:
    """One end of a wire, as the core at that end has it."""
    ends = [_tag("CONNECTION", {"INSTANCE": instance, "PORT": port}) for instance, port in others]
    signal = {"SIGIS": SIGNALS[net.kind], "SIGNAME": "_".join(net.source)}
    return _tag("PORT", {"DIR": direction, "NAME": name, **signal}, [_tag("CONNECTIONS", {}, ends)])


def _ports(design: BlockDesign, instance: str) -> list[str]:
    """The pins of a core that are connected and belong to no bus."""
    pins = []
    for net in design.nets:
        if net.source[0] == instance:
            pins.append(_port(net, net.source[1], "O", net.sinks))
        pins += [_port(net, name, "I", [net.source]) for core, name in net.sinks if core == instance]
    return pins


def _module(
    design: BlockDesign,
    cell: CoreInstance,
    *,
    parameters: Mapping[str, object] | None = None,
    registers: Sequence[str] = (),
    memory: Sequence[str] = (),
    programmable_logic: bool = True,
) -> str:
    """A core."""
    attributes = {
        "COREREVISION": 1,
        "FULLNAME": f"/{cell.instance}",
        "HWVERSION": cell.vlnv.split(":")[3],
        "INSTANCE": cell.instance,
        "IPTYPE": "PERIPHERAL",
        "IS_ENABLE": 1,
        "MODCLASS": "PERIPHERAL",
        "MODTYPE": cell.vlnv.split(":")[2],
        "VLNV": cell.vlnv,
        **({} if programmable_logic else {"IS_PL": "FALSE", "CONFIGURABLE": "TRUE"}),
    }
    children = []
    if registers:
        block = {
            "ACCESS": "read-write",
            "INTERFACE": design.registers_of[cell.instance],
            "NAME": ADDRESS_BLOCK,
            "RANGE": DEVICE_BYTES,
            "USAGE": "register",
        }
        children.append(_tag("ADDRESSBLOCKS", {}, [_tag("ADDRESSBLOCK", block, [_tag("REGISTERS", {}, registers)])]))
    values = {**cell.parameters, **(parameters or {})}
    named = [_tag("PARAMETER", {"NAME": name, "VALUE": value}) for name, value in values.items()]
    children.append(_tag("PARAMETERS", {}, named))
    children.append(_tag("PORTS", {}, _ports(design, cell.instance)))
    children.append(_tag("BUSINTERFACES", {}, _buses(design, cell.instance)))
    if memory:
        children.append(_tag("MEMORYMAP", {}, memory))
    return _tag("MODULE", attributes, children)


def _clock_parameters(design: BlockDesign) -> dict[str, object]:
    """Clock 0 runs at clock_mhz, the others are off."""
    parameters: dict[str, object] = {}
    for i in range(4):
        # pynq 4.0.0 looks for the UltraScale+ name of the frequency on Zynq-7000 too, and fails where it is missing.
        parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__ACT_FREQMHZ"] = design.clock_mhz
        if design.arch == "zynqmp":
            parameters[f"PSU__FPGA_PL{i}_ENABLE"] = int(i == 0)
            parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__DIVISOR0"] = 15
            parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__DIVISOR1"] = 1
            parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__SRCSEL"] = "IOPLL"
        else:
            parameters[f"PCW_FPGA_FCLK{i}_ENABLE"] = int(i == 0)
            parameters[f"PCW_FCLK{i}_PERIPHERAL_DIVISOR0"] = 5
            parameters[f"PCW_FCLK{i}_PERIPHERAL_DIVISOR1"] = 2
            parameters[f"PCW_FCLK{i}_PERIPHERAL_CLKSRC"] = "IO PLL"
            parameters[f"PCW_ACT_FPGA{i}_PERIPHERAL_FREQMHZ"] = design.clock_mhz
    return parameters


def _memory(design: BlockDesign) -> list[str]:
    """The address ranges of the processor."""
    return [
        _tag(
            "MEMRANGE",
            {
                "ADDRESSBLOCK": ADDRESS_BLOCK,
                "BASENAME": "C_BASEADDR",
                "BASEVALUE": f"0x{base:X}",
                "HIGHNAME": "C_HIGHADDR",
                "HIGHVALUE": f"0x{base + size - 1:X}",
                "INSTANCE": instance,
                "IS_DATA": "TRUE",
                "IS_INSTRUCTION": "TRUE",
                "MASTERBUSINTERFACE": design.processor.control,
                "MEMTYPE": "REGISTER",
                "SLAVEBUSINTERFACE": design.registers_of[instance],
            },
        )
        for instance, (base, size) in design.address_map.items()
    ]


def hwh_text(design: BlockDesign) -> str:
    """Text of the .hwh file; the same text for the same design."""
    special: dict[str, dict[str, Any]] = {
        design.processor.instance: {
            "parameters": _clock_parameters(design),
            "memory": _memory(design),
            "programmable_logic": False,
        },
        DEVICE: {
            "parameters": design.device_parameters,
            "registers": [_register(register) for register in design.registers],
        },
    }
    modules = [_module(design, cell, **special.get(cell.instance, {})) for cell in design.cells]
    part = dict(zip(("DEVICE", "PACKAGE", "SPEEDGRADE"), design.part))
    family = "zynq" if design.arch == "zynq" else "zynquplus"
    board = {"BOARD": design.board.board_part} if design.board else {}
    system = [
        _tag("SYSTEMINFO", {"ARCH": family, **board, "NAME": design.name, **part}),
        _tag("EXTERNALPORTS", {}),
        _tag("EXTERNALINTERFACES", {}),
        _tag("MODULES", {}, [module + "\n" for module in modules]),
    ]
    root = {"EDKVERSION": "1.2", "TIMESTAMP": "Thu Jan 1 00:00:00 1970", "VIVADOVERSION": "simulation only"}
    return '<?xml version="1.0" encoding="UTF-8" standalone="no" ?>\n' + _tag("EDKSYSTEM", root, system) + "\n"
