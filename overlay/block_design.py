"""The block design around a bitloom device: which cores, at which addresses, on which interrupt lines.

    PS --AXI-Lite--> device, AXI DMA, interrupt controller
    AXI DMA (simple mode) --s_axis--> device --m_axis--> AXI DMA
    interrupt lines: 0 DMA mm2s, 1 DMA s2mm, 2 device

One description serves the simulation's hwh and the Vivado scripts, so that both carry the same names and addresses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DMA_LENGTH_BITS = 26
DMA, DEVICE, INTERRUPTS = "axi_dma_0", "bitloom_0", "axi_intc_0"
LINES = ((DMA, "mm2s_introut"), (DMA, "s2mm_introut"), (DEVICE, "irq"))


@dataclass(frozen=True)
class Processor:
    """What differs between the two families of processing systems."""

    instance: str
    module: str
    vlnv: str
    control: str  # AXI master that reaches the registers
    memory: str  # AXI slave that reaches the DDR
    interrupt: str  # interrupt input
    part: tuple[str, str, str]  # device, package, speed grade of a typical board
    machine: str  # what `uname -m` says on it
    device_base: int
    dma_base: int
    interrupts_base: int


PROCESSORS = {
    "zynq": Processor(
        instance="processing_system7_0",
        module="processing_system7",
        vlnv="xilinx.com:ip:processing_system7:5.5",
        control="M_AXI_GP0",
        memory="S_AXI_HP0",
        interrupt="IRQ_F2P",
        part=("xc7z020", "clg400", "-1"),
        machine="armv7l",
        device_base=0x43C0_0000,
        dma_base=0x4040_0000,
        interrupts_base=0x4180_0000,
    ),
    "zynqmp": Processor(
        instance="zynq_ultra_ps_e_0",
        module="zynq_ultra_ps_e",
        vlnv="xilinx.com:ip:zynq_ultra_ps_e:3.5",
        control="M_AXI_HPM0_FPD",
        memory="S_AXI_HP0_FPD",
        interrupt="pl_ps_irq0",
        part=("xczu7ev", "ffvc1156", "-2"),
        machine="aarch64",
        device_base=0xA001_0000,
        dma_base=0xA000_0000,
        interrupts_base=0xA002_0000,
    ),
}


@dataclass(frozen=True, kw_only=True)
class BlockDesign:
    """Everything that the hwh says. ``from_manifest`` fills it.

    name : of the design. vlnv, digest, registers, stream_bits : as in the manifest (docs/reference/device.md).
    arch : "zynq" (Zynq-7000) or "zynqmp" (Zynq UltraScale+). clock_mhz : the clock of the device.
    """

    name: str
    vlnv: str
    digest: str
    stream_bits: int
    registers: Sequence[Mapping[str, Any]] = field(repr=False)
    arch: str = "zynqmp"
    clock_mhz: float = 100.0

    def __post_init__(self) -> None:
        if self.arch not in PROCESSORS:
            raise ValueError(f"block design {self.name}: arch must be zynq or zynqmp, got {self.arch!r}")
        if self.stream_bits not in (32, 64):
            raise ValueError(f"block design {self.name}: stream_bits must be 32 or 64, got {self.stream_bits!r}")
        if len(self.vlnv.split(":")) != 4 or "." not in self.vlnv.split(":")[3]:
            raise ValueError(f"block design {self.name}: vlnv must be vendor:library:name:1.0, got {self.vlnv!r}")

    @classmethod
    def from_manifest(
        cls, manifest: Mapping[str, Any], *, arch: str = "zynqmp", clock_mhz: float = 100.0
    ) -> "BlockDesign":
        """The block design of the device that a manifest describes."""
        taken = {key: manifest[key] for key in ("name", "vlnv", "digest", "stream_bits", "registers")}
        return cls(**taken, arch=arch, clock_mhz=clock_mhz)

    @property
    def processor(self) -> Processor:
        """The processing system of ``arch``."""
        return PROCESSORS[self.arch]

    @property
    def address_map(self) -> dict[str, tuple[int, int]]:
        """(base, bytes) of every core that the processor reaches."""
        ps = self.processor
        bases = {DMA: ps.dma_base, DEVICE: ps.device_base, INTERRUPTS: ps.interrupts_base}
        return {name: (base, 0x1000 if name == DEVICE else 0x1_0000) for name, base in bases.items()}

    @property
    def dma_parameters(self) -> dict[str, int]:
        """How the AXI DMA is configured, by Vivado's parameter names (lower case, as the hwh has them)."""
        return {
            "c_include_sg": 0,
            "c_micro_dma": 0,
            "c_sg_length_width": DMA_LENGTH_BITS,
            "c_include_mm2s": 1,
            "c_include_s2mm": 1,
            "c_include_mm2s_dre": 0,
            "c_include_s2mm_dre": 0,
            "c_m_axi_mm2s_data_width": self.stream_bits,
            "c_m_axi_s2mm_data_width": self.stream_bits,
            "c_mm2s_burst_size": 16,
            "c_s2mm_burst_size": 16,
            "c_addr_width": 32 if self.arch == "zynq" else 40,
        }
