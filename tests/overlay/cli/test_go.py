"""bitloom go: a file becomes a folder for a board, and a second call runs only what has changed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import Result

from bitloom.overlay.cli.go import _rows as rows
from bitloom.overlay.cli.options import LATENCY
from bitloom.overlay.explore.advice import Advice
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.platform.boards import RESOURCES
from tests.cases import random_model
from tests.commands import call
from tests.golden.layers.test_outputs import three_heads
from tests.graph_text import network_of

pytest.importorskip("pynq")
pytest.importorskip("onnx")


def go(*words: object) -> Result:
    return call("go", *words)


def steps(result: Result) -> list[str]:
    """The lines that begin a step, without its words."""
    return re.findall(r"(?m)^\d/\d (\w+: as before|bitloom \w+)", result.stderr)


ALL = ["import", "explore", "build", "evaluate", "report", "deploy"]


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps run in this process, which has imported all that they need. What a process does is tested below."""

    @contextmanager
    def process(command: list[str]) -> Iterator[SimpleNamespace]:
        done = call(*command[3:])
        yield SimpleNamespace(communicate=lambda: (done.stdout_bytes, None), returncode=done.exit_code)

    monkeypatch.setattr("bitloom.overlay.cli.go._process", process)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A QONNX file of two dense layers, and labelled images beside it that golden classifies all right but one."""
    folder = tmp_path_factory.mktemp("source")
    model = random_model(network_of("2x2x4", "dense first 8, act, dense last 4", name="tiny"), np.random.default_rng(1))
    (folder / "tiny.onnx").write_bytes(to_qonnx(model))
    images = np.random.default_rng(2).choice([-1, 1], (20, 2, 2, 4))
    labels = model.forward(images).reshape(20, -1).argmax(axis=1)
    labels[0] = (labels[0] + 1) % 4
    np.savez(folder / "images.npz", x=images, y=labels)
    return folder / "tiny.onnx"


def test_a_file_becomes_a_folder_for_a_board(source, tmp_path, in_process):
    words = (source, source.with_name("images.npz"), "--board", "pynq-z2", "--points", 1, "--out", tmp_path / "out")
    words = (*words, "--transform", "host")
    first = go(*words)
    assert first.exit_code == 0, first.stderr
    assert steps(first) == [f"bitloom {name}" for name in ALL]
    for told in ("95.00%, 19 of 20 images", "16 of 16 frames bit-exact", "exact for every sum", "Pynq-Z2, by formula"):
        assert told in first.stdout
    for name in ("report.html", "explore.svg", "confusion.svg", "board/driver.py", "build/vivado/Makefile"):
        assert (tmp_path / "out" / name).is_file()
    deployed = json.loads((tmp_path / "out" / "board" / "networks.json").read_text())
    assert deployed["networks"]["tiny"]["transform"] == "host"
    again = go(*words)
    assert steps(again) == [f"{name}: as before" for name in ALL]
    assert again.stdout == first.stdout
    card = json.loads(go(*words, "--json").stdout)
    assert card["right"] == 19
    assert card["advice"] == json.loads((tmp_path / "out" / "steps" / "report.json").read_text())["advice"] == []
    (tmp_path / "out" / "board" / "driver.py").unlink()  # a file of the board that is gone is made again
    assert steps(go(*words)) == [*(f"{name}: as before" for name in ALL[:5]), "bitloom deploy"]
    assert go(*words, "-q").stderr == ""
    (bit,) = (tmp_path / "out" / "board").glob("*.bit")  # Vivado makes a bitstream, which goes to the board
    output = tmp_path / "out" / "build" / "vivado" / "output"
    output.mkdir()
    (output / bit.name).write_bytes(b"configuration data")
    for suffix in (".hwh", ".manifest.json"):
        shutil.copy(bit.with_suffix(suffix), output)
    card = json.loads(go(*words, "--json").stdout)
    assert not card["simulation"]
    assert bit.read_bytes() == b"configuration data"
    assert steps(go(*words)) == [f"{name}: as before" for name in ALL]


@pytest.mark.slow
def test_what_comes_after_a_changed_option_runs_again(source, tmp_path, in_process):
    """Another number of frames: evaluate, and what comes after it."""
    words = (source, source.with_name("images.npz"), "--transform", "host", "--board", "pynq-z2", "--points", 1)
    words = (*words, "--out", tmp_path / "out")
    assert go(*words).exit_code == 0
    changed = go(*words, "--frames", 4)
    assert steps(changed)[:4] == [*(f"{name}: as before" for name in ALL[:3]), "bitloom evaluate"]
    assert steps(changed)[4] == "bitloom report"


def test_the_card_says_what_makes_frames_faster():
    change = Advice(0, "--ol 8", 500.0, 1.25, 400, 0, 0)
    card = {
        "frames": 2,
        "bit_exact_frames": 2,
        "clock_mhz": 100,
        "frames_per_second": 1.0,
        "cycles_per_frame": 1.0,
        "latency_us": 1.0,
        "latency_cycles": 1,
        "share_of": {"board": "B", **dict.fromkeys(RESOURCES, 0.5)},
        "advice": [asdict(change)],
        "page": "",
        "front": "",
        "board_folder": "",
        "sources": "",
        "simulation": False,
    }
    assert rows(card)["with --ol 8"] == "1.25 times as fast, 400 more LUT"


def test_a_step_that_fails_ends_it(source, tmp_path, monkeypatch):
    (tmp_path / "random.py").write_text("raise SystemExit('a file of the user')")
    monkeypatch.chdir(tmp_path)
    done = go(source, "--board", "pynq-z2", "--points", 1, "--rate", 1e9, "--out", tmp_path / "out")
    assert done.exit_code == 3
    assert steps(done) == ["bitloom import", "bitloom explore"]
    answer = tmp_path / "out" / "steps" / "explore.json"
    rule = f"explore must end with status 0, got 3; its answer is {answer}"
    assert done.stderr.splitlines()[-1] == f"bitloom: go: {rule}"
    assert json.loads(answer.read_text())["nearest"]
    assert not (tmp_path / "out" / "build").exists()


def test_a_network_without_classes_is_refused_before_the_search(source, tmp_path):
    (tmp_path / "heads.onnx").write_bytes(to_qonnx(three_heads()))
    words = (source.with_name("images.npz"), "--transform", "host", "--board", "pynq-z2", "--out", tmp_path / "out")
    done = go(tmp_path / "heads.onnx", *words)
    assert (done.exit_code, steps(done)) == (1, ["bitloom import"])
    rule = "heads: classes are of networks with one output, got 3: dense_3_out, act_1_out, act_2_out"
    rule += "; without DATA its outputs are compared with golden's on random images"
    assert done.stdout == f"bitloom: {rule}\n"


@pytest.mark.slow
def test_another_state_of_bitloom_takes_no_result_over(source, tmp_path, monkeypatch):
    words = source, "--board", "pynq-z2", "--points", 1, "--rate", 1e9, "--out", tmp_path / "out"
    assert steps(go(*words))[0] == "bitloom import"
    monkeypatch.setattr("bitloom.overlay.cli.go.package_digest", lambda: "another")
    assert steps(go(*words))[0] == "bitloom import"


def test_sigterm_ends_the_step_that_runs(tmp_path):
    code = "from bitloom.overlay.cli import main; main()"
    words = ["go", "digits-cnn", "--board", "pynq-z2", "--out", str(tmp_path / "out")]
    with subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline().startswith("1/5 bitloom explore")
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        if not children.exists():
            running.kill()
            pytest.skip("the system doesn't list the processes of a process")
        while not (steps := children.read_text().split()):
            time.sleep(0.05)
        running.terminate()
        assert running.wait(60) == 143
    assert not Path(f"/proc/{steps[0]}").exists()


def test_sigterm_while_a_process_is_made_leaves_none_behind(tmp_path, monkeypatch):
    processes = []

    class Signalled(subprocess.Popen):
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, **options)
            processes.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    result = go(
        "cnv-w1a1", "--board", "pynq-z2", "--out", tmp_path / "out"
    )  # whose images nobody gave: nothing is read
    monkeypatch.undo()
    assert result.exit_code == 143
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("digits-cnn", "--input", "bipolar"), "digits-cnn: --input is for a file that is imported, got bipolar"),
        (("cnv-w1a1", "--limit", "3"), "cnv-w1a1: --limit is for DATA, got 3 and no DATA"),
        (("digits-cnn", "--limit", "3"), "digits: --frames must be <= 3, the images to classify, got 16"),
        (("digits-cnn", "--frames", "999"), "digits: --frames must be <= 360, the images to classify, got 999"),
        (
            ("digits-cnn", "--transform", "minus:64"),
            "digits: images with transform minus:64: values must be unsigned 5 bit (0..31), got -64",
        ),
        (("digits-cnn", "no.npz"), "no.npz: must exist, got no such file or folder"),
        (("no.onnx",), "no.onnx: must be a file, got no such file"),
        (
            ("digits-cnn", "--transform", "bogus"),
            "transform: must be none, or up to 4 of minus:V, shift:1..31, "
            "threshold:T, fixed:2..16 with commas between them, got 'bogus'",
        ),
    ],
)
def test_what_would_be_dropped_is_refused(words, message, tmp_path):
    done = go(*words, "--board", "pynq-z2", "--out", tmp_path / "out")
    assert str(done.exception) == f"bitloom: {message}"
    assert not (tmp_path / "out").exists()


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "build.json").write_text("{}")
    done = go("digits-cnn", "--board", "pynq-z2", "--out", tmp_path)
    assert str(done.exception) == (
        f"bitloom: {tmp_path}: must be empty or hold the go.json of before, got a folder with other files"
    )


def test_images_are_checked_before_the_search(source, tmp_path, in_process):
    """A transform that isn't said, images of another network; and the folder is taken for that of the same command."""

    def refused(*words: object) -> str:
        done = go(source, *words, "--board", "pynq-z2", "--out", tmp_path / "out")
        assert done.exit_code == 1
        assert steps(done) == ["bitloom import"]
        return str(done.exception)

    said = refused(source.with_name("images.npz"))
    assert said.startswith("bitloom: tiny: --transform must say which real number a pixel stands for (")
    np.savez(tmp_path / "other.npz", x=np.zeros((20, 3, 3, 4), int), y=np.zeros(20, int))
    rule = "images must have shape (N, 2, 2, 4) or (N, 16), N >= 1, got (20, 3, 3, 4)"
    assert refused(tmp_path / "other.npz", "--transform", "host") == f"bitloom: {tmp_path / 'other.npz'}: {rule}"


def test_a_folder_in_which_the_first_step_failed_is_taken_again(source, tmp_path, in_process):
    (tmp_path / "net.onnx").write_bytes(b"nonsense")
    words = (tmp_path / "net.onnx", "--board", "pynq-z2", "--rate", 1e9, "--points", 1, "--out", tmp_path / "out")
    assert (go(*words).exit_code, steps(go(*words))) == (1, ["bitloom import"])
    shutil.copy(source, tmp_path / "net.onnx")
    done = go(*words)
    assert steps(done) == ["bitloom import", "bitloom explore"]


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("60000", 60000),
        ("500us", 50000),
        ("2ms", 200000),
        ("0.5s", 5e7),
        ("1.5us", 150),
        (".5ms", 50000),
        ("5.us", 500),
    ],
)
def test_latencies_in_cycles_and_in_time(text, cycles):
    assert LATENCY.cycles(text, 100) == cycles


@pytest.mark.parametrize("text", ["0", "0us", "-1", "5 us", "us", "1e9", "5ns", "nan", ".", ".us"])
def test_other_latencies_are_refused(text):
    done = call("explore", "digits-cnn", f"--latency={text}")
    assert done.exit_code == 2
    assert f"must be cycles, or a time above 0 such as 500us or 2ms, got {text}" in " ".join(done.stderr.split())


@pytest.mark.parametrize("text", ["0", "101%", "-5", "nan"])
def test_other_shares_are_refused(text):
    done = call("explore", "digits-cnn", "--board", "pynq-z2", f"--share={text}")
    assert done.exit_code == 2
    assert f"must be above 0 and at most 100 %, got {text}" in " ".join(done.stderr.split())


def test_a_share_needs_a_board():
    done = call("explore", "digits-cnn", "--share", "50%")
    assert (
        str(done.exception) == "bitloom: explore: --share is one of a board's device, it needs --board, got 50 % alone"
    )
