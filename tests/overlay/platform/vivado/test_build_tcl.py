"""build.tcl, run against stand-ins: what it makes is what the .hwh says; its timing check, its output, its mistakes."""

import json
import re

import pytest

from bitloom.overlay.platform.block_design import DMA, LINES
from bitloom.overlay.platform.boards import BOARDS
from bitloom.overlay.platform.dma_core import AMD, OWN
from bitloom.overlay.platform.hwh import hwh_text

from . import hwh
from .blocks import Recorded
from .conftest import PROGRAM
from .tcl import BACKENDS, TclError
from .vivado import Vivado


def same(left: str, right: str) -> bool:
    """Equal as text or as numbers."""
    try:
        return float(left) == float(right)
    except ValueError:
        return left == right


CASES = [(board, AMD, bits, "") for board in BOARDS for bits in (32, 64)] + [
    (board, dma, bits, marks)
    for board in ("Pynq-Z2", "ZCU104")
    for dma, bits, marks in ((OWN, 32, ""), (OWN, 64, ""), (AMD, 32, "video"), (OWN, 64, "packet"))
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("board", "dma", "stream_bits", "marks"), CASES, ids=lambda v: getattr(v, "name", v))
def test_the_block_design_is_what_the_hwh_says(sources, board, dma, stream_bits, marks):
    project = sources(board, stream_bits, clock_mhz=125.0, dma=dma, marks=marks)
    built = project.build().design
    said = hwh.read(hwh_text(project.design))
    assert {name: cell.vlnv for name, cell in built.cells.items()} == said.cells
    assert built.links == said.links
    assert built.drivers == said.drivers
    control = f"{project.design.processor.instance}/Data"
    registers = {s.rpartition("/")[0]: at for (space, s), at in built.segments.items() if space == control}
    assert registers == said.ranges
    for name, cell in built.cells.items():
        for key, value in cell.values.items():
            default, _ = cell.core.parameters[key]
            told = said.parameters[name].get(key)
            if told is None:  # the hwh may leave out what has its default, or what the board's preset says
                assert value in (str(default), str(cell.core.preset.get(key))), f"{name}: {key} is {value}"
            else:
                assert same(told, value), f"{name}: {key} is {value}, {told} in the hwh"


@pytest.mark.parametrize("board", ["Pynq-Z2", "ZCU104"])
def test_what_the_hwh_says_is_right(sources, board):
    """The test above would pass if both were wrong in one way."""
    project = sources(board, 64, clock_mhz=125.0)
    built = project.build().design
    ps = project.design.processor
    zynq = board == "Pynq-Z2"
    assert built.drivers["xlconcat_0/In0"] == "axi_dma_0/mm2s_introut"
    assert built.drivers["xlconcat_0/In1"] == "axi_dma_0/s2mm_introut"
    assert built.drivers["xlconcat_0/In2"] == "bitloom_0/irq"
    assert len(LINES) == int(built.cells["xlconcat_0"].values["NUM_PORTS"]) == 3
    assert built.drivers["axi_intc_0/intr"] == "xlconcat_0/dout"
    assert built.drivers["processing_system7_0/IRQ_F2P" if zynq else "zynq_ultra_ps_e_0/pl_ps_irq0"] == "axi_intc_0/irq"
    clock = "processing_system7_0/FCLK_CLK0" if zynq else "zynq_ultra_ps_e_0/pl_clk0"
    assert {d for sink, d in built.drivers.items() if sink.lower().endswith(("clk", "aclk"))} == {clock}
    assert float(built.cells[ps.instance].values[ps.clock_parameter]) == 125.0
    bases = (0x4040_0000, 0x43C0_0000, 0x4180_0000) if zynq else (0xA000_0000, 0xA001_0000, 0xA002_0000)
    space = f"{ps.instance}/Data"
    assert built.segments == {
        (space, "axi_dma_0/S_AXI_LITE/Reg"): (bases[0], 0x10000),
        (space, "bitloom_0/s_axi/Reg"): (bases[1], 0x1000),
        (space, "axi_intc_0/s_axi/Reg"): (bases[2], 0x10000),
    }
    dma = built.cells[DMA].values
    assert (dma["c_include_sg"], dma["c_sg_length_width"]) == ("0", "26")
    assert {dma[key] for key in dma if key.endswith("data_width")} == {"64"}
    assert dma["c_addr_width"] == ("32" if zynq else "40")


def loose(design: Recorded) -> set[str]:
    """Inputs that nothing drives, and interfaces that are connected to none."""
    linked = {*design.links, *design.links.values(), *design.external}
    inputs = {
        f"{cell.name}/{pin.name}"
        for cell in design.cells.values()
        for pin in cell.pins.values()
        if pin.needed and pin.direction == "I"
    }
    interfaces = {f"{cell.name}/{name}" for cell in design.cells.values() for name in cell.buses}
    return (inputs - set(design.drivers)) | (interfaces - linked)


@pytest.mark.sample(8)
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("dma", [AMD, OWN])
def test_nothing_is_left_unconnected(sources, board, dma):
    assert loose(sources(board, dma=dma).build().design) == set()


@pytest.mark.parametrize("board", ["Pynq-Z2", "ZCU104"])
def test_our_dma_takes_the_place_of_amds(sources, board):
    project = sources(board, 64, dma=OWN)
    built = project.build().design
    assert not {cell.vlnv for cell in built.cells.values() if ":axi_dma:" in cell.vlnv}
    assert built.cells[DMA].vlnv == OWN.vlnv
    assert built.links["bitloom_0/s_axis"] == "axi_dma_0/m_axis_mm2s"
    assert built.links["axi_dma_0/s_axis_s2mm"] == "bitloom_0/m_axis"
    ways = {built.links[f"smartconnect_0/S0{k}_AXI"] for k in (0, 1)}
    assert ways == {"axi_dma_0/m_axi_mm2s", "axi_dma_0/m_axi_s2mm"}
    assert built.drivers["axi_dma_0/rst"] == "proc_sys_reset_0/peripheral_reset"
    assert [built.drivers[f"xlconcat_0/In{k}"] for k in (0, 1)] == ["axi_dma_0/mm2s_introut", "axi_dma_0/s2mm_introut"]
    segment = built.segments[f"{project.design.processor.instance}/Data", "axi_dma_0/s_axi/Reg"]
    assert segment == (0x4040_0000 if board == "Pynq-Z2" else 0xA000_0000, 0x1000)


def test_the_newest_ip_cores_are_taken(sources):
    project = sources()
    project.package()
    vivado = Vivado()
    for version in ("7.2", "7.10"):
        vivado.catalogue[f"xilinx.com:ip:axi_dma:{version}"] = vivado.catalogue["xilinx.com:ip:axi_dma:7.1"]
    vivado.run(project.folder / "build.tcl")
    assert vivado.design.cells[DMA].vlnv == "xilinx.com:ip:axi_dma:7.10"


def test_files_come_out_under_one_stem(sources):
    project = sources()
    project.build()
    (bit,) = (project.folder / "output").glob("*.bit")
    assert re.fullmatch(r"digits_cnn_[0-9a-f]{12}", bit.stem)
    assert project.output == sorted([f"{bit.stem}.{x}" for x in ("bit", "hwh", "manifest.json", "xsa")] + [PROGRAM])
    assert json.loads(bit.with_suffix(".manifest.json").read_text()) == json.loads(json.dumps(project.manifest))
    assert (project.folder / "output" / PROGRAM).read_bytes() == b"a compiled network"
    assert bit.with_suffix(".hwh").read_text().startswith("<EDKSYSTEM>")
    project.build()  # the same bitstream, the same names
    assert len(project.output) == 5
    project.build("50")
    assert len(project.output) == 9


@pytest.mark.parametrize(
    ("slack", "said"),
    [
        ({"setup": -0.001}, "slack must be >= 0, got WNS -0.001 ns and WHS 0.02 ns at 100 MHz"),
        ({"hold": -0.5}, "slack must be >= 0, got WNS 0.25 ns and WHS -0.5 ns at 100 MHz"),
        ({"setup": None}, "setup must be timed, found no path with a clock"),
        ({"hold": None}, "hold must be timed, found no path with a clock"),
    ],
)
def test_negative_slack_fails_and_leaves_nothing(sources, slack, said):
    project = sources()
    with pytest.raises(TclError, match=f"^bitloom: {re.escape(said)}"):
        project.build(slack=slack)
    assert project.output == []
    assert (project.folder / "work" / "timing.rpt").is_file()


def test_a_failed_implementation_is_told(sources):
    project = sources()
    with pytest.raises(TclError, match=r"^bitloom: impl_1 must complete, its status is place_design ERROR: see "):
        project.build(progress="40%")
    assert project.output == []


def test_missing_board_files_are_told(sources):
    project = sources()
    said = (
        "bitloom: Vivado must know the board Pynq-Z2, found no tul.com.tw:pynq-z2:part0:* (from "
        "https://github.com/Xilinx/XilinxBoardStore): install it in Vivado's board store, or say make "
        "BOARD_FILES=FOLDER"
    )
    with pytest.raises(TclError, match=f"^{re.escape(said)}$"):
        project.build(board_parts=("xilinx.com:zcu104:part0:1.1",))


@pytest.mark.skipif(len(BACKENDS) < 2, reason="needs tkinter and tclsh")
def test_both_interpreters_agree(sources):
    project = sources("ZCU104", 64)
    one, other = (project.build(backend=backend) for backend in BACKENDS)
    assert one.printed == other.printed
    assert (one.design.links, one.design.drivers) == (other.design.links, other.design.drivers)
    assert one.design.segments == other.design.segments
    assert {n: c.values for n, c in one.design.cells.items()} == {n: c.values for n, c in other.design.cells.items()}


def test_a_preset_that_turns_on_a_second_port_is_turned_off(sources):
    project = sources("ZCU104")
    project.change("design.tcl", "PSU__USE__M_AXI_GP1 0 ", "")
    port = {"zynq_ultra_ps_e_0/maxihpm1_fpd_aclk", "zynq_ultra_ps_e_0/M_AXI_HPM1_FPD"}
    assert loose(project.build().design) == port
