"""The command train with data of one's own."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.encoding import unsigned
from bitloom.golden.layer import Map
from bitloom.overlay.cli import train as command
from tests.commands import call, error
from tests.golden.training.test_train import toy_data

SMALL = ("--layers", "conv6,pool,dense3", "--epochs", "2", "--batch", "16")


@pytest.fixture
def data(tmp_path: Path) -> str:
    x, y = toy_data(120, Map(height=6, width=5, channels=1, encoding=unsigned(3)), 3)
    np.savez(tmp_path / "toy.npz", x=x, y=y)
    return str(tmp_path / "toy.npz")


SLOW = [("binary", "1"), ("ternary", "ternary"), ("int3", "2")]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("weights", "activations"),
    [("binary", "2"), ("int8", "8"), *[pytest.param(*kinds, marks=pytest.mark.slow) for kinds in SLOW]],
)
def test_a_network_of_ones_own_can_be_built(data: str, tmp_path: Path, weights: str, activations: str) -> None:
    out, picture = tmp_path / "mine.npz", tmp_path / "curves.svg"
    kind = ["--weights", weights, "--activations", activations]
    result = call("train", data, *SMALL, *kind, "--out", str(out), "--plot", str(picture), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["train_images"], facts["test_images"], facts["held_out"]) == (96, 24, False)
    model = file.load(out)
    assert (file.model_digest(model), model.network.name) == (facts["digest"], "mine")
    (run,) = facts["seeds"]
    assert [point["epoch"] for point in run["curve"]] == [1, 2]
    assert run["curve"][-1]["test_accuracy"] == run["accuracy"] == facts["test_accuracy"]
    assert (run["same_outputs"] == 1) or weights.startswith("int")
    assert picture.read_text().startswith("<?xml")
    assert {path.name for path in tmp_path.iterdir()} == {"toy.npz", "mine.npz", "curves.svg"}
    built = call("build", str(out), "--out", str(tmp_path / "build"))
    assert built.exit_code == 0, built.output


def test_real_weights_are_kept(data: str, tmp_path: Path) -> None:
    """The same network, bit for bit, with the numbers that were trained; an NPU that takes their signs computes it."""
    options = ["train", data, *SMALL, "--seed", "5"]
    for more, out in (([], "signs.npz"), (["--real-weights"], "real.npz")):
        result = call(*options, *more, "--out", str(tmp_path / out))
        assert result.exit_code == 0, result.output
    signs, real = (file.load(tmp_path / out) for out in ("signs.npz", "real.npz"))
    for name in ("conv_1", "dense_2"):
        kept = real.arrays[name]["weight"]
        assert kept.dtype.kind == "f"
        assert len(np.unique(np.abs(kept))) > 10
        np.testing.assert_array_equal(real.weights(name), signs.arrays[name]["weight"])
    images = np.load(data)["x"]
    np.testing.assert_array_equal(real.forward(images), signs.forward(images))
    built = call("build", str(tmp_path / "real.npz"), "--kernel-binariser", "--out", str(tmp_path / "build"))
    assert built.exit_code == 0, built.output
    wrong = error(*options[:2], "--layers", "dense3", "--weights", "ternary", "--real-weights")
    assert wrong == "bitloom: train: --real-weights needs --weights binary, got ternary"


def test_seeds_and_what_is_held_out(data: str, tmp_path: Path) -> None:
    out = tmp_path / "mine.npz"
    result = call("train", data, *SMALL, "--out", str(out), "--seed", "3", "--seeds", "2", "--held-out", "--json")
    facts = json.loads(result.stdout)
    assert (facts["train_images"], facts["test_images"], facts["held_out"]) == (76, 20, True)
    assert [run["seed"] for run in facts["seeds"]] == [3, 4]
    assert facts["mean_accuracy"] == pytest.approx(sum(run["accuracy"] for run in facts["seeds"]) / 2)
    first = call("train", data, *SMALL, "--out", str(out), "--seed", "3", "--held-out")
    assert file.model_digest(file.load(out)) == facts["digest"]
    assert "accuracy, held out" in first.stdout


def test_an_interrupted_run_is_resumed_with_its_curve(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "mine.npz"
    options = [data, *SMALL, "--out", str(out), "--plot", str(tmp_path / "c.png"), "--json"]
    missing = error("train", *options, "--resume")
    checkpoint = tmp_path / "mine.seed0.checkpoint.npz"
    assert missing == f"bitloom: train: --resume needs a checkpoint of an interrupted run, got none at {checkpoint}"
    whole = json.loads(call("train", *options).stdout)
    run_training = command.run_training

    def interrupted(network, images, recipe, path, note, **options):
        def stop(epoch):
            if epoch.number == 1:
                raise KeyboardInterrupt

        return run_training(network, images, recipe, path, stop, **options)

    with monkeypatch.context() as patch:
        patch.setattr(command, "run_training", interrupted)
        assert call("train", *options).exit_code == 130
    kept = tmp_path / "mine.seed0.checkpoint.npz"
    assert kept.exists()
    again = json.loads(call("train", *options, "--resume").stdout)
    assert again == whole
    assert not kept.exists()

    with monkeypatch.context() as patch:
        patch.setattr(command, "run_training", interrupted)
        call("train", *options)
    beside = kept.with_suffix(".curve.json")
    beside.write_text("[[1, 2]]")
    assert error("train", *options, "--resume") == (
        f"bitloom: {beside}: must be a learning curve: a list of [epoch 1..2, loss, accuracy, accuracy], got [1, 2]"
    )
    other = [*options, "--rate", "0.5"]
    beside.unlink()
    assert error("train", *other, "--resume") == (
        f"bitloom: {kept}: must be a checkpoint of this run (network, data, recipe), got one of another; "
        "delete it to start anew"
    )


def test_data_with_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("train", "digits", "--layers", "pool,dense10", "--epochs", "1")
    assert result.exit_code == 0, result.output
    assert "of 360" in result.stdout
    assert file.load(tmp_path / "build" / "trained.npz").network.classes == tuple("0123456789")
    assert not list((tmp_path / "build").glob("*.checkpoint.*"))
    shutil.rmtree(tmp_path / "build")


NO_DATA = "train: --layers, --weights and --activations need DATA, digits or an npz, got none"
WORDS = "layers: word 2 must be as conv16, conv16k5s2p0, dense10, res, pool, pool3 or avgpool, got 'relu'"
ACTIVATIONS = "activations: must be one of 1, ternary, 2, 3 beside binary weights, got '8'"
LAST = "mine: the last layer must be dense, or a conv with one window, got conv with 30 positions"
FITS = "pool_1_2: the window must fit the padded map, got kernel (3, 3) on 1 x 1"
ONE_RUN = "train: --checkpoint is of one run, and goes on by itself, so without --seeds and --resume, got c.npz"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layers", "conv4,dense10"], NO_DATA),
        (["DATA", "--layers", "conv4,relu"], WORDS),
        (["DATA", "--layers", "dense2"], "layers: the last must have an output for each of 3 classes, got 2"),
        (["DATA", "--activations", "8"], ACTIVATIONS),
        (["DATA", "--layers", "conv4"], LAST),
        (["DATA", "--layers", "conv4p0,pool3,pool3,dense3"], FITS),
        (["DATA", "--seeds", "2", "--checkpoint", "c.npz"], ONE_RUN),
        (["DATA", "--plot", "c.gif"], "--plot: file name must end with .png or .svg, got c.gif"),
        (["none.npz"], "none.npz: must exist, got no such file or folder"),
    ],
)
def test_bad_words(data: str, tmp_path: Path, options: list[str], message: str) -> None:
    words = [data if word == "DATA" else word for word in options]
    assert error("train", *words, "--out", str(tmp_path / "mine.npz")) == f"bitloom: {message}"


def test_too_few_images_for_a_batch(data: str, tmp_path: Path) -> None:
    message = error("train", data, "--layers", "dense3", "--batch", "97", "--out", str(tmp_path / "x.npz"))
    kept = "of 120, of which 24 are kept to test with or held out"
    assert message == f"bitloom: {data}: images to learn from must be a batch of 97 at least (--batch), got 96 {kept}"
