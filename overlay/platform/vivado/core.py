"""The device, our DMA and the packetizer as IP cores: ports, bus interfaces, parameters, registers.

component.py and tables.py write them down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bitloom.hls_gen.design.dma import BURST_BEATS, REGISTERS, VLNV, Dma
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.packetizer import REGISTERS as PACKETIZER_REGISTERS
from bitloom.hls_gen.design.packetizer import VLNV as PACKETIZER_VLNV
from bitloom.hls_gen.design.packetizer import Packetizer
from bitloom.hls_gen.design.training import TOP as TRAINING_TOP
from bitloom.hls_gen.rtl.cores import core_ports, core_verilog
from bitloom.hls_gen.rtl.dma.dma import TOP as DMA_TOP
from bitloom.hls_gen.rtl.dma.dma import dma_core
from bitloom.hls_gen.rtl.packetizer.packetizer import TOP as PACKETIZER_TOP
from bitloom.hls_gen.rtl.packetizer.packetizer import packetizer
from bitloom.hls_gen.rtl.shell.top import AXI
from bitloom.overlay.platform.block_design import ADDRESS_BLOCK, DEVICE_BYTES, BlockDesign
from bitloom.overlay.platform.dma_core import OWN

ABOUT = {
    TOP: "Accelerator for low-bit neural networks",
    TRAINING_TOP: "Machine that trains perceptrons on discrete data",
}
"""Description of a core, by its top module, for people."""
BUS = "xilinx.com:interface"
WIRE = "xilinx.com:signal"
"""BUS, WIRE: vendor and library of the types of interfaces."""
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
    """All that a packager must know of a core."""

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
    address_spaces: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes that each AXI4 master reaches, and the bits of its words."""

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
    return [*ports, *(Port(f"s_axi_{name}", direction, width) for name, direction, width in AXI), Port("irq", "out")]


def _interfaces() -> list[Interface]:
    """Bus interfaces of the top module."""
    streams = {"s_axis": "slave", "m_axis": "master"}
    return [
        _registers_interface(),
        *(_stream(name, mode) for name, mode in streams.items()),
        *_clock_and_reset(["s_axi", *streams]),
        _interrupt("irq"),
    ]


@dataclass(frozen=True)
class CoreBeside:
    """An IP core of ours beside the device, and its Verilog."""

    core: IpCore
    verilog: Mapping[str, str]
    """Text of each file, by its path in the folder of the sources."""


def cores_beside(design: BlockDesign) -> dict[str, CoreBeside]:
    """The cores of ours that a block design has beside the device, by the name that their files begin with."""
    cores = {}
    if design.dma is OWN:
        files = _files("dma", core_verilog(dma_core, design.dma_sizes))
        cores["dma"] = CoreBeside(dma_ip_core(design.dma_sizes, design.dma_parameters, list(files)), files)
    if design.packetizer:
        files = _files("packetizer", core_verilog(packetizer, design.packetizer))
        cores["packetizer"] = CoreBeside(packetizer_ip_core(design.packetizer, list(files)), files)
    return cores


def _files(folder: str, modules: Mapping[str, str]) -> dict[str, str]:
    """Files for modules, in a folder."""
    return {f"{folder}/{name}.v": text for name, text in modules.items()}


def packetizer_ip_core(sizes: Packetizer, files: Sequence[str]) -> IpCore:
    """The packetizer as an IP core, with the Verilog in ``files``."""
    streams = {"s_axis": "slave", "s_axis_raw": "slave", "m_axis": "master"}
    ports = [Port(name, direction, width) for name, direction, width in core_ports(packetizer, sizes)]
    user = {"TUSER": "s_axis_raw_tuser"} if sizes.marks == "video" else {}
    return IpCore(
        vlnv=PACKETIZER_VLNV,
        display_name="bitloom: packetizer",
        description=f"Makes packets of a raw stream with {sizes.beats} beats of {sizes.raw_bits} bits a frame",
        ports=ports,
        interfaces=[
            _registers_interface(),
            *(_stream(name, mode, user if name == "s_axis_raw" else {}) for name, mode in streams.items()),
            *_clock_and_reset(["s_axi", *streams]),
            _interrupt("irq"),
        ],
        parameters={"BEATS": sizes.beats, "BEAT_VALUES": sizes.beat_values, "VALUE_BITS": sizes.value_bits},
        registers=[register.to_dict() for register in PACKETIZER_REGISTERS],
        files=files,
        top=PACKETIZER_TOP,
    )


def dma_ip_core(sizes: Dma, parameters: Mapping[str, object], files: Sequence[str]) -> IpCore:
    """Our DMA as an IP core, with the Verilog in ``files``; ``parameters`` are what drivers read of it in the .hwh."""
    ports = [Port(name, direction, width) for name, direction, width in core_ports(dma_core, sizes)]
    masters = ("m_axi_mm2s", "m_axi_s2mm")
    streams = {"m_axis_mm2s": "master", "s_axis_s2mm": "slave"}
    return IpCore(
        vlnv=VLNV,
        display_name="bitloom: DMA",
        description="DMA with the registers of AMD's AXI DMA in direct register mode",
        ports=ports,
        interfaces=[
            _registers_interface(),
            *(_master(name, ports) for name in masters),
            *(_stream(name, mode) for name, mode in streams.items()),
            *_clock_and_reset(["s_axi", *masters, *streams]),
            _interrupt("mm2s_introut"),
            _interrupt("s2mm_introut"),
        ],
        parameters=parameters,
        registers=[register.to_dict() for register in REGISTERS],
        files=files,
        top=DMA_TOP,
        address_spaces=dict.fromkeys(masters, (1 << sizes.address_bits, sizes.stream_bits)),
    )


def _registers_interface() -> Interface:
    """The AXI4-Lite slave of the registers."""
    signals = {name.upper(): f"s_axi_{name}" for name, *_ in AXI}
    return Interface("s_axi", f"{BUS}:aximm", "slave", signals, {"PROTOCOL": "AXI4LITE"})


def _master(name: str, ports: Sequence[Port]) -> Interface:
    """An AXI4 master, which only reads or only writes, with those of ``ports`` that begin with its name."""
    names = (port.name for port in ports if port.name.startswith(f"{name}_"))
    signals = {port.removeprefix(f"{name}_").upper(): port for port in names}
    parameters = {
        "PROTOCOL": "AXI4",
        "READ_WRITE_MODE": "READ_ONLY" if "ARADDR" in signals else "WRITE_ONLY",
        "MAX_BURST_LENGTH": str(BURST_BEATS),
    }
    return Interface(name, f"{BUS}:aximm", "master", signals, parameters)


def _stream(name: str, mode: str, more: Mapping[str, str] | None = None) -> Interface:
    """A stream; ``more`` are further signals of it."""
    signals = {signal.upper(): f"{name}_{signal}" for signal, _ in STREAM}
    return Interface(name, f"{BUS}:axis", mode, {**signals, **(more or {})})


def _clock_and_reset(buses: Sequence[str]) -> list[Interface]:
    """Clock and reset of all of a core's buses."""
    clocked = {"ASSOCIATED_BUSIF": ":".join(buses), "ASSOCIATED_RESET": "rst"}
    return [
        Interface("clk", f"{WIRE}:clock", "slave", {"CLK": "clk"}, clocked),
        Interface("rst", f"{WIRE}:reset", "slave", {"RST": "rst"}, {"POLARITY": "ACTIVE_HIGH"}),
    ]


def _interrupt(name: str) -> Interface:
    """An interrupt output."""
    return Interface(name, f"{WIRE}:interrupt", "master", {"INTERRUPT": name}, {"SENSITIVITY": "LEVEL_HIGH"})
