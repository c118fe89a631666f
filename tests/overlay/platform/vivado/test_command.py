"""bitloom build --board, and what builds keep of it."""

import json
import re
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result

from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.build import build as builds
from bitloom.overlay.platform.boards import BOARDS
from tests import commands

FOLDING = ("--kfp", "8", "--kgp", "4", "--ol", "1", "--pfp", "3")


call = partial(commands.call, "build", "digits-cnn", *FOLDING)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A build for a board that is by estimate too small, and what the command said."""
    folder = tmp_path_factory.mktemp("command") / "build"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitloom.overlay.cli.build.estimate", lambda design: Resources(lut=60_000, bram36=2.5))
        result = call("--out", str(folder), "--board", "pynq-z2", "--clock-mhz", "62.5")
    assert result.exit_code == 0, result.output
    return folder, result


def test_says_what_to_do_next(built):
    folder, result = built
    assert re.search(r"│ board +│ +Pynq-Z2 │", result.stdout)
    assert re.search(r"│ sources +│ ", result.stdout)
    assert f"bitstream for Pynq-Z2, on a machine with Vivado: make -C {folder / 'vivado'}\n" in result.stdout
    assert (
        "warning: by estimate the device alone takes 60,000 LUT, 0 LUT RAM, 0 FF, 2.5 BRAM36, 0 DSP; "
        "Pynq-Z2 has 53,200 LUT, 17,400 LUT RAM, 106,400 FF, 140 BRAM36, 220 DSP\n"
    ) in result.stderr


def test_a_board_adds_sources(built):
    folder, _ = built
    loaded = builds.load(folder)
    assert loaded.sources == folder / "vivado"
    assert "set clock_mhz 62.5\n" in (loaded.sources / "design.tcl").read_text()
    copied = loaded.sources / "digits-cnn.program.npz"
    assert copied.read_bytes() == loaded.programs["digits-cnn"].read_bytes()
    for path in (folder / "rtl").iterdir():  # synthesis/ in place of rtl/
        chosen = folder / "synthesis" / path.name
        expected = chosen if chosen.exists() else path
        assert (loaded.sources / "src" / path.name).read_bytes() == expected.read_bytes()
    assert any((folder / "synthesis").iterdir())


def test_the_simulation_is_of_that_board(built):
    folder, _ = built
    root = ET.parse(next(folder.glob("*.hwh"))).getroot()
    system = root.find("SYSTEMINFO")
    assert system is not None
    assert (system.get("ARCH"), system.get("BOARD")) == ("zynq", "tul.com.tw:pynq-z2:part0")
    clocks = {p.get("VALUE") for p in root.iter("PARAMETER") if p.get("NAME") == "PCW_ACT_FPGA0_PERIPHERAL_FREQMHZ"}
    assert clocks == {"62.5"}


def test_a_mistake_is_told_and_the_old_build_stays(built):
    folder, _ = built
    result = call("--out", str(folder), "--board", "KV260", "--arch", "zynq")
    said = "bitloom: block design digits-cnn: arch must be zynqmp on KV260, got 'zynq'"
    assert (result.exit_code, str(result.exception)) == (1, said)
    assert builds.load(folder).bit.exists()
    assert (folder / "vivado" / "design.tcl").exists()


def test_without_a_board_there_are_none(built):
    """Runs last: it builds in the same folder."""
    folder, _ = built
    result = call("--out", str(folder), "--json")
    assert result.exit_code == 0, result.output
    assert not {"board", "sources"} & set(json.loads(result.stdout))
    assert not (folder / "vivado").exists()
    assert builds.load(folder).sources is None


def test_only_boards_that_there_are(tmp_path):
    result = call("--out", str(tmp_path), "--board", "zed")
    assert result.exit_code == 2
    boards = f"{', '.join(BOARDS)}, or a TOML file of your own board"
    assert result.output.endswith(f"Error: Invalid value for '--board': must be one of {boards}, got 'zed'\n")
