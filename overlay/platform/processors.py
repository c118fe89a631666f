"""The two families of processing systems (PS): AMD PG082 (Zynq-7000) and PG201 (Zynq UltraScale+)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Processor:
    """A processing system, and how the block design uses it. Names of pins and parameters are Vivado's."""

    instance: str
    module: str
    vlnv: str
    control: str  # AXI master that reaches the registers
    memory: str  # AXI slave that reaches the DDR
    interrupt: str  # interrupt input
    clock: str
    reset: str  # output, active low
    port_clocks: tuple[str, ...]  # inputs: clocks of the two AXI ports
    parameters: Mapping[str, object]  # on top of the board's preset
    clock_parameter: str  # frequency of ``clock`` in MHz
    clock_range_mhz: tuple[float, float]
    automation: Mapping[str, str]  # options of Vivado's block automation, which applies the board's preset
    address_bits: int  # of what the DMA reaches
    part: tuple[str, str, str]  # device, package and speed grade of a typical board
    machine: str  # what `uname -m` says on it
    bases: Mapping[str, int]  # addresses of cores with registers


ZYNQ = Processor(
    instance="processing_system7_0",
    module="processing_system7",
    vlnv="xilinx.com:ip:processing_system7:5.5",
    control="M_AXI_GP0",
    memory="S_AXI_HP0",
    interrupt="IRQ_F2P",
    clock="FCLK_CLK0",
    reset="FCLK_RESET0_N",
    port_clocks=("M_AXI_GP0_ACLK", "S_AXI_HP0_ACLK"),
    parameters={
        "PCW_EN_CLK0_PORT": 1,
        "PCW_EN_RST0_PORT": 1,
        "PCW_USE_M_AXI_GP0": 1,
        "PCW_USE_M_AXI_GP1": 0,
        "PCW_USE_S_AXI_HP0": 1,
        "PCW_USE_FABRIC_INTERRUPT": 1,
        "PCW_IRQ_F2P_INTR": 1,
    },
    clock_parameter="PCW_FPGA0_PERIPHERAL_FREQMHZ",
    clock_range_mhz=(1, 250),
    automation={
        "make_external": "FIXED_IO, DDR",
        "apply_board_preset": "1",
        "Master": "Disable",
        "Slave": "Disable",
    },
    address_bits=32,
    part=("xc7z020", "clg400", "-1"),
    machine="armv7l",
    bases={"device": 0x43C0_0000, "dma": 0x4040_0000, "interrupts": 0x4180_0000, "packetizer": 0x43C1_0000},
)

ZYNQMP = Processor(
    instance="zynq_ultra_ps_e_0",
    module="zynq_ultra_ps_e",
    vlnv="xilinx.com:ip:zynq_ultra_ps_e:3.5",
    control="M_AXI_HPM0_FPD",
    memory="S_AXI_HP0_FPD",
    interrupt="pl_ps_irq0",
    clock="pl_clk0",
    reset="pl_resetn0",
    port_clocks=("maxihpm0_fpd_aclk", "saxihp0_fpd_aclk"),
    parameters={
        "PSU__FPGA_PL0_ENABLE": 1,
        "PSU__USE__M_AXI_GP0": 1,  # HPM0_FPD
        "PSU__USE__M_AXI_GP1": 0,  # HPM1_FPD, which presets turn on
        "PSU__USE__M_AXI_GP2": 0,  # HPM0_LPD, the same
        "PSU__USE__S_AXI_GP2": 1,  # HP0_FPD
        "PSU__USE__IRQ0": 1,
    },
    clock_parameter="PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ",
    clock_range_mhz=(1, 400),
    automation={"apply_board_preset": "1"},
    address_bits=40,
    part=("xczu7ev", "ffvc1156", "-2-e"),
    machine="aarch64",
    bases={"device": 0xA001_0000, "dma": 0xA000_0000, "interrupts": 0xA002_0000, "packetizer": 0xA003_0000},
)

PROCESSORS = {"zynq": ZYNQ, "zynqmp": ZYNQMP}
