"""The command compile: networks become programs for a build that is there, and run on it bit for bit."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.golden import file, zoo
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.golden.training.architecture import network_of
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build import build as builds
from bitloom.overlay.virtual.board import activate
from tests.commands import call
from tests.hls_gen.compiler.test_depthwise import NPU, conv, depthwise, model_of
from tests.hls_gen.compiler.test_margins import other_weights
from tests.networks import random_images


def named(model: Model, name: str) -> Model:
    return Model(replace(model.network, name=name), dict(model.arrays))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build for digits-cnn on two NPUs, with choices of its own."""
    folder = tmp_path_factory.mktemp("compile") / "build"
    words = ("--kfp", 8, "--kgp", 4, "--topology", "cascade", "--npus", 2, "--mapping", "0,1,1,1")
    done = call("build", "digits-cnn", *words, "--map-order", "raster", "--chunk", "rows", "--out", folder)
    assert done.exit_code == 0, done.output
    return folder


def retrained(folder: Path, name: str, seed: int) -> Model:
    """digits-cnn with other weights and thresholds, in a file of its name."""
    model = named(other_weights(zoo.load("digits-cnn").network, seed), name)
    file.save(model, folder / f"{name}.npz")
    return model


def test_networks_that_are_trained_anew(build: Path, tmp_path: Path) -> None:
    """They are compiled as the build's network was, lie beside their models, and compute what golden computes."""
    models = [retrained(tmp_path, f"mine-{seed}", seed) for seed in (1, 2)]
    done = call("compile", *(tmp_path / f"{m.network.name}.npz" for m in models), "--for", build, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    loaded = builds.load(build)
    paths = [tmp_path / f"{m.network.name}.program.npz" for m in models]
    assert [Path(one["file"]) for one in facts["programs"]] == paths
    assert [one["mapping"] for one in facts["programs"]] == [[0, 1, 1, 1]] * 2
    assert facts["digest"] == loaded.digest
    compiled = loaded.program("digits-cnn")
    board = activate()
    try:
        with Accelerator(loaded.bit) as accelerator:
            for model, path in zip(models, paths):
                program = Program.load(path)
                assert (program.layers, program.frame_words) == (compiled.layers, compiled.frame_words)
                images = random_images(model.network, 4, 1)
                accelerator.load(program)
                np.testing.assert_array_equal(accelerator.predict(images), packed.forward(model, images))
    finally:
        board.close()


def test_the_same_network_gives_the_same_program(build: Path, tmp_path: Path) -> None:
    done = call("compile", "digits-cnn", "--for", build, "--out", tmp_path / "programs")
    assert done.exit_code == 0, done.output
    assert "digits-cnn" in done.stdout  # a table folds long paths
    program = (tmp_path / "programs" / "digits-cnn.program.npz").read_bytes()
    assert program == builds.load(build).programs["digits-cnn"].read_bytes()


def test_choices_of_its_own(build: Path, tmp_path: Path) -> None:
    """They replace the build's: with all layers but one on the first NPU, its memories are too small."""
    done = call("compile", "digits-cnn", "--for", build, "--out", tmp_path, "--mapping", "0,0,0,1", "--chunk", "tuples")
    assert done.exit_code == 1
    assert "NPU 0 of design digits-cnn has" in done.output
    roomy = tmp_path / "roomy"
    orders = ("pull", "raster")
    assert call("build", "cnv-w1a1", "digits-cnn", "--kfp", 8, "--kgp", 4, "--out", roomy).exit_code == 0
    for order in orders:
        done = call("compile", "digits-cnn", "--for", roomy, "--out", tmp_path / order, "--map-order", order)
        assert done.exit_code == 0, done.output
    pull, raster = (Program.load(tmp_path / order / "digits-cnn.program.npz") for order in orders)
    assert not np.array_equal(pull.frame_source, raster.frame_source)


def test_what_the_host_does_is_kept(build: Path, tmp_path: Path) -> None:
    """As of an import: it lies beside the model."""
    path = tmp_path / "digits.onnx"
    assert call("export", "digits-cnn", "--qonnx", "--out", path).exit_code == 0
    assert call("import", path, "--out", tmp_path / "imported.npz").exit_code == 0
    done = call("compile", tmp_path / "imported.npz", "--for", build)
    assert done.exit_code == 0, done.output
    assert Program.load(tmp_path / "imported.program.npz").host is not None


def test_classes_of_another_number(build: Path, tmp_path: Path) -> None:
    """A network with fewer outputs than the build's, and names for them, fits."""
    network = zoo.load("digits-cnn").network
    layers = (*network.layers[:-1], replace(network.layers[-1], out_channels=4))
    fewer = replace(network, name="fewer", layers=layers, classes=("north", "east", "south", "west"))
    file.save(other_weights(fewer, 1), tmp_path / "fewer.npz")
    done = call("compile", tmp_path / "fewer.npz", "--for", build, "--mapping", "0,1,1,1")
    assert done.exit_code == 0, done.output
    assert Program.load(tmp_path / "fewer.program.npz").classes == fewer.classes


def test_what_does_not_fit_is_told_at_once(build: Path, tmp_path: Path) -> None:
    larger = network_of("larger", zoo.load("digits-cnn").network.input, "conv32,pool,conv64,dense10")
    file.save(other_weights(larger, 1), tmp_path / "larger.npz")
    done = call("compile", tmp_path / "larger.npz", "--for", build)
    assert done.exit_code == 1
    line = done.output.strip()
    assert line.startswith("bitloom: larger: ")
    assert "\n" not in line
    for name in ("groups", "threshold_rows", "kernel_rows"):
        assert re.search(rf"{name} must be >= \d+, NPU \d of design digits-cnn has \d+", line)
    assert [path.name for path in tmp_path.iterdir()] == ["larger.npz"]


def test_refused(build: Path, tmp_path: Path) -> None:
    assert call("compile", "digits-cnn", "--for", build, "--out", build).output == (
        f"bitloom: --out: a program must be no file of the build, got {build / 'digits-cnn.program.npz'}\n"
    )
    assert call("compile", "digits-cnn", "digits-cnn", "--for", build, "--out", tmp_path).output == (
        f"bitloom: --out: programs must be files of different names, got {tmp_path / 'digits-cnn.program.npz'} twice\n"
    )
    file.save(zoo.load("digits-cnn"), tmp_path / "again.npz")
    assert call("compile", "digits-cnn", tmp_path / "again.npz", "--for", build, "--out", tmp_path).output == (
        "bitloom: digits-cnn: the networks of a design must have different names, got digits-cnn twice\n"
    )
    assert call("compile", "digits-cnn", "--for", tmp_path).output == (
        f"bitloom: {tmp_path}: must be a folder that `bitloom build` wrote, got one without build.json\n"
    )


def test_a_build_that_was_changed_is_refused(tmp_path: Path) -> None:
    """The line names the file: the manifest, or build.json, which says of what design the manifest is."""
    assert call("build", "digits-cnn", "--out", tmp_path / "build").exit_code == 0
    listing = tmp_path / "build" / "build.json"
    bit = builds.load(tmp_path / "build").bit
    manifest = bit.with_suffix(".manifest.json")
    compiling = ("compile", "digits-cnn", "--for", tmp_path / "build", "--out", tmp_path)

    text = listing.read_text()
    described = json.loads(text)
    described["design"]["name"] = "other"
    listing.write_text(json.dumps(described))
    rule = f"build.json must describe the design of {bit.name}, got another one"
    assert call(*compiling).output == f"bitloom: {listing.parent}: {rule}\n"

    listing.write_text(text)
    manifest.write_text(manifest.read_text().replace('"errors"', '"mistakes"'))
    rule = "must be as the build wrote it"
    assert call(*compiling).output == f"bitloom: {manifest}: {rule}, got one that was changed: build again\n"
    manifest.unlink()
    assert call(*compiling).output == f"bitloom: {manifest}: {rule}, got no such file: build again\n"


def test_choices_without_effect_are_refused_as_build_refuses_them(build: Path, tmp_path: Path) -> None:
    known = "conv_1, conv_2, conv_3, dense_4"
    behind = "a depthwise convolution that has no convolution right before it, and NPUs with depthwise"
    for words, rule in (
        (("--dataflow", "conv_9=auto"), f"a dataflow must be of one of {known}, got one of conv_9"),
        (("--copy-depthwise",), f"copy_depthwise true needs {behind}, got none"),
    ):
        done = call("compile", "digits-cnn", "--for", build, *words, "--out", tmp_path)
        assert str(done.exception) == f"bitloom: digits-cnn: {rule}"


def test_a_network_is_compiled_without_the_copies_of_its_build(tmp_path: Path) -> None:
    """It has fewer layers then, which the build's mapping doesn't fit. Where nothing is said it has the copies, and a
    network that has no use for the build's choice is compiled, too."""
    first = named(model_of(*depthwise(1), *depthwise(2), *conv(3)), "first")
    other = named(model_of(*conv(1, 40, size=3), *conv(2, 5, size=3), *depthwise(3), *conv(4)), "other")
    choices = CompileChoices(copy_depthwise=True)
    models = [first, other]
    builds.build(tmp_path / "build", size_memories("d", models, NPU, choices), models, choices=choices)
    for model in models:
        file.save(model, tmp_path / f"{model.network.name}.npz")
    for name, words, layers in (
        ("first", (), ["conv_1_copy", "conv_2_copy", "conv_3"]),
        ("first", ("--no-copy-depthwise",), ["conv_1", "conv_3"]),
        ("other", (), ["conv_1", "conv_2", "conv_4"]),
    ):
        done = call("compile", tmp_path / f"{name}.npz", "--for", tmp_path / "build", *words)
        assert done.exit_code == 0, done.output
        program = Program.load(tmp_path / f"{name}.program.npz")
        assert [layer for layer, _ in program.layers] == layers
