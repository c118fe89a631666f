"""The block design around a bitloom device: which cores, how they are connected, and at which addresses.

    PS --AXI-Lite--> interconnect ----> device, DMA, interrupt controller
    PS <--HP port--- SmartConnect <---- DMA (AMD's AXI DMA in simple mode, or ours: dma_core.py)
    DMA --s_axis--> device --m_axis--> DMA
    DMA --s_axis--> packetizer --> device, where a raw stream comes from elsewhere: s_axis_raw is free for it
    interrupt lines: 0 DMA mm2s, 1 DMA s2mm, 2 device, 3 packetizer --> concat --> interrupt controller --> PS
    one clock and one reset, from the PS

The simulation's hwh and the Vivado scripts are both written from one description, so that they carry the same names and
addresses.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bitloom.golden.names import check_name
from bitloom.hls_gen.design import packetizer
from bitloom.hls_gen.design.design import STREAM_WIDTHS
from bitloom.hls_gen.design.dma import REGISTERS, Dma
from bitloom.hls_gen.design.packetizer import Packetizer
from bitloom.hls_gen.design.registers import ADDRESS_BITS

from .boards import CLOCK_MHZ, Board
from .dma_core import AMD, OWN, DmaCore, parameters
from .processors import PROCESSORS, Processor
from .target import BoardTarget

DEVICE_BYTES = 1 << ADDRESS_BITS
"""Address space of the device's registers."""
ADDRESS_BLOCK = "Reg"
"""Vivado's usual name for a core's registers."""
DMA = "axi_dma_0"
"""The DMA, whichever it is: scripts find it by this name."""
DEVICE = "bitloom_0"
PACKETIZER = "packetizer_0"
INTERRUPTS = "axi_intc_0"
CONTROL = "axi_interconnect_0"
MEMORY = "smartconnect_0"
RESET = "proc_sys_reset_0"
CONCAT = "xlconcat_0"
LINES = ((DMA, "mm2s_introut"), (DMA, "s2mm_introut"), (DEVICE, "irq"))
"""Interrupt lines of every block design, in the order of their numbers."""

ACCESS = {"RO": "read-only", "RW": "read-write", "RW1C": "read-write"}
"""The manifest's words for access, in IP-XACT's."""

Pin = tuple[str, str]
"""An instance, and the name of its pin or interface."""


@dataclass(frozen=True)
class CoreInstance:
    """An instance of an IP core."""

    instance: str
    """Its name."""
    vlnv: str
    """Vendor, library, name and version of the core."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """By Vivado's names without "CONFIG."; those that are not named keep their defaults."""


@dataclass(frozen=True)
class BusConnection:
    """A bus between two interfaces."""

    kind: str
    """"aximm" (memory-mapped) or "axis" (stream)."""
    source: Pin
    """Interface of the master."""
    target: Pin
    """Interface of the slave."""

    @property
    def name(self) -> str:
        """Vivado's name of the bus: that of its source."""
        return "_".join(self.source)


@dataclass(frozen=True)
class Net:
    """A wire."""

    kind: str
    """"clk", "rst" (active low), "rst_high" or "interrupt"."""
    source: Pin
    """Pin that drives it."""
    sinks: tuple[Pin, ...]
    """Pins that it drives."""


@dataclass(frozen=True, kw_only=True)
class BlockDesign:
    """Everything that the hwh and the Vivado scripts say. Make it with ``from_manifest``.

    Raises
    ------
    ValueError
        If a value is none of those above, or contradicts the board.
    """

    name: str
    vlnv: str
    digest: str
    stream_bits: int
    registers: Sequence[Mapping[str, Any]] = field(repr=False)
    """name, vlnv, digest, stream_bits, registers: of the device, as in the manifest (docs/reference/device.md)."""
    arch: str = "zynqmp"
    """"zynq" (Zynq-7000) or "zynqmp" (Zynq UltraScale+)."""
    clock_mhz: float = CLOCK_MHZ
    """Clock of the device in MHz."""
    board: Board | None = None
    """The board; None for a simulated one of no special kind."""
    dma: DmaCore = AMD
    """The DMA that moves the device's streams."""
    packetizer: Packetizer | None = None
    """The core that makes packets of a raw stream in front of the device; None: frames come by the DMA alone."""

    def __post_init__(self) -> None:
        check_name("block design", self.name)
        if self.arch not in PROCESSORS:
            raise ValueError(f"block design {self.name}: arch must be zynq or zynqmp, got {self.arch!r}")
        if self.board and self.board.arch != self.arch:
            raise ValueError(
                f"block design {self.name}: arch must be {self.board.arch} on {self.board.name}, got {self.arch!r}"
            )
        if self.stream_bits not in STREAM_WIDTHS:
            raise ValueError(f"block design {self.name}: stream_bits must be 32 or 64, got {self.stream_bits!r}")
        low, high = self.processor.clock_range_mhz
        if not low <= self.clock_mhz <= high:
            raise ValueError(f"block design {self.name}: clock_mhz must be {low}..{high}, got {self.clock_mhz!r}")
        if not re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+:\d+\.\d+", self.vlnv):
            raise ValueError(f"block design {self.name}: vlnv must be vendor:library:name:1.0, got {self.vlnv!r}")

    @classmethod
    def from_manifest(
        cls,
        manifest: Mapping[str, Any],
        target: BoardTarget | None = None,
    ) -> "BlockDesign":
        """The block design of the device that a manifest describes, on ``target``, by default ``BoardTarget()``.

        Raises
        ------
        ValueError
            If the target's parts contradict each other.
        """
        target = target or BoardTarget()
        taken = {key: manifest[key] for key in ("name", "vlnv", "digest", "stream_bits", "registers")}
        arch = target.arch or (target.board.arch if target.board else "zynqmp")
        return cls(**taken, arch=arch, clock_mhz=target.clock_mhz, board=target.board, dma=target.dma)

    @property
    def processor(self) -> Processor:
        """The processing system of ``arch``."""
        return PROCESSORS[self.arch]

    @property
    def part(self) -> tuple[str, str, str]:
        """Device, package and speed grade."""
        return self.board.device if self.board else self.processor.part

    @property
    def address_map(self) -> dict[str, tuple[int, int]]:
        """Base address and bytes of each core that the processor reaches."""
        bases = self.processor.bases
        return {
            DMA: (bases["dma"], self.dma.space_bytes),
            DEVICE: (bases["device"], DEVICE_BYTES),
            INTERRUPTS: (bases["interrupts"], 0x1_0000),
            **({PACKETIZER: (bases["packetizer"], DEVICE_BYTES)} if self.packetizer else {}),
        }

    @property
    def registers_of(self) -> dict[str, str]:
        """Cores with registers, in the order of the interconnect's ports, and the interface through which each is
        reached."""
        beside = {PACKETIZER: "s_axi"} if self.packetizer else {}
        return {DMA: self.dma.registers, INTERRUPTS: "s_axi", DEVICE: "s_axi", **beside}

    @property
    def lines(self) -> tuple[Pin, ...]:
        """Interrupt lines in the order of their numbers."""
        return (*LINES, (PACKETIZER, "irq")) if self.packetizer else LINES

    @property
    def dma_sizes(self) -> Dma:
        """Sizes of our DMA where it is the one."""
        return Dma(stream_bits=self.stream_bits, address_bits=self.processor.address_bits)

    def manifest_text(self, manifest: Mapping[str, Any]) -> str:
        """Text of the manifest's file: the device's manifest, and the registers of our DMA where it is the one."""
        dma = {"vlnv": self.dma.vlnv, "registers": [register.to_dict() for register in REGISTERS]}
        return json.dumps({**manifest, **({"dma": dma} if self.dma is OWN else {})}, indent=1, sort_keys=True) + "\n"

    @property
    def dma_parameters(self) -> dict[str, object]:
        """Parameters of the DMA, by the names that the hwh has."""
        return parameters(self.stream_bits, self.processor.address_bits)

    @property
    def device_parameters(self) -> dict[str, object]:
        """Parameters of the device's core in the hwh."""
        return {"DIGEST": self.digest, "STREAM_BITS": self.stream_bits}

    @property
    def cells(self) -> tuple[CoreInstance, ...]:
        """All cores, the processing system first."""
        ps = self.processor
        return (
            CoreInstance(ps.instance, ps.vlnv, {**ps.parameters, ps.clock_parameter: f"{self.clock_mhz:g}"}),
            CoreInstance(RESET, "xilinx.com:ip:proc_sys_reset:5.0"),
            CoreInstance(
                CONTROL, "xilinx.com:ip:axi_interconnect:2.1", {"NUM_SI": 1, "NUM_MI": len(self.registers_of)}
            ),
            CoreInstance(MEMORY, "xilinx.com:ip:smartconnect:1.0", {"NUM_SI": 2, "NUM_MI": 1}),
            CoreInstance(DMA, self.dma.vlnv, self.dma_parameters),
            CoreInstance(CONCAT, "xilinx.com:ip:xlconcat:2.1", {"NUM_PORTS": len(self.lines)}),
            CoreInstance(INTERRUPTS, "xilinx.com:ip:axi_intc:4.1", {"C_IRQ_CONNECTION": 1}),  # 1: a pin, not a bus
            CoreInstance(DEVICE, self.vlnv),
            *([CoreInstance(PACKETIZER, packetizer.VLNV)] if self.packetizer else []),
        )

    @property
    def links(self) -> tuple[BusConnection, ...]:
        """All buses, each from its master."""
        ps, dma = self.processor, self.dma
        first = PACKETIZER if self.packetizer else DEVICE
        return (
            BusConnection("aximm", (ps.instance, ps.control), (CONTROL, "S00_AXI")),
            *(
                BusConnection("aximm", (CONTROL, f"M{i:02}_AXI"), pin)
                for i, pin in enumerate(self.registers_of.items())
            ),
            BusConnection("aximm", (DMA, dma.mm2s_memory), (MEMORY, "S00_AXI")),
            BusConnection("aximm", (DMA, dma.s2mm_memory), (MEMORY, "S01_AXI")),
            BusConnection("aximm", (MEMORY, "M00_AXI"), (ps.instance, ps.memory)),
            BusConnection("axis", (DMA, dma.mm2s_stream), (first, "s_axis")),
            *([BusConnection("axis", (PACKETIZER, "m_axis"), (DEVICE, "s_axis"))] if self.packetizer else []),
            BusConnection("axis", (DEVICE, "m_axis"), (DMA, dma.s2mm_stream)),
        )

    @property
    def nets(self) -> tuple[Net, ...]:
        """All wires: clock, resets, interrupts."""
        ps = self.processor
        ports = ["S00", *(f"M{i:02}" for i in range(len(self.registers_of)))]
        clocked = [
            *((ps.instance, pin) for pin in ps.port_clocks),
            (RESET, "slowest_sync_clk"),
            (CONTROL, "ACLK"),
            *((CONTROL, f"{port}_ACLK") for port in ports),
            (MEMORY, "aclk"),
            *((DMA, pin) for pin in self.dma.clocks),
            (INTERRUPTS, "s_axi_aclk"),
            (DEVICE, "clk"),
            *([(PACKETIZER, "clk")] if self.packetizer else []),
        ]
        kind, pin = self.dma.reset
        resets = {
            "rst": [*((CONTROL, f"{port}_ARESETN") for port in ports), (INTERRUPTS, "s_axi_aresetn")],
            "rst_high": [(DEVICE, "rst")],
        }
        resets[kind].insert(-1, (DMA, pin))
        if self.packetizer:
            resets["rst_high"].append((PACKETIZER, "rst"))
        return (
            Net("clk", (ps.instance, ps.clock), tuple(clocked)),
            Net("rst", (ps.instance, ps.reset), ((RESET, "ext_reset_in"),)),
            Net("rst", (RESET, "interconnect_aresetn"), ((CONTROL, "ARESETN"), (MEMORY, "aresetn"))),
            Net("rst", (RESET, "peripheral_aresetn"), tuple(resets["rst"])),
            Net("rst_high", (RESET, "peripheral_reset"), tuple(resets["rst_high"])),
            *(Net("interrupt", line, ((CONCAT, f"In{i}"),)) for i, line in enumerate(self.lines)),
            Net("interrupt", (CONCAT, "dout"), ((INTERRUPTS, "intr"),)),
            Net("interrupt", (INTERRUPTS, "irq"), ((ps.instance, ps.interrupt),)),
        )


def access(register: Mapping[str, Any]) -> tuple[str, str]:
    """Access to a register of the manifest, in IP-XACT's words.

    Returns
    -------
    tuple
        Access, and what a written bit does; "" where it is stored.
    """
    return ACCESS[register["access"]], "oneToClear" if register["access"] == "RW1C" else ""
