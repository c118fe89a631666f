"""Where a notebook runs: boards and bitstreams that are there, and the virtual board where one is missing."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pynq.pl_server.device import Device

from bitloom.golden.distribution import pip_install
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.show.notebook import NotebookTarget, find
from bitloom.overlay.virtual.board import VirtualDevice

BOARD = SimpleNamespace(name="Pynq-Z2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the notebook runs in; there is no board at first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Device, "_active_device", None, raising=False)
    boards(monkeypatch)
    return tmp_path


def boards(monkeypatch: pytest.MonkeyPatch, *devices: Any) -> None:
    monkeypatch.setattr(Device, "_devices", list(devices), raising=False)


def bitstream(stem: str, design: str) -> str:
    """Files as they come from Vivado; path of the .bit."""
    Path(f"{stem}.manifest.json").write_text(json.dumps({"name": design}))
    Path(f"{stem}.bit").write_bytes(b"")
    return str(Path(f"{stem}.bit").absolute())


def test_a_bitstream_in_this_folder_by_the_name_in_its_manifest(monkeypatch):
    boards(monkeypatch, BOARD, SimpleNamespace(name="another"))
    bitstream("a_123", "other")
    bit = bitstream("b_456", "digits-cnn")
    place = find("digits-cnn")
    assert place == NotebookTarget("digits-cnn", bit, "Pynq-Z2")
    assert not place.virtual
    assert str(place) == "digits-cnn: b_456.bit on Pynq-Z2"
    assert Device.active_device is BOARD


def test_a_bitstream_where_pynq_looks(monkeypatch):
    boards(monkeypatch, BOARD)
    bit = bitstream("digits-cnn", "whatever its manifest says")
    assert find("digits-cnn") == NotebookTarget("digits-cnn", bit, "Pynq-Z2")


def test_a_bitstream_without_a_board():
    bitstream("digits-cnn", "digits-cnn")
    place = find("digits-cnn")
    assert place.virtual
    assert isinstance(place.board, VirtualDevice)
    assert Device.active_device is place.board
    assert Path(place.bit).parent == Path("build/digits-cnn")
    assert json.loads(Path(place.bit).with_suffix(".manifest.json").read_text())["name"] == "digits-cnn"
    assert str(place) == (
        "digits-cnn: no board with this bitstream here, so the virtual board simulates the design (built in "
        "build/digits-cnn)"
    )


def test_a_board_without_the_bitstream(monkeypatch):
    boards(monkeypatch, BOARD)
    bitstream("a_123", "other")
    Path("b_456.manifest.json").write_text(json.dumps({"name": "digits-cnn"}))  # its .bit is missing
    monkeypatch.setattr(builds, "build", lambda folder, *_, **__: SimpleNamespace(bit=folder / "made.bit", kept=()))
    place = find("digits-cnn", "here")
    assert (place.bit, place.virtual) == (str(Path("here/digits-cnn/made.bit")), True)


def test_the_design_is_built_as_the_reference_says(monkeypatch):
    """Map order, dataflow and mapping must be those for which the design's memories are large enough."""
    calls = []
    fake = SimpleNamespace(bit="made.bit", kept=())
    monkeypatch.setattr(builds, "build", lambda *a, **k: calls.append((a, k)) or fake)
    find("cnv-w1a1-max", "here")
    (folder, sized, models), options = calls[0]
    assert (folder, sized.design.name) == (Path("here/cnv-w1a1-max"), "cnv-w1a1-max")
    assert [m.network.name for m in models] == ["cnv-w1a1"]
    assert options == {"choices": REFERENCE_DESIGNS["cnv-w1a1-max"].choices}


def test_no_warning_without_a_board(monkeypatch, recwarn):
    monkeypatch.delattr(Device, "_devices")
    monkeypatch.setattr(type(Device), "_subclasses", {})
    monkeypatch.delenv("XILINX_XRT", raising=False)
    monkeypatch.setattr(builds, "build", lambda *_, **__: SimpleNamespace(bit="made.bit", kept=()))
    assert find("digits-cnn").virtual
    assert [str(warning.message) for warning in recwarn] == []


def test_nothing_to_run_on(monkeypatch):
    """As on a board without the generator's packages."""
    boards(monkeypatch, BOARD)
    monkeypatch.setitem(sys.modules, "bitloom.overlay.build.reference_designs", None)
    with pytest.raises(ImportError) as error:
        find("digits-cnn")
    assert str(error.value) == (
        f"digits-cnn: needs its bitstream and a board, or to simulate it: {pip_install('hls', 'sim')} "
        "(import of bitloom.overlay.build.reference_designs halted; None in sys.modules)"
    )


def test_unknown_design():
    with pytest.raises(ValueError, match=r"^design: name must be one of digits-cnn, .*, got 'nonet'\Z"):
        find("nonet")
