"""A training machine's files: overlay for the virtual board, sources for Vivado, and the command that writes them."""

import json
from pathlib import Path

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.training import TOP
from bitloom.hls_gen.design.training_manifest import TrainingManifest
from bitloom.hls_gen.rtl.training.generate import training_verilog
from bitloom.overlay.build.training import build_training_machine
from bitloom.overlay.platform.boards import PYNQ_Z2
from bitloom.overlay.platform.target import BoardTarget
from tests.commands import call
from tests.errors import value_error
from tests.overlay.platform.vivado import hwh

MACHINE = MachineParameters(slaves=2)


def test_files_of_a_build(tmp_path: Path) -> None:
    build = build_training_machine(tmp_path, "tutor", MACHINE, BoardTarget(board=PYNQ_Z2))
    assert build.sources == tmp_path / "vivado"
    manifest = TrainingManifest.load(build.bit.with_suffix(".manifest.json"))
    assert (manifest.name, manifest.machine, manifest.digest) == ("tutor", MACHINE, build.digest)
    assert build.bit.with_suffix(".v").read_text() == "\n".join(training_verilog(MACHINE).values())
    content = hwh.read(build.bit.with_suffix(".hwh").read_text())
    assert content.cells["bitloom_0"] == "bitloom:bitloom:training:0.1"
    assert content.parameters["bitloom_0"]["DIGEST"] == build.digest
    assert content.links["bitloom_0/s_axis"] == "axi_dma_0/M_AXIS_MM2S"
    assert content.links["axi_dma_0/S_AXIS_S2MM"] == "bitloom_0/m_axis"
    assert {r.get("NAME") for r in content.registers} == {r.name for r in manifest.registers}
    component = (build.sources / "component.xml").read_text()
    assert f"modelName>{TOP}</" in component
    assert "Machine that trains perceptrons on discrete data" in component
    sources = {path.stem for path in (build.sources / "src").glob("*.v")}
    assert sources == set(training_verilog(MACHINE))
    names = {path.name for path in build.sources.iterdir()}
    assert {"Makefile", "build.tcl", "package_ip.tcl", "tutor.manifest.json"} <= names


def test_the_command(tmp_path: Path) -> None:
    arguments = ["machine", "--name", "tutor", "--slaves", "2", "--out", str(tmp_path)]
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert TrainingManifest.load(Path(told["bit"]).with_suffix(".manifest.json")).digest == told["digest"]
    again = call(*arguments)
    assert again.exit_code == 0
    assert told["digest"] in again.stdout
    wrong = call("machine", "--slaves", "3", "--out", tmp_path)
    assert wrong.output == "bitloom: machine: slaves must be a power of two, got 3\n"
    with value_error("machine: tables must be 1..7, got 8"):
        MachineParameters(tables=8)
