"""The command evaluate: a network of ours, a model file, a build; figures, pictures and errors."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.golden.zoo.digits import load_digits
from bitloom.overlay.build import build as builds
from bitloom.overlay.build import measured
from tests import board_data, commands
from tests.printed import lines, row

from .networks import corners

PREDICTED = {"by": "flow model", "cycles_per_frame": 1358.0, "latency_cycles": 1378, "clock_mhz": 100.0}
PREDICTED |= {"frames_per_second": 1e8 / 1358, "latency_us": 13.78}
"""Of digits-cnn: docs/reference/figures.md."""


call, error = (partial(each, "evaluate") for each in (commands.call, commands.error))


def facts(*arguments: object) -> dict:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def words(printed: str) -> str:
    """Cells of tables beside the labels, on one line even where they were wrapped."""
    return " ".join(cell for line in lines(printed) for cell in line[1:])


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build that the command makes for frames of a network of ours."""
    folder = tmp_path_factory.mktemp("evaluate") / "build"
    answers = facts("digits-cnn", "--limit", "2", "--hardware", "2", "--out", folder)
    assert answers["hardware"]["bit_exact_frames"] == 2
    return folder


def test_digits(tmp_path: Path) -> None:
    """All test images: the accuracy of the figures, and a matrix that scores by themselves give, too."""
    answers = facts("digits-cnn", "--plot", tmp_path / "new" / "a.svg")
    data = load_digits()
    outputs = networks.load("digits-cnn").forward(data.test_images)[:, 0, 0]
    confusion = np.zeros((10, 10), int)
    for label, scores in zip(data.test_labels, outputs):
        confusion[label, scores.argmax()] += 1
    assert answers["confusion"] == confusion.tolist()
    assert (answers["images"], answers["right"]) == (360, 354)
    assert answers["accuracy"] == 354 / 360
    assert answers["hardware"] == PREDICTED
    about = [answers[key] for key in ("network", "weights", "data", "transform", "class_rule")]
    assert about == ["digits-cnn", "trained, from digits-cnn.npz", "digits", "none", "largest"]
    picture = (tmp_path / "new" / "a.svg").read_text()
    assert picture.startswith("<?xml")
    assert "digits-cnn: 98.33% of 360 images" in picture


def test_tables() -> None:
    result = call("digits-cnn", "digits", "--limit", "50", "--clock-mhz", "200")
    assert result.exit_code == 0, result.output
    printed = result.stdout
    values = {"images": "50", "transform of the pixels": "none", "cycles a frame, by flow model": "1,358.0"}
    values |= {"latency, by flow model": "1,378 cycles", "frames a second at 200 MHz": "147,275"}
    assert {label: row(printed, label)[0] for label in values} == values
    assert row(printed, "latency at 200 MHz")[0] == "6.9 us"
    assert "the largest output, of equal ones the first" in words(printed)
    right = int(row(printed, "right")[0])
    assert row(printed, "accuracy") == [f"{right / 50:.2%}"]
    cells = [line for line in lines(printed) if len(line) == 11 and line[0].isdigit()]
    assert sum(int(cell) for line in cells for cell in line[1:]) == 50
    assert sum(int(line[1 + k]) for k, line in enumerate(cells)) == right


def test_hardware_equals_golden(build: Path) -> None:
    """A build's folder; what the flow model says of it is what the simulation counts."""
    assert list(builds.load(build).programs) == ["digits-cnn"]
    answers = facts(build, "digits", "--limit", "20", "--hardware", "4")
    assert answers["weights"] == f"build {build}"
    assert answers["hardware"] == {**PREDICTED, "by": "simulation", "frames": 4, "bit_exact_frames": 4}
    assert facts(build, "--limit", "20", "--network", "digits-cnn")["hardware"] == PREDICTED
    printed = call(build, "--limit", "20", "--hardware", "2").stdout
    assert row(printed, "bit-exact frames") == ["2 of 2"]


def test_a_wrong_frame_is_an_error(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report comes first, then one line."""
    real = measured.run

    def wrong(*arguments, **options):
        done = real(*arguments, **options)
        done.outputs[-1, 0, 0, 3] += 1
        return done

    monkeypatch.setattr(measured, "run", wrong)
    result = call(build, "--hardware", "2", "--limit", "2")
    told = "bitloom: digits-cnn: all 2 frames must equal golden, got 0"
    assert (result.exit_code, str(result.exception)) == (1, told)
    assert row(result.stdout, "bit-exact frames") == ["0 of 2"]


def test_a_model_file_and_its_data(tmp_path: Path) -> None:
    """Without a transform of its own it is none; bits tell the class by the highest; what was meant is printed."""
    file.save(corners(bits=True), tmp_path / "tiny.npz")
    pixels = np.array([[200, 200, 200, 200], [200, 200, 0, 0], [200, 0, 200, 0], [0, 0, 0, 0]], np.uint8)
    np.savez(tmp_path / "data.npz", x=pixels, y=[0, 1, 2, 1])
    given = [tmp_path / "tiny.npz", tmp_path / "data.npz"]
    answers = facts(*given, "--transform", "threshold:128")
    assert (answers["transform"], answers["class_rule"], answers["right"]) == ("threshold:128", "highest-set", 3)
    assert answers["confused"] == [{"class": "1", "taken_for": "0", "images": 1}]
    assert answers["recall"] == [1.0, 0.5, 1.0]
    assert answers["weights"] == f"model file {tmp_path / 'tiny.npz'}"
    assert facts(*given, "--transform", "threshold:128", "--class-rule", "largest")["class_rule"] == "largest"
    assert error(*given) == (
        f"bitloom: {tmp_path / 'data.npz'}: images with transform none: values must be bipolar 1 bit (-1..1 in steps "
        "of 2), got 200"
    )


def test_a_network_of_another_name_has_no_transform(tmp_path: Path) -> None:
    model = networks.load("digits-cnn")
    file.save(Model(replace(model.network, name="mine"), model.arrays), tmp_path / "mine.npz")
    answers = facts(tmp_path / "mine.npz", "digits")
    assert (answers["transform"], answers["right"], answers["hardware"]["by"]) == ("none", 354, "flow model")
    assert error(tmp_path / "mine.npz") == (
        "bitloom: mine: DATA must be given, a file, a folder or one of digits, mnist, got none"
    )


def test_errors(build: Path, tmp_path: Path) -> None:
    assert error("digits-cnn", tmp_path / "absent.npy") == (
        f"bitloom: {tmp_path / 'absent.npy'}: must exist, got no such file or folder"
    )
    assert error("digits-cnn", "--hardware", "361") == (
        "bitloom: digits: --hardware must be <= 360, the images to classify, got 361"
    )
    assert error("digits-cnn", "--hardware", "9", "--limit", "8") == (
        "bitloom: digits: --hardware must be <= 8, the images to classify, got 9"
    )
    assert error("digits-cnn", "--limit", "361") == (
        "bitloom: digits: --limit must be <= 360, the images that there are, got 361"
    )
    assert error("digits-cnn", "--transform", "half") == (
        "bitloom: transform: must be none, or up to 4 of minus:V, shift:1..31, threshold:T, fixed:2..16 with commas "
        "between them, got 'half'"
    )
    assert error("digits-cnn", "--network", "x") == (
        "bitloom: digits-cnn: --network is for a build's folder, which has several, got x"
    )
    assert error(build, "--network", "x") == f"bitloom: {build}: network must be one of digits-cnn, got 'x'"
    for given in ([build, "--hardware", "2"], ["digits-cnn"]):
        assert error(*given, "--out", tmp_path) == (
            f"bitloom: {given[0]}: --out is for the build that --hardware makes of a network, got {tmp_path}"
        )
    assert error("digits-cnn", "--plot", "a.gif") == (
        "bitloom: --plot: file name must end with .png or .svg, got a.gif"
    )
    assert call("digits-cnn", "--hardware", "1").exit_code == 2


def test_cycles_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden computes more networks than the compiler takes."""
    from bitloom.overlay.cli import evaluate

    def refuse(model):
        raise ValueError("mine: the compiler takes chains")

    monkeypatch.setattr(evaluate, "chosen_design", refuse)
    answers = facts("digits-cnn", "--limit", "3")
    assert answers["hardware"] == {"unknown": "no design by default: mine: the compiler takes chains"}
    printed = call("digits-cnn", "--limit", "3").stdout
    assert "not known: no design by default: mine: the compiler takes chains" in words(printed)


@pytest.fixture
def streamed(tmp_path: Path) -> Path:
    """A build whose weights come down the stream."""
    folder = tmp_path / "streamed"
    built = commands.call("build", "digits-cnn", "--stream-weights", "--out", folder)
    assert built.exit_code == 0, built.output
    return folder


def test_cycles_with_streamed_weights(streamed: Path) -> None:
    """The flow model waits for weights: a frame takes longer than where they stay."""
    streamed_weights, resident = (facts(what, "--limit", "3")["hardware"] for what in (streamed, "digits-cnn"))
    assert streamed_weights["by"] == resident["by"] == "flow model"
    assert streamed_weights["cycles_per_frame"] > resident["cycles_per_frame"]


@pytest.mark.slow
def test_cycles_with_streamed_weights_are_those_of_hardware(streamed: Path) -> None:
    modelled, simulated = (facts(streamed, "--limit", "4", *more)["hardware"] for more in ((), ("--hardware", "4")))
    assert (simulated["by"], simulated["bit_exact_frames"]) == ("simulation", 4)
    for key in ("cycles_per_frame", "latency_cycles"):
        assert modelled[key] == simulated[key], key


def test_mnist_is_9840_of_10000_by_the_boards_rule() -> None:
    """BNN-PYNQ's LFC W1A1 gets 98.40 % of MNIST right."""
    path = board_data.file("t10k-images-idx3-ubyte.gz")
    board_data.file("lfcW1A1_mnist.npz")
    answers = facts("lfc-w1a1", path)
    assert answers["data"] == str(path)
    assert (answers["images"], answers["right"], answers["accuracy"]) == (10_000, 9_840, 0.984)
    assert (answers["transform"], answers["class_rule"]) == ("threshold:128", "highest-set")
    assert answers["hardware"]["cycles_per_frame"] == 512


@pytest.mark.slow
def test_cifar_is_615_of_761() -> None:
    """The figure is golden's own, which gives what others recorded of 16 of these images (test_bnn_pynq.py). Of all
    10,000 images it is 80.1 % by the paper of FINN (Umuroglu and others, 2017), which the interval holds.
    """
    path = board_data.file("cifar10_test_first761.npz")
    board_data.file("cnvW1A1_cifar10.npz")
    answers = facts("cnv-w1a1", path)
    assert (answers["images"], answers["right"]) == (761, 615)
    assert answers["interval"][0] < 0.801 < answers["interval"][1]
    assert answers["classes"][3] == "Cat"
    assert {(pair["class"], pair["taken_for"]) for pair in answers["confused"][:2]} == {("Dog", "Cat"), ("Cat", "Dog")}
    assert answers["hardware"]["cycles_per_frame"] == 28_800
