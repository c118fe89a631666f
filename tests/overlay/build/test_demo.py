"""The demo: digits-cnn, trained, on generated hardware, through the pynq driver, against golden."""

import json
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.golden.zoo import digits
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS, reference_design
from bitloom.overlay.build.run import Conditions, Run, run
from tests.errors import value_error


@pytest.fixture(scope="module")
def model() -> Model:
    return networks.load("digits-cnn")


@pytest.fixture(scope="module")
def build(model: Model, tmp_path_factory: pytest.TempPathFactory) -> builds.Build:
    folder = tmp_path_factory.mktemp("demo") / "build"
    return builds.build(folder, size_memories("digits", [model], DIGITS), [model])


def test_all_test_images_are_bit_exact_and_cycles_are_as_stated(model: Model, build: builds.Build) -> None:
    data = digits.load_digits()
    done = run(build, model, data.test_images)
    report = done.report(data.test_labels)
    assert done.bit_exact_frames == done.frames == 360
    assert report["accuracy_hardware"] == report["accuracy_golden"] >= 0.97
    assert done.program.ideal_cycles == 1346
    assert done.counters["npu0_beats"] == 360 * 1346
    waits = sum(count for key, count in done.counters.items() if key.startswith("npu0_"))
    assert waits == done.counters["cycles"]
    assert done.cycles_per_frame < 1.01 * 1346


@pytest.mark.parametrize(("frames", "batch", "transfers"), [(3, None, 2), (12, None, 2), (13, 4, 4)])
def test_cycles_do_not_hang_on_the_number_of_frames(
    model: Model, build: builds.Build, frames, batch, transfers
) -> None:
    """The first frame alone gives the latency; what comes after it in a transfer, the cycles between frames."""
    images = digits.load_digits().test_images[:frames]
    alone = Conditions(first_alone=True)
    done = run(build, model, images, batch=batch, conditions=alone)
    assert (done.bit_exact_frames, done.transfers) == (frames, transfers)
    assert (done.latency, done.cycles_between_frames) == (1_378, 1_358)
    report = done.report()
    assert (report["latency_cycles"], report["cycles_per_frame"]) == (done.latency, 1_358)
    assert report["utilisation"] == 1_346 / 1_358
    assert report["simulated_xnor_operations_per_second"] > 0
    assert "simulated_multiplications_per_second" not in report


def test_integers_are_multiplied(tmp_path: Path) -> None:
    """A design without an XNOR gate has no such operations: their number was 0."""
    model = networks.load("cifar-quick-int8")
    design = reference_design("cifar-quick-int8")
    small = builds.build(tmp_path, design.design("small", [model]), [model], choices=design.choices)
    counters = {"cycles": 1000, "npu0_beats": 500}
    outputs = np.zeros((2, 1, 1, 10), int)
    report = Run(
        program=small.program("cifar-quick-int8"),
        outputs=outputs,
        golden=outputs,
        counters=counters,
        seconds=2.0,
        build_seconds=0.0,
        design=small.design,
    ).report()
    assert report["simulated_multiplications_per_second"] == 500 * 64 / 2
    assert "simulated_xnor_operations_per_second" not in report


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_images_are_bit_exact_under_stalls(model: Model, build: builds.Build, seed: int) -> None:
    done = run(build, model, digits.load_digits().test_images[:90], conditions=Conditions(stall=0.4, seed=seed))
    assert done.bit_exact_frames == done.frames == 90
    assert done.counters["npu0_beats"] == 90 * 1346


def test_a_build_is_the_same_twice(model: Model, build: builds.Build, tmp_path: Path) -> None:
    again = builds.build(tmp_path / "again", build.design, [model])
    files = {p.relative_to(build.folder): p.read_bytes() for p in build.folder.rglob("*") if p.is_file()}
    assert files == {p.relative_to(again.folder): p.read_bytes() for p in again.folder.rglob("*") if p.is_file()}
    assert len(files) > 30


def test_another_model_is_refused(model: Model, build: builds.Build) -> None:
    arrays = {name: dict(values) for name, values in model.arrays.items()}
    arrays["dense_4"]["weight"] = -np.asarray(arrays["dense_4"]["weight"])
    other = Model(model.network, arrays)
    with pytest.raises(
        ValueError, match=r"digits-cnn was compiled from [0-9a-f]{16}, got the model [0-9a-f]{16}: build"
    ):
        run(build, other, digits.load_digits().test_images[:1])


def test_a_folder_with_other_files_is_left_alone(model: Model, build: builds.Build, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    message = f"{tmp_path}: must be empty or hold the build.json of before, got a folder with other files"
    with value_error(message):
        builds.build(tmp_path, build.design, [model])
    assert (tmp_path / "letter.txt").read_text() == "mine"


def test_a_broken_build_is_told(tmp_path: Path) -> None:
    (tmp_path / "build.json").write_text(json.dumps({"format": "tar"}))
    with value_error(f"{tmp_path / 'build.json'}: build: format must be bitloom-build, got 'tar'"):
        builds.load(tmp_path)


FLOWS = "dataflow must be one of output_stationary, input_stationary, input_stationary:N (N >= 2), auto, got"
CHOICES = {
    "dataflow": ({"map_order": "pull", "dataflow": "bogus"}, f"{FLOWS} 'bogus'"),
    "dataflow_of_a_layer": (
        {"map_order": "pull", "dataflow": {"conv_1": "input_stationary", "conv_2": 3}},
        f"{FLOWS} 3",
    ),
    "map_order": (
        {"map_order": "diagonal", "dataflow": "auto"},
        "map_order must be one of pull, raster, columns, auto, got 'diagonal'",
    ),
    "neither": ({}, "map_order must be one of pull, raster, columns, auto, got None"),
    "dataflow_list": ({"map_order": "raster", "dataflow": ["auto"]}, f"{FLOWS} ['auto']"),
    "no_dataflow": ({"map_order": "raster"}, f"{FLOWS} None"),
    "shortcuts": (
        {"map_order": "raster", "dataflow": "auto", "shortcuts": "never"},
        "shortcuts must be one of first, last, got 'never'",
    ),
    "copy_depthwise": (
        {"map_order": "raster", "dataflow": "auto", "copy_depthwise": 1},
        "copy_depthwise must be true or false, got 1",
    ),
}
"""Choices in a build.json, and what is wrong with them."""


def with_choices(build: builds.Build, folder: Path, choices: dict[str, object]) -> Path:
    """A build.json with other choices."""
    data = json.loads((build.folder / "build.json").read_text())
    kept = {key: value for key, value in data.items() if key not in ("map_order", "dataflow")}
    (folder / "build.json").write_text(json.dumps({**kept, **choices}))
    return folder / "build.json"


@pytest.mark.parametrize("name", CHOICES)
def test_choices_that_there_are_not_are_told(name: str, build: builds.Build, tmp_path: Path) -> None:
    choices, message = CHOICES[name]
    with value_error(f"{with_choices(build, tmp_path, choices)}: {message}"):
        builds.load(tmp_path)


def test_a_network_that_does_not_fit_is_told(model: Model, tmp_path: Path) -> None:
    from dataclasses import replace

    design = size_memories("digits", [model], DIGITS)
    small = replace(design, npus=(design.npus[0].changed(kernel_rows=80),))
    with value_error("digits-cnn: kernel_rows must be >= 81, design digits has 80"):
        builds.build(tmp_path, small, [model])
