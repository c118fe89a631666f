"""Facts on a page beside the run: accuracy, version, date, LUTs of units; and its tables on a phone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bitloom.golden import zoo
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import Area, BlockArea
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.figures import Figures
from bitloom.overlay.explore.front import Front
from bitloom.overlay.platform.boards import BOARDS
from bitloom.overlay.show.report.accuracy import Accuracy, accuracy_of
from bitloom.overlay.show.report.figures import svg
from bitloom.overlay.show.report.page import page
from bitloom.overlay.show.report.plots import pictures
from bitloom.overlay.show.report.report import Report
from bitloom.overlay.show.report.units import units_by_model, units_by_synthesis
from tests.commands import call
from tests.errors import value_error

pytestmark = pytest.mark.usefixtures("no_plots")


FIGURES = Figures(Resources(5_000, 6_000, 21.5, 320, 110), 1_072, 334.5, 618)


def test_accuracy_of_a_network_of_ours() -> None:
    assert accuracy_of(zoo.load("digits-cnn")) == Accuracy("test digits", 360, 354)  # docs/reference/figures.md
    model = zoo.load("digits-cnn")
    other = replace(model, arrays={**model.arrays, "dense_4": {"weight": -model.arrays["dense_4"]["weight"]}})
    assert accuracy_of(other) is None  # of another network of that name nothing is known


def test_accuracy_that_evaluate_found(one: Report, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    model = zoo.load("digits-cnn")
    path.write_text(json.dumps({"network": "digits-cnn", "data": "/home/me/mine.npz", "images": 40, "right": 39}))
    accuracy = accuracy_of(model, path)
    assert accuracy == Accuracy("mine.npz", 40, 39)
    text = page(replace(one, accuracy=accuracy))
    assert '<data id="accuracy" value="0.975">97.5%</data> <small>39 of 40, mine.npz</small>' in text
    assert 'id="accuracy"' not in page(replace(one, accuracy=None))
    path.write_text(json.dumps({"network": "digits-or", "data": "digits", "images": 40, "right": 39}))
    with value_error(f"{path}: network must be digits-cnn, got 'digits-or'"):
        accuracy_of(model, path)
    path.write_text(json.dumps({"network": "digits-cnn", "data": "digits", "images": 40, "right": 41}))
    with value_error(f"{path}: right must be an integer 0..40, got 41"):
        accuracy_of(model, path)


def test_designs_to_choose_from(one: Report) -> None:
    small = replace(FIGURES, cycles=5_400.0)
    given = {"budget": Budget(cycles=6_000), "commands": ("bitloom build a", "bitloom build b")}
    points = {"points": (FIGURES, small), "chosen": small}
    front = Front(network="digits-cnn", board=BOARDS["Pynq-Z2"], **points, **given)
    text = page(replace(one, front=front))
    for shown in (
        "Designs to choose from",
        "<th>2, chosen</th>",
        '<data id="front-1" value="334.5">',
        "50.0% DSP",
        "# 2\nbitloom build b",
    ):
        assert shown in text
    assert "Designs to choose from" not in page(one)
    without_board = page(replace(one, front=replace(front, board=None, network="digits-cnn + other", commands=())))
    assert "Cycles are those of a round" in without_board
    assert "The command that builds" not in without_board
    (picture,) = (each for each in pictures(replace(one, front=front)) if each.name == "front")
    assert svg(replace(one, front=front), picture).startswith("<svg")


def test_a_date_only_where_it_is_asked_for(
    folder: Path, one: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = tmp_path / "run.json", tmp_path / "page.html"
    run.write_text(json.dumps(one.to_dict()))
    words = ["report", str(folder), "--from", str(run), "--out", str(out)]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert call(*words, "--dated").exit_code == 0
    assert ", 1970-01-02. Counters" in out.read_text(encoding="utf-8")
    assert call(*words).exit_code == 0
    assert "1970" not in out.read_text(encoding="utf-8")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    done = call(*words, "--dated")
    rule = "SOURCE_DATE_EPOCH: must be seconds since 1970, an integer >= 0"
    assert done.output == f"bitloom: {rule}, got 'now'\n" or str(done.exception) == f"bitloom: {rule}, got 'now'"


@pytest.mark.sample(1)
def test_units_add_up_to_the_logic(report: Report) -> None:
    units = units_by_model(report.design)
    assert sum(u.lut for u in units) == pytest.approx(report.area.resources.lut, rel=0.03)  # memories have some logic
    assert {u.npu for u in units} == {None, *range(len(report.npus))}
    own = [u for u in units if u.npu == 0]
    text = page(report)
    assert f'<data id="units-npu0" value="{sum(u.lut for u in own)}">' in text
    assert all(f"<th>{u.name}</th>" in text for u in units)


def test_units_as_yosys_counts_them() -> None:
    top = BlockArea("top", 1, Resources(lut=5), Resources(lut=905))
    pe = BlockArea("pe", 4, Resources(lut=200, ff=10, dsp=1), Resources(lut=225))
    blocks = (top, pe, BlockArea("fifo", 1, Resources(lut=100), Resources(lut=100)))
    units = units_by_synthesis(Area(Resources(lut=905), blocks, ()))
    assert [(u.name, u.instances, u.lut, u.ff, u.dsp) for u in units] == [("pe", 4, 800, 40, 4), ("fifo", 1, 100, 0, 0)]
