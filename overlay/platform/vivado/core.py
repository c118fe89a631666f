"""The device as an IP core: ports, bus interfaces, parameters, registers. component.py and tables.py write it down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.training import TOP as TRAINING_TOP
from bitloom.hls_gen.rtl.shell.top import AXI
from bitloom.overlay.platform.block_design import ADDRESS_BLOCK, DEVICE_BYTES, BlockDesign

ABOUT = {
    TOP: "Accelerator for low-bit neural networks",
    TRAINING_TOP: "Machine that trains perceptrons on discrete data",
}
"""What a core with that top module is, for people."""
STREAM = (("tdata", None), ("tvalid", 1), ("tready", 1), ("tlast", 1))
"""Signals of a stream and their widths; None is the stream's width."""


@dataclass(frozen=True)
class Port:
    """A port of the top module."""

    name: str
    """Its name in the Verilog."""
    direction: str
    """"in" or "out"."""
    width: int = 1
    """Bits."""


@dataclass(frozen=True)
class Interface:
    """A bus interface."""

    name: str
    """Its name."""
    kind: str
    """Vendor, library and name of its bus type, whose version is 1.0."""
    mode: str
    """"master" or "slave"."""
    ports: Mapping[str, str]
    """Port of the top module by the signal's logical name."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Further parameters."""

    @property
    def bus_type(self) -> str:
        """VLNV of the bus."""
        return f"{self.kind}:1.0"

    @property
    def abstraction(self) -> str:
        """VLNV of the bus's signals."""
        return f"{self.kind}_rtl:1.0"


@dataclass(frozen=True, kw_only=True)
class IpCore:
    """All that a packager must know of the device."""

    vlnv: str
    """Vendor, library, name and version."""
    display_name: str
    description: str
    """display_name, description: for people."""
    ports: Sequence[Port]
    interfaces: Sequence[Interface]
    parameters: Mapping[str, object]
    registers: Sequence[Mapping[str, Any]]
    """ports, interfaces, parameters, registers: what the core has; registers as in the manifest."""
    files: Sequence[str]
    """Verilog, relative to the folder of the sources."""
    top: str = TOP
    """Name of the top module."""
    memory_map: str = "s_axi"
    address_block: str = ADDRESS_BLOCK
    space_bytes: int = DEVICE_BYTES
    """memory_map, address_block, space_bytes: names and size of the registers' address space."""

    @classmethod
    def of(cls, design: BlockDesign, files: Sequence[str], top: str = TOP) -> "IpCore":
        """The device in a block design, with the Verilog in ``files`` and that top module."""
        return cls(
            vlnv=design.vlnv,
            display_name=f"bitloom: {design.name}",
            description=f"{ABOUT[top]}, digest {design.digest}",
            ports=_ports(design.stream_bits),
            interfaces=_interfaces(),
            parameters=design.device_parameters,
            registers=design.registers,
            files=files,
            top=top,
        )


def _ports(stream_bits: int) -> list[Port]:
    """Ports of the top module."""
    ports = [Port("clk", "in"), Port("rst", "in")]
    for name, mode in (("s_axis", "slave"), ("m_axis", "master")):
        for signal, width in STREAM:
            taken = (mode == "slave") != (signal == "tready")
            ports.append(Port(f"{name}_{signal}", "in" if taken else "out", width or stream_bits))
    return [*ports, *(Port(f"s_axi_{name}", way, width) for name, way, width in AXI), Port("irq", "out")]


def _interfaces() -> list[Interface]:
    """Bus interfaces of the top module."""
    bus = "xilinx.com:interface"
    wire = "xilinx.com:signal"
    clocked = {"ASSOCIATED_BUSIF": "s_axi:s_axis:m_axis", "ASSOCIATED_RESET": "rst"}
    return [
        Interface(
            "s_axi",
            f"{bus}:aximm",
            "slave",
            {name.upper(): f"s_axi_{name}" for name, *_ in AXI},
            {"PROTOCOL": "AXI4LITE"},
        ),
        *(
            Interface(name, f"{bus}:axis", mode, {signal.upper(): f"{name}_{signal}" for signal, _ in STREAM})
            for name, mode in (("s_axis", "slave"), ("m_axis", "master"))
        ),
        Interface("clk", f"{wire}:clock", "slave", {"CLK": "clk"}, clocked),
        Interface("rst", f"{wire}:reset", "slave", {"RST": "rst"}, {"POLARITY": "ACTIVE_HIGH"}),
        Interface("irq", f"{wire}:interrupt", "master", {"INTERRUPT": "irq"}, {"SENSITIVITY": "LEVEL_HIGH"}),
    ]
