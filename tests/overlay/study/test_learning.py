import json

import pytest

from bitloom.golden.discrete.data import DATA, LearnData
from bitloom.golden.discrete.learn import LearnPlan
from bitloom.overlay.study.learning import compare
from bitloom.overlay.study.learning_plot import plot_curves
from tests.errors import value_error

PLANS = [LearnPlan(hidden=(8,), epochs=2, seed=seed) for seed in range(2)]
NAMES = ["float", "codes-1"]


@pytest.fixture(scope="module")
def small() -> LearnData:
    data = DATA["digits"]()
    return data._replace(train=data.train[:192], train_labels=data.train_labels[:192])


def test_results_are_kept_and_runs_go_on(small, tmp_path):
    seen = []
    rows = compare(NAMES, PLANS, small, tmp_path, lambda done, total: seen.append((done, total)))
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
    again = compare(NAMES, PLANS, small, tmp_path)
    assert [row.to_dict() for row in again] == [row.to_dict() for row in rows]
    written = {path.name for path, when in kept.items() if path.stat().st_mtime_ns != when}
    assert written == {files[0], files[2]}


def test_a_checkpoint_of_other_settings_is_dropped(small, tmp_path):
    first = compare(["float"], PLANS[:1], small, tmp_path / "a", keep=True)
    assert [path.suffix for path in sorted((tmp_path / "a").iterdir())] == [".json", ".npz"]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "digits-codes-1-0.npz").write_bytes((tmp_path / "a" / "digits-float-0.npz").read_bytes())
    rows = compare(["codes-1"], PLANS[:1], small, tmp_path / "b")
    assert rows[0].curves != first[0].curves
    assert rows[0].curves == compare(["codes-1"], PLANS[:1], small, tmp_path / "c")[0].curves


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_curves_are_drawn(small, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib: pip install 'bitloom[explore]'")
    path = tmp_path / "pictures" / f"curves.{ending}"
    plot_curves(path, "digits", compare(["float"], PLANS[:1], small, tmp_path / "out"))
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_a_picture_of_another_kind(tmp_path):
    with value_error(f"--plot: file name must end with .png or .svg, got {tmp_path / 'x.gif'}"):
        plot_curves(tmp_path / "x.gif", "digits", [])
