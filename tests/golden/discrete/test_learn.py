from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.discrete.data import DATA, LearnData
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from tests.errors import value_error

PLAN = LearnPlan(hidden=(12, 8), epochs=3, seed=1)


@pytest.fixture(scope="module")
def small() -> LearnData:
    """A part of the digits."""
    data = DATA["digits"]()
    return data._replace(train=data.train[:320], train_labels=data.train_labels[:320])


@pytest.fixture(scope="module")
def finished(small, tmp_path_factory) -> Callable[[str], Path]:
    """finished(setting) -> the checkpoint of a run with this setting."""
    folder = tmp_path_factory.mktemp("finished")

    @cache
    def checkpoint(setting: str) -> Path:
        path = folder / f"{setting}.npz"
        learn(SETTINGS[setting], PLAN, small, checkpoint=path)
        return path

    return checkpoint


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_learns(name, small):
    """Far better than by chance, 10 %, with few neurons and images."""
    learned = learn(SETTINGS[name], LearnPlan(hidden=(32,), epochs=8), small)
    assert len(learned.curve) == 8
    assert learned.curve[-1].loss < learned.curve[0].loss
    assert learned.curve[-1].test_accuracy > 0.5


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(small, tmp_path):
    whole = learn(SETTINGS["codes-2"], PLAN, small)

    class Interrupt(Exception):
        pass

    def interrupt(curve: list) -> None:
        if len(curve) == 2:
            raise Interrupt

    path = tmp_path / "run.npz"
    with pytest.raises(Interrupt):
        learn(SETTINGS["codes-2"], PLAN, small, progress=interrupt, checkpoint=path)
    seen: list[int] = []
    again = learn(SETTINGS["codes-2"], PLAN, small, progress=lambda curve: seen.append(len(curve)), checkpoint=path)
    assert seen == [3]
    assert again.curve == whole.curve
    for key, value in whole.mlp.arrays().items():
        np.testing.assert_array_equal(again.mlp.arrays()[key], value, err_msg=key)
    assert [len(whole.mlp.arrays()[f"{k}.weight"]) for k in range(3)] == [12, 8, 10], "a neuron a class at the end"
    assert learn(SETTINGS["codes-2"], PLAN, small, checkpoint=path).curve == whole.curve  # nothing left to do


def test_a_checkpoint_of_another_run_is_refused(small, tmp_path):
    path = tmp_path / "run.npz"
    learn(SETTINGS["float"], PLAN, small, checkpoint=path)
    rule = "must be a checkpoint of this run (network, data, recipe), got one of another; delete it to start anew"
    with value_error(f"{path}: {rule}"):
        learn(SETTINGS["float"], replace(PLAN, seed=2), small, checkpoint=path)


def test_held_out_images_are_a_fifth_of_the_training_images():
    """Each training image is on one side, no test image on any, and another seed splits in another way."""
    rows = np.arange(60).reshape(30, 2)
    data = LearnData("rows", rows, np.arange(30), -rows - 1, np.arange(30), 8.0)
    splits = [data.held_out(seed) for seed in (0, 1)]
    for split in splits:
        assert (len(split.train), len(split.test)) == (24, 6)
        assert sorted([*split.train_labels.tolist(), *split.test_labels.tolist()]) == list(range(30))
        np.testing.assert_array_equal(split.train, rows[split.train_labels])
        np.testing.assert_array_equal(split.test, rows[split.test_labels])
    assert set(splits[0].test_labels) != set(splits[1].test_labels)


def test_with_held_out_images_no_test_image_is_looked_at(small):
    plan = replace(PLAN, held_out=True)
    blank = small._replace(test=small.test[:0], test_labels=small.test_labels[:0])
    curve = learn(SETTINGS["float"], plan, small).curve
    assert curve == learn(SETTINGS["float"], plan, blank).curve
    assert curve == learn(SETTINGS["float"], PLAN, small.held_out(PLAN.seed)).curve


CURVE = "curve must be float64 of shape (1..3, 2), got"
CODES = "-0.125, -0.03125, -0.0078125, -0.00195312, 0.00195312, 0.0078125, 0.03125, 0.125"


@pytest.mark.parametrize(
    ("setting", "name", "value", "rule"),
    [
        ("float", "generator", None, "generator must be int64 of shape (), got none"),
        ("float", "generator", np.array(0), "generator must be 1..4294967295, got 0"),
        ("float", "generator", np.array(1 << 32), "generator must be 1..4294967295, got 4294967296"),
        (
            "float",
            "1.weight",
            np.zeros((12, 8)),
            "1.weight must be float32 of shape (8, 12), got float64 of shape (12, 8)",
        ),
        (
            "float",
            "1.gamma.memory",
            np.zeros(8, np.int8),
            "1.gamma.memory must be float32 of shape (8,), got int8 of shape (8,)",
        ),
        ("float", "1.gamma", np.full(8, 2.0**100, "f4"), "1.gamma must be -1e+18..1e+18, got 1.26765060023e+30"),
        ("float", "7.weight", np.zeros(1), "names must be those of the run, got also 7.weight"),
        ("nearest-2", "0.weight", np.full((12, 64), 1.25, "f4"), "0.weight must be -1..1, got 1.25"),
        (
            "codes-2",
            "0.weight",
            np.full((12, 64), 0.5, "f4"),
            "0.weight must be values of codes, -1, -0.125, 0.125, 1, got others",
        ),
        (
            "discrete-codes-1",
            "1.weight.memory",
            np.zeros((8, 12), "f4"),
            f"1.weight.memory must be values of codes, {CODES}, got others",
        ),
        ("float", "curve", None, f"{CURVE} none"),
        ("float", "curve", np.zeros((0, 2)), f"{CURVE} float64 of shape (0, 2)"),
        ("float", "curve", np.zeros((4, 2)), f"{CURVE} float64 of shape (4, 2)"),
        ("float", "curve", np.zeros((1, 3)), f"{CURVE} float64 of shape (1, 3)"),
        ("float", "curve", np.zeros(2), f"{CURVE} float64 of shape (2,)"),
        ("float", "curve", np.array([[1.0, 1.5]]), "curve must be 0..1, got 1.5"),
        ("float", "curve", np.array([[-1.0, 0.5]]), "curve must be 0..1e+18, got -1"),
    ],
)
def test_checkpoints_of_a_stranger(small, finished, tmp_path, setting, name, value, rule):
    """All have the run's digest, which everybody can compute."""
    path = tmp_path / "run.npz"
    with np.load(finished(setting)) as saved:
        arrays = {**saved, name: value}
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    with value_error(f"{path}: must be a checkpoint of training, got: state: {rule}; delete it to start anew"):
        learn(SETTINGS[setting], PLAN, small, checkpoint=path)


def test_where_mnist_is_absent(tmp_path, monkeypatch):
    monkeypatch.setenv("BITLOOM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as error:
        DATA["mnist"]()
    name = "t10k-images-idx3-ubyte.gz"
    assert str(error.value) == f"mnist: {name} is not in {tmp_path} (set BITLOOM_DATA to its folder)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "learning: epochs must be an integer >= 1, got 0"),
        ({"seed": -1}, "learning: seed must be an integer >= 0, got -1"),
        ({"seed": (1 << 32) - 1}, "learning: seed must be <= 4294967294, got 4294967295"),
        ({"hidden": ()}, "learning: hidden layers must be 1..64, of 1..1048576 neurons, got ()"),
        ({"hidden": (3, 1048577)}, "learning: hidden layers must be 1..64, of 1..1048576 neurons, got (3, 1048577)"),
        (
            {"hidden": (9,) * 65},
            f"learning: hidden layers must be 1..64, of 1..1048576 neurons, got ({18 * '9, '}9,...",
        ),
        ({"rate_times": 0}, "learning: rate_times must be > 0 and finite, got 0"),
        ({"rate_times": float("nan")}, "learning: rate_times must be > 0 and finite, got nan"),
        ({"hidden": (3, 0)}, "learning: hidden layers must be 1..64, of 1..1048576 neurons, got (3, 0)"),
    ],
)
def test_wrong_plans(options, message):
    with value_error(message):
        LearnPlan(**options)


@pytest.mark.parametrize(("setting", "times"), [("float", 1e30), ("codes-1", 1e22)])
def test_a_loss_beyond_all_numbers(small, setting, times):
    plan = replace(PLAN, rate_times=times)
    got = r"(nan|[\d.]+e\+\d+) in epoch [123]"
    with pytest.raises(ValueError, match=rf"^learning: loss must stay below 1e\+18, got {got}: lower the rate\Z"):
        learn(SETTINGS[setting], plan, small)


def test_too_few_images(small):
    few = small._replace(train=small.train[:63])
    with value_error("learning: images must be at least a batch, 64, got 63"):
        learn(SETTINGS["float"], PLAN, few)
