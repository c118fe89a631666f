"""Pictures say what the data say: what is drawn is read back from the axes."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.figures import Figures
from bitloom.overlay.explore.front import Front
from bitloom.overlay.explore.plot import draw
from bitloom.overlay.show import notebook_plots as plots
from bitloom.overlay.virtual.sim.vcd import SignalTrace


@pytest.fixture
def axes() -> Iterator[Axes]:
    figure = Figure()
    yield figure.add_subplot()
    figure.canvas.draw()  # nothing that is drawn fails late


def texts(axes: Axes) -> list[tuple[str, float, float]]:
    return [(text.get_text(), *text.get_position()) for text in axes.texts]


def bars(axes: Axes) -> list[tuple[float, float]]:
    """(left edge, width) of each bar."""
    return [(bar.get_x(), bar.get_width()) for bar in axes.patches]


def test_images():
    figure = Figure()
    axes = figure.subplots(1, 3)
    pictures = np.arange(3 * 4).reshape(3, 2, 2, 1)
    plots.images(axes, pictures, ["a", "b", "c"], [False, True, False])
    assert [one.get_title() for one in axes] == ["a", "b", "c"]
    assert [one.title.get_color() for one in axes] == ["black", plots.BAD, "black"]
    for one, picture in zip(axes, pictures):
        np.testing.assert_array_equal(one.images[0].get_array(), picture[:, :, 0])
        assert one.images[0].get_clim() == (0, 11)  # the same greys in all of them


@pytest.fixture
def drawn() -> Iterator[Callable[[], list[Axes]]]:
    """Gives the axes of the figure that was drawn last."""
    yield lambda: pyplot.gcf().axes
    pyplot.gcf().canvas.draw()
    pyplot.close("all")


def test_gallery(drawn):
    """As many rows as are needed; what is wrong is red and says what it is."""
    pictures = np.arange(3 * 4).reshape(3, 2, 2, 1)
    plots.gallery(pictures, np.array([0, 1, 1]), np.array([0, 0, 1]), ["a", "b"], columns=2)
    assert [one.get_title() for one in drawn()] == ["a", "b, is a", "b", ""]
    assert [one.title.get_color() for one in drawn()[:3]] == ["black", plots.BAD, "black"]


def test_images_and_scores(drawn):
    pictures = np.zeros((2, 2, 2, 3), np.uint8)
    plots.images_and_scores(pictures, np.array([[3, 4], [6, 5]]), np.array([1, 1]), ["a", "b"])
    axes = drawn()
    assert [one.get_title() for one in axes] == ["is b", "is b", "", ""]
    assert [[bar.get_width() for bar in one.patches] for one in axes[2:]] == [[3, 4], [6, 5]]
    assert axes[3].patches[0].get_facecolor() == to_rgba(plots.BAD)


def test_learning(drawn):
    plots.learning([SimpleNamespace(number=1, accuracy=0.25), SimpleNamespace(number=2, accuracy=0.5)], 0.75)
    (axes,) = drawn()
    assert [list(line.get_ydata()) for line in axes.lines] == [[25, 50], [75, 75]]


def test_waves(drawn):
    plots.waves({name: SignalTrace(name, np.array([0]), np.array([1])) for name in "ab"}, 0, 4, "both")
    (axes,) = drawn()
    assert axes.get_title() == "both"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]


def test_confusion(axes):
    labels, predicted = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 0, 1, 1, 0, 0])
    plots.confusion(axes, labels, predicted, ["x", "y", "z"])
    np.testing.assert_array_equal(axes.images[0].get_array(), [[2 / 3, 1 / 3, 0], [0, 1, 0], [1, 0, 0]])
    assert texts(axes) == [("2", 0, 0), ("1", 1, 0), ("1", 1, 1), ("2", 0, 2)]  # text, column, row
    assert [text.get_text() for text in axes.get_xticklabels()] == ["x", "y", "z"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("taken for", "class")


def test_cycles(axes):
    counters = {"cycles": 200, "npu0_beats": 150, "npu0_wait_input": 40, "npu0_wait_room": 10, "npu0_wait_table": 0}
    counters |= {"npu1_beats": 200, "npu1_wait_input": 0, "npu1_wait_room": 0, "npu1_wait_table": 0}
    plots.cycles(axes, counters, ["first", "second"])
    assert bars(axes) == [(0, 75), (0, 100), (75, 20), (100, 0), (95, 5), (100, 0)]
    assert [text for text, _, _ in texts(axes)] == ["75.0%", "100.0%"]
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words == ["beats", "waits for input", "waits for room"]
    assert axes.get_xlabel() == "share of 200 cycles, %"
    assert axes.yaxis_inverted()


def signal(name: str, *changes: tuple[int, int]) -> SignalTrace:
    return SignalTrace(name, *(np.array(part) for part in zip(*changes)))


def test_waveform(axes):
    """Cycle n is what holds at time 2 n; the first signal stands uppermost."""
    signals = {
        "bit": signal("bit", (0, 0), (5, 1), (9, 0)),
        "number": signal("number", (0, 5), (7, 6), (13, 7)),
    }
    plots.waveform(axes, signals, 2, 8)
    (line,) = axes.lines
    assert line.get_xdata().tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert line.get_ydata().tolist() == [0, 1, 1, 0, 0, 0, 0]
    spans = [path.vertices for bar in axes.collections[1:] for path in bar.get_paths()]
    assert [(v[:, 0].min(), v[:, 0].max()) for v in spans] == [(2, 4), (4, 7), (7, 8)]
    assert [(v[:, 1].min(), v[:, 1].max()) for v in spans] == [(-1.5, -0.5)] * 3
    assert [text for text, _, _ in texts(axes)] == ["5", "6", "7"]
    labels = [(text.get_text(), place) for text, place in zip(axes.get_yticklabels(), axes.get_yticks())]
    assert labels == [("bit", 0.5), ("number", -1.0)]


def test_visits(axes):
    table = lower_alone(networks.load("digits-cnn")).schedule("pull").by_stage["conv_2"]
    plots.visits(axes, table, windows=2)
    new, old = axes.lines[:2]
    assert (new.get_xdata().tolist(), new.get_ydata().tolist()) == ([*range(9), 11, 14, 17], [*range(12)])
    assert (old.get_xdata().tolist(), old.get_ydata().tolist()) == ([9, 10, 12, 13, 15, 16], [1, 2, 4, 5, 7, 8])
    assert [list(line.get_xdata()) for line in axes.lines[2:]] == [[8.5, 8.5]]
    assert axes.get_title() == "conv_2, pull order"
    assert axes.get_legend().get_texts()[0].get_text() == f"in the memory: {table.capacity(False)} tuples"


def point(lut: int, bram36: float, cycles: float) -> Figures:
    return Figures(Resources(lut=lut, bram36=bram36), 64, cycles, 1000)


def shaded(axes: Any) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Label, and left, bottom, right and top, of each shade; of a shade all along the other axis, 0 to 1 there."""
    boxes = [patch.get_path().get_extents(patch.get_patch_transform()) for patch in axes.patches]
    return [(patch.get_label(), tuple(box.extents)) for patch, box in zip(axes.patches, boxes)]


def test_pareto_front(axes):
    both = point(9000, 14, 100.0), point(2000, 35, 800.0)
    budget = Budget(lut=8000, cycles=1000)
    draw(axes, Front(network="some", points=both, chosen=both[1], budget=budget, clock_mhz=200))
    points, chosen = axes.lines
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([9000, 2000], [2e6, 250e3])
    assert [(text.get_text(), text.xy) for text in axes.texts] == [("1", (9000, 2e6)), ("2", (2000, 250e3))]
    assert (list(chosen.get_xdata()), list(chosen.get_ydata())) == ([2000], [250e3])
    (beyond, (left, _, right, _)), (slower, (_, bottom, _, top)) = shaded(axes)
    assert (beyond, left, right) == ("beyond the budget", 8000, axes.get_xlim()[1])
    assert (slower, bottom, top) == ("slower than the goal, 200,000", axes.get_ylim()[0], 200e3)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
