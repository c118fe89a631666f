import json
import re
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.data import DATA, LearnData
from bitloom.golden.discrete.learn import LearnPlan
from bitloom.overlay.study.learning import FloatRun, compare, plot_curves, read_result
from bitloom.overlay.study.machine_learning import MachinePlan
from tests.errors import value_error

PLANS = [LearnPlan(hidden=(8,), epochs=2, seed=seed) for seed in range(2)]
NAMES = ["float", "codes-1"]


def runs(names: list[str], plans: list[LearnPlan]) -> list[FloatRun]:
    return [FloatRun(setting=name, plan=plan) for name in names for plan in plans]


@pytest.fixture(scope="module")
def small() -> LearnData:
    data = DATA["digits"]()
    return data._replace(train=data.train[:192], train_labels=data.train_labels[:192])


def test_results_are_kept_and_runs_go_on(small, tmp_path):
    seen = []
    rows = compare(runs(NAMES, PLANS), small, tmp_path, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (8, 8)
    assert sorted(done for done, _ in seen) == [done for done, _ in seen]
    assert [row.setting for row in rows] == NAMES
    assert [[len(curve) for curve in row.curves] for row in rows] == [[2, 2], [2, 2]]
    assert rows[0].mean == sum(row[-1] for row in rows[0].curves) / 2
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"digits-{name}-{seed}.json" for name in ("codes-1", "float") for seed in (0, 1)]

    kept = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / files[0]).write_text("{")  # of a run that has to be done again
    changed = json.loads((tmp_path / files[2]).read_text())
    changed["run"]["plan"]["epochs"] = 3
    (tmp_path / files[2]).write_text(json.dumps(changed))
    again = compare(runs(NAMES, PLANS), small, tmp_path)
    assert [row.to_dict() for row in again] == [row.to_dict() for row in rows]
    written = {path.name for path, when in kept.items() if path.stat().st_mtime_ns != when}
    assert written == {files[0], files[2]}


def test_a_checkpoint_of_other_settings_is_dropped(small, tmp_path):
    first = compare(runs(["float"], PLANS[:1]), small, tmp_path / "a", keep=True)
    assert [path.suffix for path in sorted((tmp_path / "a").iterdir())] == [".json", ".npz"]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "digits-codes-1-0.npz").write_bytes((tmp_path / "a" / "digits-float-0.npz").read_bytes())
    rows = compare(runs(["codes-1"], PLANS[:1]), small, tmp_path / "b")
    assert rows[0].curves != first[0].curves
    assert rows[0].curves == compare(runs(["codes-1"], PLANS[:1]), small, tmp_path / "c")[0].curves


def test_a_damaged_checkpoint_is_dropped(small, tmp_path):
    first = compare(runs(["float"], PLANS[:1]), small, tmp_path, keep=True)
    (tmp_path / "digits-float-0.json").unlink()
    (tmp_path / "digits-float-0.npz").write_bytes(b"PK")
    assert compare(runs(["float"], PLANS[:1]), small, tmp_path)[0].to_dict() == first[0].to_dict()


def test_a_checkpoint_stays_where_the_run_itself_is_refused(small, tmp_path):
    compare(runs(["float"], PLANS[:1]), small, tmp_path, keep=True)
    (tmp_path / "digits-float-0.json").unlink()
    few = small._replace(train=small.train[:63])
    with value_error("learning: images must be at least a batch, 64, got 63"):
        compare(runs(["float"], PLANS[:1]), few, tmp_path)
    assert (tmp_path / "digits-float-0.npz").exists()


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("run", None, "a result of learning must be an object with run, accuracy and loss or cycles, got "),
        ("accuracy", None, "a result of learning must be an object with run, accuracy and loss or cycles, got "),
        ("accuracy", [0.5, 1], "accuracy must be a list of numbers, 0..1, got [0.5, 1]"),
        ("accuracy", "0.5", "accuracy must be a list of numbers, 0..1, got '0.5'"),
        ("loss", [0.5, -1.0], "loss must be a list of numbers, 0..1e+18, got [0.5, -1.0]"),
        ("loss", [0.5], "accuracy and loss must have a number an epoch, got [1, 2]"),
    ],
)
def test_results_of_a_stranger_are_refused_and_made_again(small, tmp_path, key, value, rule):
    rows = compare(runs(["float"], PLANS[:1]), small, tmp_path)
    path = tmp_path / "digits-float-0.json"
    data = json.loads(path.read_text())
    changed = {**data, key: value}
    path.write_text(json.dumps({k: v for k, v in changed.items() if v is not None}))
    with pytest.raises(ValueError, match=rf"^{re.escape(f'{path}: {rule}')}.*\Z"):
        read_result(path)
    assert compare(runs(["float"], PLANS[:1]), small, tmp_path)[0].to_dict() == rows[0].to_dict()
    assert json.loads(path.read_text()) == data == read_result(path)


def test_curves_are_seen_as_they_come(small, tmp_path):
    """After each epoch: of the run that learns, and those before it."""
    lengths = []
    compare(
        runs(["float"], PLANS), small, tmp_path, watch=lambda rows: lengths.append([len(c) for c in rows[0].curves])
    )
    assert lengths == [[1], [2], [2], [2], [2, 1], [2, 2], [2, 2], [2, 2]]


def test_the_machine_learns_as_a_run(small, tmp_path):
    """Its results and checkpoints are kept as those of floating point, beside them; runners give the same curves."""
    plan = MachinePlan(hidden=(4,), epochs=2, setting="codes-1", runner="words", seed=3)
    (row,) = compare([plan], small, tmp_path)
    files = [path.name for path in tmp_path.iterdir()]
    assert files == ["digits-words-codes-1-3.json"]
    assert row.to_dict().keys() == {"setting", "mean", "final", "curves", "cycles"}
    (again,) = compare([plan], small, tmp_path)
    assert again.to_dict() == row.to_dict()
    (interpreted,) = compare([replace(plan, runner="interpreter")], small, tmp_path)
    assert interpreted.curves == row.curves
    assert np.min(interpreted.figures) > 0 == np.max(row.figures)


@pytest.mark.sample(1)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_curves_are_drawn(small, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib: pip install 'bitloom-fpga[explore]'")
    path = tmp_path / "pictures" / f"curves.{ending}"
    rows = compare(runs(["float"], PLANS[:1]), small, tmp_path / "out")
    rows[0].points.append(rows[0].points[0][:1])  # a run that has not ended
    plot_curves(path, "digits", rows)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_a_picture_of_another_kind(tmp_path):
    with value_error(f"--plot: file name must end with .png or .svg, got {tmp_path / 'x.gif'}"):
        plot_curves(tmp_path / "x.gif", "digits", [])
