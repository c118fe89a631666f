"""Notebooks: each runs from top to bottom in a clean kernel, and comes to the right results; files as they are kept.

A cell that is added at the end tells the values that the notebook leaves; tests look at these.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from bitloom.golden import zoo as networks
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.zoo import digits
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import reference_design
from bitloom.overlay.build.training import build_training_machine
from tests.commands import call
from tests.overlay.build.test_real_networks import FIGURES
from tests.paths import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CNV_DIGITS_RIGHT = 13
"""Of twenty digits, where CNV is trained on them."""
TFLITE_DIGITS_RIGHT = 343
"""Of 360 test images, by the network of residual_digits.tflite."""
SECONDS = 900
"""For one cell, the first build of a model among them, on a busy machine."""

AS_ON_A_BOARD = """\
import sys
absent = ["bitloom.hls_gen.rtl", "bitloom.overlay.build.build", "bitloom.overlay.build.training"]
sys.modules |= dict.fromkeys([*absent, "veriloggen", "sklearn", "click"])
from pynq.pl_server.device import Device
from bitloom.overlay.virtual.board import VirtualDevice
Device._devices = [VirtualDevice("board")]
"""
"""A first cell: pynq finds a board, and nothing can be generated."""

Values = dict[str, Any]
Notebook = Callable[..., Values]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """notebook(name, board, names, key="expression", ...) -> values at the end of variables, by their names, and of
    expressions, and under "pictures" the names of the cells that show one. board : design whose bitstream lies beside
    the notebook, on a board."""
    for variable, path in (("JUPYTER_DATA_DIR", "jupyter"), ("JUPYTER_RUNTIME_DIR", "run"), ("IPYTHONDIR", "ipython")):
        monkeypatch.setenv(variable, str(tmp_path / path))
    for variable in ("MPLBACKEND", "PYNQ_REMOTE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)

    def run(name: str, board: str | None = None, names: str = "", /, **expressions: str) -> Values:
        expressions |= {name: name for name in names.split()}
        folder = tmp_path / "notebooks"
        shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
        content = nbformat.read(folder / f"{name}.ipynb", as_version=4)
        if board is not None:
            if board == "training":
                machine_bitstream(folder)
            else:
                bitstream(board, tmp_path / "build", folder)
            content.cells.insert(0, new_code_cell(AS_ON_A_BOARD))
        wanted = ", ".join(f"{key!r}: {expression}" for key, expression in expressions.items())
        content.cells.append(new_code_cell(f"import json\nprint(json.dumps({{{wanted}}}, default=lambda v: v.item()))"))
        client = NotebookClient(
            content, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
        told = "".join(out.text for out in content.cells.pop().outputs if out.get("name") == "stdout")  # in pieces
        assert machine_paths(content.cells, tmp_path) == []
        return {**json.loads(told), "pictures": [cell.id for cell in content.cells if _picture(cell)]}

    return run


def machine_paths(cells: list[nbformat.NotebookNode], folder: Path) -> list[str]:
    """Outputs of cells that name a place of this machine, or in which a package complains."""
    texts = [json.dumps(output) for cell in cells for output in cell.get("outputs", [])]
    places = [str(place) for place in (folder, ROOT, sys.prefix, Path.home(), Path(np.__file__).parents[1])]
    return [text for text in texts if "Warning" in text or any(place in text for place in places)]


def bitstream(design: str, build: Path, folder: Path) -> None:
    """Put a bitstream of a reference design into ``folder``, as it comes from Vivado, but for simulation."""
    chosen = reference_design(design)
    models = chosen.models()
    finished = builds.build(build, chosen.design(design, models), models, choices=chosen.choices)
    for path in build.glob(f"{finished.bit.stem}.*"):
        shutil.copy(path, folder)


def machine_bitstream(folder: Path) -> None:
    """Put a bitstream of a training machine into ``folder``, for simulation."""
    build_training_machine(folder, "training", MachineParameters(slaves=2))


def _picture(cell: nbformat.NotebookNode) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestFile:
    def test_is_kept_without_outputs(self, path: Path):
        kept = nbformat.read(path, as_version=4)
        nbformat.validate(kept)
        assert (kept.nbformat, kept.nbformat_minor, kept.metadata) == (4, 5, METADATA)
        for cell in kept.cells:
            assert cell.metadata == {}
            if cell.cell_type == "code":
                assert (cell.outputs, cell.execution_count) == ([], None)

    def test_links_lead_to_files(self, path: Path):
        for cell in nbformat.read(path, as_version=4).cells:
            for target in re.findall(r"\]\(([^)#]+)\)", cell.source if cell.cell_type == "markdown" else ""):
                assert (FOLDER / target).is_file()


def test_images_are_those_of_the_demo():
    """The notebooks bring them along: a board has no scikit-learn."""
    with np.load(FOLDER / "digits.npz", allow_pickle=False) as kept:
        data = digits.load_digits()._asdict()
        assert set(kept) == set(data)
        for key, array in data.items():
            np.testing.assert_array_equal(kept[key], array)


@pytest.mark.slow
@pytest.mark.parametrize("board", [None, pytest.param("digits-cnn", marks=pytest.mark.slow)])
def test_first_steps(board: str | None, notebook: Notebook):
    shown = notebook(
        "1_first_steps",
        board,
        "exact counters",
        virtual="place.virtual",
        right="int((predicted == labels).sum())",
        classes="[int(k) for k in scores.argmax(axis=1)]",
        predicted="[int(k) for k in predicted]",
        cpu="[measured.definition, measured.kernels]",
        told="tables.beside_cpu(measured, cycles, place.virtual)",
    )
    assert shown["virtual"] == (board is None)
    assert all(seconds > 0 for seconds in shown["cpu"])
    assert f" cycles, {'simulated' if board is None else 'counted by the board'}  " in shown["told"]
    assert (shown["right"], shown["exact"]) == (354, 360)
    assert shown["classes"] == shown["predicted"]
    counters = shown["counters"]
    assert counters["frames"] == 2 * 360
    assert counters["npu0_beats"] == 2 * 360 * 1_346
    assert counters["cycles"] <= 1.02 * counters["npu0_beats"]
    assert shown["pictures"] == ["look", "confusion", "scores"]


@pytest.mark.slow
@pytest.mark.parametrize("board", [None, "digits-cnn-pipeline"])
def test_inside_the_accelerator(board: str | None, notebook: Notebook):
    beats = [484, 648, 392, 90]
    shown = notebook(
        "2_inside_the_accelerator",
        board,
        "alone four many",
        beats="[beats for _, beats in program.layers]",
        high="high if place.virtual else None",
        tables="{t.stage.name: [t.capacity(False), len(t.index)] for t in pull.tables}",
        orders="[orders['auto'], pull_bits, raster_bits]",
    )
    assert shown["beats"] == counted_beats(shown["alone"], 1) == counted_beats(shown["four"], 4) == beats
    assert counted_beats(shown["many"], 200) == beats
    _, _, steady, latency = FIGURES["digits-cnn-pipeline"]
    assert (shown["alone"]["cycles"], shown["four"]["cycles"]) == (latency, latency + 3 * steady)
    for counters in (shown["alone"], shown["four"], shown["many"]):
        for n in range(4):
            parts = (counters[f"npu{n}_{key}"] for key in ("beats", "wait_input", "wait_room", "wait_table"))
            assert sum(parts) == counters["cycles"]
    if board is None:
        assert shown["high"] == [5 * count for count in beats]  # in the waveform of the first five frames
    assert shown["tables"]["conv_2.pool"] == [1, 36]
    assert shown["orders"] == ["raster", 590_695, 498_887]
    assert shown["pictures"] == ["many", *(["wave", "zoom"] if board is None else []), "orders"]


def counted_beats(counters: dict[str, int], frames: int) -> list[float]:
    return [counters[f"npu{n}_beats"] / frames for n in range(4)]


@pytest.mark.slow
def test_make_your_own(notebook: Notebook, monkeypatch: pytest.MonkeyPatch):
    """The command that it names builds the same once more."""
    shown = notebook(
        "3_make_your_own",
        accuracy="accuracy",
        hardware="report['accuracy_hardware']",
        frames="[done.frames, done.bit_exact_frames]",
        cycles="[measured, figures.cycles]",
        lut="figures.lut",
        faster="[row.figures.lut for row in front if row.figures.cycles < figures.cycles]",
        board="target.name",
        sources="[path.name for path in build.sources.iterdir()]",
        digest="build.digest",
        model="file.model_digest(model)",
        folder="str(Path().absolute())",
    )
    assert shown["accuracy"] == shown["hardware"] > 0.94
    assert shown["frames"] == [360, 360]
    measured, promised = shown["cycles"]
    assert measured == promised <= 100e6 / 150_000
    assert shown["faster"]
    assert min(shown["faster"]) > shown["lut"]
    assert {"Makefile", "src", "component.xml", "my-digits.program.npz"} <= set(shown["sources"])
    assert shown["board"] == "Pynq-Z2"
    assert shown["pictures"] == ["curve", "choose"]
    monkeypatch.chdir(shown["folder"])
    text = (FOLDER / "3_make_your_own.ipynb").read_text()
    (command,) = re.findall(r"    bitloom (build .*)\"", text)
    again = call(*command.split(), "--json", catch_exceptions=False)
    assert json.loads(again.stdout)["digest"] == shown["digest"]
    assert builds.load("build/again").program("my-digits").model_digest == shown["model"]


@pytest.mark.slow
@pytest.mark.parametrize("board", [None, "cnv-w1a1-shared"])
def test_many_networks(board: str | None, notebook: Notebook):
    shown = notebook(
        "4_many_networks",
        board,
        "frames exact accuracy refusal",
        beats="program.ideal_cycles",
        odd="[int(k) for k in is_odd]",
        golden="[int(k) for k in model.forward(images).reshape(360, 2).argmax(axis=1)]",
    )
    assert list(shown["exact"]) == ["cnv-w1a1", "lfc-w1a1", "digits-cnn", "digits-or"]
    assert shown["exact"] == shown["frames"]
    assert min(shown["frames"].values()) > 0
    accuracy = {key: round(value, 3) for key, value in shown["accuracy"].items() if key != "odd"}
    assert accuracy == {"digits-cnn": 0.983, "digits-or": 0.919}
    assert shown["odd"] == shown["golden"]
    assert shown["accuracy"]["odd"] > 0.85
    assert shown["refusal"] == (
        "large: windows must be >= 961, design cnv-w1a1-shared has 900; input_words must be >= 3969, "
        "design cnv-w1a1-shared has 3600; tuple_words must be >= 130, design cnv-w1a1-shared has 128"
    )
    assert shown["pictures"] == ["digits"]


@pytest.mark.slow
@pytest.mark.parametrize("data", ["present", "absent"])
def test_cnv_on_cifar(data: str, notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if data == "absent":
        monkeypatch.setenv("BITLOOM_DATA", str(tmp_path / "nothing"))
    elif not (networks.data_folder() / "cnvW1A1_cifar10_golden.npz").exists():
        pytest.skip(f"recorded board data are absent: {networks.data_folder()} (set BITLOOM_DATA to their folder)")
    else:
        monkeypatch.setenv("BITLOOM_DATA", str(networks.data_folder()))
    shown = notebook(
        "5_cnv_on_cifar",
        None,
        "exact steady counters",
        trained="example.photographs",
        recorded="as_recorded if example.photographs else None",
        right="int((predicted == labels).sum())",
    )
    assert shown["exact"] == 20
    assert shown["trained"] == (data == "present")
    assert (shown["recorded"], shown["right"]) == ((4, 19) if data == "present" else (None, CNV_DIGITS_RIGHT))
    _, _, steady, latency = FIGURES["cnv-w1a1"]
    assert shown["steady"] == steady
    assert shown["counters"]["cycles"] == latency + 19 * steady
    assert shown["pictures"] == ["look", "all", "cycles"]


@pytest.mark.slow
@pytest.mark.parametrize("board", [None, "training"])
def test_training_machine(board: str | None, notebook: Notebook):
    shown = notebook(
        "6_training_machine",
        board,
        "curves exact cycles refusal",
        virtual="place.virtual",
        again="[int(word) for word in again]",
    )
    assert shown["virtual"] == (board is None)
    assert shown["exact"] == {"words": True, "codes of 2 bits": True}
    for curve in shown["curves"].values():
        assert curve[0] < 0.2
        assert curve[-1] > 0.8
    ideal = 2 * 128 * 10 / 2  # forward and dw, by two slaves
    assert all(ideal < cycles < 2 * ideal for cycles in shown["cycles"].values())
    assert shown["refusal"] == (
        "BAD_ADDRESS: the machine needs that rows and columns are 1 or more, and all addresses are in their caches, "
        "got instruction 0: IO LOAD_NEURONS rows=5000"
    )
    assert shown["again"] == [1, 2, 3]
    assert shown["pictures"] == ["curve"]


@pytest.mark.slow
@pytest.mark.parametrize("board", [None, "training"])
def test_learning_on_the_board(board: str | None, notebook: Notebook):
    """Curves rise, and go on after the reset; both cells that learn show one."""
    shown = notebook(
        "9_learning_on_the_board",
        board,
        "before curve exact",
        virtual="place.virtual",
        steps="STEPS",
    )
    assert shown["virtual"] == (board is None)
    assert len(shown["curve"]) == shown["steps"] + 1
    assert shown["curve"][: len(shown["before"])] == shown["before"]
    assert shown["before"][0] < 0.2
    assert shown["curve"][-1] > 0.85
    assert shown["exact"]
    assert shown["pictures"] == ["learn", "reset"]


@pytest.mark.slow
def test_from_brevitas(notebook: Notebook):
    """With the file that the notebook brings along, where Brevitas isn't installed."""
    pytest.importorskip("onnx")
    shown = notebook(
        "7_from_brevitas",
        None,
        "brevitas right cycles",
        exact="[exact, frames]",
        layers="[layer.name for layer in model.network.layers]",
    )
    assert shown["exact"] == [16, 16]
    assert shown["layers"] == ["conv_1", "requantise_1", "pool_1", "conv_2", "requantise_2", "dense_3"]
    if not shown["brevitas"]:
        assert shown["right"] == 354
    assert shown["right"] >= 342  # 95 %
    assert 0 < shown["cycles"] < 20_000


@pytest.mark.slow
def test_tflite_on_the_board(notebook: Notebook):
    pytest.importorskip("tflite")
    shown = notebook(
        "8_tflite_on_the_board",
        None,
        "wrong right cycles",
        exact="[exact, frames]",
        adds="[layer.name for layer in model.network.layers if layer.kind == 'add']",
        arrows="drawn.data.count('marker-end')",
        told="told.tolist() == probabilities.argmax(axis=1).tolist()",
    )
    assert shown["exact"] == [12, 12]
    assert (shown["wrong"], shown["right"]) == (0, TFLITE_DIGITS_RIGHT)
    assert shown["adds"] == ["add_4", "add_8"]
    assert shown["arrows"] == 19  # 17 layers, of which two read a second map
    assert shown["told"]
    assert 0 < shown["cycles"] < 60_000
    assert shown["pictures"] == ["scores"]


@pytest.mark.parametrize(("name", "most"), [("brevitas_digits.onnx", 200_000), ("residual_digits.tflite", 20_000)])
def test_a_file_says_nothing_of_where_it_was_made(name: str, most: int):
    data = (FOLDER / name).read_bytes()
    assert len(data) < most
    assert not re.search(rb"site-packages|/home/|/root/|/tmp/|\\Users", data)
