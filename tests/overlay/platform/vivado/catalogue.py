"""IP cores of Vivado's catalogue as far as the block design uses them: parameters, pins and interfaces.

Sources: AMD PG021 (AXI DMA), PG059 (AXI interconnect), PG247 (SmartConnect), PG099 (AXI INTC), PG164 (reset), PG085
(width converter), PG082 and PG201 (processing systems). test_catalogue.py compares names with .hwh files that Vivado
wrote.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Values = Mapping[str, str]
Rule = Callable[[str], bool]


def one_of(*allowed: object) -> Rule:
    """The value is one of these."""
    return lambda value: value in [str(a) for a in allowed]


def whole(low: int, high: int) -> Rule:
    """The value is an integer in this range."""
    return lambda value: value.isdecimal() and low <= int(value) <= high


def number(low: float, high: float) -> Rule:
    """The value is a number in this range."""

    def rule(value: str) -> bool:
        try:
            return low <= float(value) <= high
        except ValueError:
            return False

    return rule


SWITCH = one_of(0, 1)


@dataclass(frozen=True)
class Pin:
    """kind : clk, rst (active low), rst_high or interrupt. needed : an error if it isn't connected."""

    name: str
    direction: str
    kind: str
    needed: bool = True


@dataclass(frozen=True)
class Bus:
    """An interface. kind : aximm, axis, or that of an external one."""

    name: str
    kind: str
    mode: str
    segment: str = ""  # of a slave with an address
    space: str = ""  # of a master with addresses


@dataclass(frozen=True)
class IpCore:
    """parameters : name -> default and rule. preset : what a board's preset sets."""

    parameters: Mapping[str, tuple[object, Rule]]
    pins: Callable[[Values], list[Pin]]
    buses: Callable[[Values], list[Bus]]
    preset: Mapping[str, object] = field(default_factory=dict)
    clock_parameter: str = ""
    clock_pin: str = ""


def clk(*names: str) -> list[Pin]:
    """Clock inputs."""
    return [Pin(name, "I", "clk") for name in names]


def rst(*names: str) -> list[Pin]:
    """Reset inputs, active low."""
    return [Pin(name, "I", "rst") for name in names]


def _on(values: Values, *names: str) -> bool:
    return all(values[name] == "1" for name in names)


def _ps7_pins(v: Values) -> list[Pin]:
    ports = {"PCW_USE_M_AXI_GP0": "M_AXI_GP0", "PCW_USE_M_AXI_GP1": "M_AXI_GP1", "PCW_USE_S_AXI_HP0": "S_AXI_HP0"}
    out = clk(*(f"{port}_ACLK" for name, port in ports.items() if _on(v, name)))
    if _on(v, "PCW_EN_CLK0_PORT"):
        out.append(Pin("FCLK_CLK0", "O", "clk"))
    if _on(v, "PCW_EN_RST0_PORT"):
        out.append(Pin("FCLK_RESET0_N", "O", "rst"))
    if _on(v, "PCW_USE_FABRIC_INTERRUPT", "PCW_IRQ_F2P_INTR"):
        out.append(Pin("IRQ_F2P", "I", "interrupt"))
    return out


def _ps7_buses(v: Values) -> list[Bus]:
    out = [Bus("DDR", "ddrx", "master"), Bus("FIXED_IO", "fixedio", "master")]
    out += [
        Bus(port, "aximm", "master", space="Data") for port in ("M_AXI_GP0", "M_AXI_GP1") if _on(v, f"PCW_USE_{port}")
    ]
    if _on(v, "PCW_USE_S_AXI_HP0"):
        out.append(Bus("S_AXI_HP0", "aximm", "slave", segment="HP0_DDR_LOWOCM"))
    return out


PS7 = IpCore(
    parameters={
        "PCW_EN_CLK0_PORT": (0, SWITCH),
        "PCW_EN_RST0_PORT": (0, SWITCH),
        "PCW_USE_M_AXI_GP0": (0, SWITCH),
        "PCW_USE_M_AXI_GP1": (0, SWITCH),
        "PCW_USE_S_AXI_HP0": (0, SWITCH),
        "PCW_USE_FABRIC_INTERRUPT": (0, SWITCH),
        "PCW_IRQ_F2P_INTR": (0, SWITCH),
        "PCW_FPGA0_PERIPHERAL_FREQMHZ": (50, number(0.1, 250)),
    },
    pins=_ps7_pins,
    buses=_ps7_buses,
    preset={"PCW_USE_M_AXI_GP0": 1, "PCW_EN_CLK0_PORT": 1, "PCW_EN_RST0_PORT": 1},
    clock_parameter="PCW_FPGA0_PERIPHERAL_FREQMHZ",
    clock_pin="FCLK_CLK0",
)

PSU_MASTERS = {"PSU__USE__M_AXI_GP0": "HPM0_FPD", "PSU__USE__M_AXI_GP1": "HPM1_FPD", "PSU__USE__M_AXI_GP2": "HPM0_LPD"}


def _psu_pins(v: Values) -> list[Pin]:
    out = clk(*(f"maxi{port.lower()}_aclk" for name, port in PSU_MASTERS.items() if _on(v, name)))
    if _on(v, "PSU__USE__S_AXI_GP2"):
        out += clk("saxihp0_fpd_aclk")
    if _on(v, "PSU__FPGA_PL0_ENABLE"):
        out.append(Pin("pl_clk0", "O", "clk"))
    if _on(v, "PSU__USE__IRQ0"):
        out.append(Pin("pl_ps_irq0", "I", "interrupt"))
    return [*out, Pin("pl_resetn0", "O", "rst")]


def _psu_buses(v: Values) -> list[Bus]:
    out = [Bus(f"M_AXI_{port}", "aximm", "master", space="Data") for name, port in PSU_MASTERS.items() if _on(v, name)]
    if _on(v, "PSU__USE__S_AXI_GP2"):
        out.append(Bus("S_AXI_HP0_FPD", "aximm", "slave", segment="HP0_DDR_LOW"))
    return out


PSU = IpCore(
    parameters={
        **{name: (1 if name.endswith("GP2") else 0, SWITCH) for name in PSU_MASTERS},
        "PSU__USE__S_AXI_GP2": (0, SWITCH),
        "PSU__USE__IRQ0": (0, SWITCH),
        "PSU__FPGA_PL0_ENABLE": (0, SWITCH),
        "PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ": (100, number(0.1, 400)),
    },
    pins=_psu_pins,
    buses=_psu_buses,
    preset={"PSU__USE__M_AXI_GP0": 1, "PSU__USE__M_AXI_GP1": 1, "PSU__USE__M_AXI_GP2": 0, "PSU__FPGA_PL0_ENABLE": 1},
    clock_parameter="PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ",
    clock_pin="pl_clk0",
)


def _dma_pins(v: Values) -> list[Pin]:
    out = [*clk("s_axi_lite_aclk"), *rst("axi_resetn")]
    out += clk("m_axi_sg_aclk") if _on(v, "c_include_sg") else []
    for way in ("mm2s", "s2mm"):
        if _on(v, f"c_include_{way}"):
            out += clk(f"m_axi_{way}_aclk")
            out += [Pin(f"{way}_prmry_reset_out_n", "O", "rst"), Pin(f"{way}_introut", "O", "interrupt")]
    return out


def _dma_buses(v: Values) -> list[Bus]:
    out = [Bus("S_AXI_LITE", "aximm", "slave", segment="Reg")]
    if _on(v, "c_include_sg"):
        out.append(Bus("M_AXI_SG", "aximm", "master", space="Data_SG"))
    for way, name, mode in (("mm2s", "M_AXIS_MM2S", "master"), ("s2mm", "S_AXIS_S2MM", "slave")):
        if _on(v, f"c_include_{way}"):
            out.append(Bus(f"M_AXI_{way.upper()}", "aximm", "master", space=f"Data_{way.upper()}"))
            out.append(Bus(name, "axis", mode))
    return out


WIDTHS = one_of(32, 64, 128, 256, 512, 1024)
DMA = IpCore(
    parameters={
        "c_include_sg": (1, SWITCH),
        "c_micro_dma": (0, SWITCH),
        "c_sg_length_width": (14, whole(8, 26)),
        "c_include_mm2s": (1, SWITCH),
        "c_include_s2mm": (1, SWITCH),
        "c_include_mm2s_dre": (0, SWITCH),
        "c_include_s2mm_dre": (0, SWITCH),
        "c_m_axi_mm2s_data_width": (32, WIDTHS),
        "c_m_axi_s2mm_data_width": (32, WIDTHS),
        "c_m_axis_mm2s_tdata_width": (32, one_of(8, 16, 32, 64, 128, 256, 512, 1024)),
        "c_s_axis_s2mm_tdata_width": (32, one_of(8, 16, 32, 64, 128, 256, 512, 1024)),
        "c_mm2s_burst_size": (16, one_of(2, 4, 8, 16, 32, 64, 128, 256)),
        "c_s2mm_burst_size": (16, one_of(2, 4, 8, 16, 32, 64, 128, 256)),
        "c_addr_width": (32, whole(32, 64)),
    },
    pins=_dma_pins,
    buses=_dma_buses,
)


def _ends(v: Values) -> list[tuple[str, str]]:
    return [(f"S{i:02}", "slave") for i in range(int(v["NUM_SI"]))] + [
        (f"M{i:02}", "master") for i in range(int(v["NUM_MI"]))
    ]


INTERCONNECT = IpCore(
    parameters={"NUM_SI": (1, whole(1, 16)), "NUM_MI": (2, whole(1, 64))},
    pins=lambda v: [
        *clk("ACLK", *(f"{end}_ACLK" for end, _ in _ends(v))),
        *rst("ARESETN", *(f"{end}_ARESETN" for end, _ in _ends(v))),
    ],
    buses=lambda v: [Bus(f"{end}_AXI", "aximm", mode) for end, mode in _ends(v)],
)

SMARTCONNECT = IpCore(
    parameters={"NUM_SI": (2, whole(1, 16)), "NUM_MI": (1, whole(1, 16)), "NUM_CLKS": (1, whole(1, 16))},
    pins=lambda v: [*clk("aclk"), *rst("aresetn")],
    buses=lambda v: [Bus(f"{end}_AXI", "aximm", mode) for end, mode in _ends(v)],
)

RESET = IpCore(
    parameters={"C_EXT_RESET_HIGH": (0, SWITCH), "C_AUX_RESET_HIGH": (0, SWITCH)},
    pins=lambda v: [
        *clk("slowest_sync_clk"),
        *rst("ext_reset_in"),
        Pin("aux_reset_in", "I", "rst", needed=False),
        Pin("mb_debug_sys_rst", "I", "rst_high", needed=False),
        Pin("dcm_locked", "I", "data", needed=False),
        Pin("mb_reset", "O", "rst_high"),
        Pin("bus_struct_reset", "O", "rst_high"),
        Pin("peripheral_reset", "O", "rst_high"),
        Pin("interconnect_aresetn", "O", "rst"),
        Pin("peripheral_aresetn", "O", "rst"),
    ],
    buses=lambda v: [],
)

CONCAT = IpCore(
    parameters={"NUM_PORTS": (2, whole(1, 128))},
    pins=lambda v: [
        *(Pin(f"In{i}", "I", "interrupt") for i in range(int(v["NUM_PORTS"]))),
        Pin("dout", "O", "interrupt"),
    ],
    buses=lambda v: [],
)

INTC = IpCore(
    parameters={"C_IRQ_CONNECTION": (0, SWITCH), "C_KIND_OF_INTR": ("0xFFFFFFFF", lambda v: v.startswith("0x"))},
    pins=lambda v: [
        *clk("s_axi_aclk"),
        *rst("s_axi_aresetn"),
        Pin("intr", "I", "interrupt"),
        *([Pin("irq", "O", "interrupt")] if _on(v, "C_IRQ_CONNECTION") else []),
    ],
    buses=lambda v: [Bus("s_axi", "aximm", "slave", segment="Reg")],
)

WIDTH_CONVERTER = IpCore(
    parameters={
        "S_TDATA_NUM_BYTES": (1, whole(1, 512)),
        "M_TDATA_NUM_BYTES": (1, whole(1, 512)),
        "TUSER_BITS_PER_BYTE": (0, whole(0, 2048)),
        "HAS_TLAST": (1, SWITCH),
    },
    pins=lambda v: [*clk("aclk"), *rst("aresetn")],
    buses=lambda v: [Bus("S_AXIS", "axis", "slave"), Bus("M_AXIS", "axis", "master")],
)

CATALOGUE = {
    "xilinx.com:ip:processing_system7:5.5": PS7,
    "xilinx.com:ip:zynq_ultra_ps_e:3.5": PSU,
    "xilinx.com:ip:axi_dma:7.1": DMA,
    "xilinx.com:ip:axi_interconnect:2.1": INTERCONNECT,
    "xilinx.com:ip:smartconnect:1.0": SMARTCONNECT,
    "xilinx.com:ip:proc_sys_reset:5.0": RESET,
    "xilinx.com:ip:xlconcat:2.1": CONCAT,
    "xilinx.com:ip:axi_intc:4.1": INTC,
    "xilinx.com:ip:axis_dwidth_converter:1.1": WIDTH_CONVERTER,
}
AUTOMATION = {
    "xilinx.com:bd_rule:processing_system7": (
        "processing_system7",
        {"make_external", "apply_board_preset", "Master", "Slave"},
    ),
    "xilinx.com:bd_rule:zynq_ultra_ps_e": ("zynq_ultra_ps_e", {"apply_board_preset"}),
}
"""Rules of block automation: the core that each is for, and its options."""
