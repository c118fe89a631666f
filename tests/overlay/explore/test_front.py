"""A Pareto front: read from what the command prints, and on a report's page."""

import json
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.figures import Figures
from bitloom.overlay.explore.front import Front, read_front
from bitloom.overlay.explore.plot import draw
from bitloom.overlay.platform.boards import BOARDS
from tests.errors import value_error

POINTS = (
    Figures(Resources(5_000, 6_000, 21.5, 320, 110), 1_072, 334.5, 618),
    Figures(Resources(2_000, 1_500, 9.0, 200, pairs=300), 16, 5_400, 5_500),
)


def printed(front: Front) -> dict[str, Any]:
    """Lines of the command about a front, as far as they are read again."""
    return {
        **front.to_dict(),
        "front": [row(point) for point in front.points],
        "best": front.chosen and row(front.chosen),
        "clock": {"mhz": front.clock_mhz, "source": "default"},
    }


def row(figures: Figures) -> dict[str, Any]:
    """A design of a front, as JSON data."""
    cycles = {"cycles_per_frame": figures.cycles, "latency_cycles": figures.latency, "lanes": figures.lanes}
    return cycles | figures.area.figures


def front(**changes: Any) -> Front:
    board = BOARDS["Pynq-Z2"]
    given = {"network": "one + two", "points": POINTS, "chosen": POINTS[1], "budget": Budget.of_board(board)}
    given |= {"board": board, "clock_mhz": 50.0, "commands": ("bitloom build one", "bitloom build two")}
    return Front(**{**given, **changes})


@pytest.mark.parametrize(
    "saved",
    [front(), front(network="one", chosen=None, budget=Budget(cycles=1000, lut=9_000), board=None, commands=())],
)
def test_what_is_printed_is_read_again(tmp_path: Path, saved: Front) -> None:
    path = tmp_path / "explored.json"
    path.write_text(json.dumps(printed(saved)))
    assert read_front(path, "one") == saved
    with value_error(f"{path}: network must be three, got '{saved.network}'"):
        read_front(path, "three")


def test_shares_and_limits() -> None:
    on_board = front()
    assert on_board.share(POINTS[0]) == (0.5, "DSP")
    assert on_board.frames_per_second(POINTS[1]) == pytest.approx(9259.26, abs=0.01)
    assert on_board.most == 1.0
    half = Budget.of_board(BOARDS["Pynq-Z2"], share=0.5)
    assert front(budget=half).most == 0.5
    anywhere = front(board=None, budget=Budget(lut=9_000))
    assert anywhere.share(POINTS[0]) is None
    assert anywhere.most == 9_000
    assert front(board=None, budget=Budget()).most is None


@pytest.mark.parametrize(
    ("place", "change", "rule"),
    [
        ([], {"front": []}, "front must have at least 1 entries, got []"),
        (["front", 1], {"paired_lut": 2_001}, "front: paired_lut must be <= lut, got 2001"),
        (["front", 0], {"lut": -1}, "front: lut must be an integer >= 0, got -1"),
        (["front", 1], {"cycles_per_frame": 0}, "front: cycles_per_frame must be a finite number >= 1, got 0"),
        (["best"], {"bram36": "9"}, "best: bram36 must be a finite number >= 0, got '9'"),
        (
            ["budget"],
            {"money": 3},
            "budget: keys must be lut, lutram, ff, bram36, dsp, lanes, cycles, latency, got 'money'",
        ),
        (["best"], {"bram36": True}, "best: bram36 must be a finite number >= 0, got True"),
        (["clock"], {"mhz": 0}, "clock: mhz must be > 0, got 0.0"),
        ([], {"commands": ["x"]}, "commands must be 2 or none, got 1"),
        (
            ["board"],
            {"part": "z80"},
            "board Pynq-Z2: part must be a Zynq with package and speed grade, such as xc7z020clg400-1, got 'z80'",
        ),
    ],
)
def test_what_is_no_front_is_refused(tmp_path: Path, place: list[str | int], change: dict[str, Any], rule: str) -> None:
    path = tmp_path / "explored.json"
    data = printed(front())
    reduce(getitem, place, data).update(change)
    path.write_text(json.dumps(data))
    with value_error(f"{path}: {rule}"):
        read_front(path, "two")


def test_the_picture() -> None:
    """Steps from point to point, each with its number; what is beyond the budget, and slower than the goal, shaded."""
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    drawn = front(budget=Budget(cycles=2_000, lut=26_600))
    draw(axes, drawn)
    line = axes.lines[0]
    assert line.get_drawstyle() == "steps-pre"
    np.testing.assert_allclose(line.get_xdata(), [100 * drawn.share(point)[0] for point in POINTS])
    np.testing.assert_allclose(line.get_ydata(), [50e6 / 334.5, 50e6 / 5_400])
    assert [text.get_text() for text in axes.texts] == ["1", "2"]
    beyond, slower = (patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches)
    assert beyond.x0 == pytest.approx(100)  # of FF, BRAM36 and DSP all of the board may be taken
    assert slower.y1 == pytest.approx(50e6 / 2_000)
    labels = ["Pareto front", "chosen", "beyond the budget", "slower than the goal, 25,000"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
