"""Labels of the roofline cross no line, no point and no other label, measured with matplotlib's own fonts."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from bitloom.overlay.show.report import labels
from bitloom.overlay.show.report.plots import HALF
from bitloom.overlay.show.report.report import Report
from bitloom.overlay.show.report.roofline_plot import roofline


def test_places() -> None:
    room = (0.0, 0.0, 100.0, 100.0)
    size = (20.0, 10.0)
    assert labels.placed([(50, 50)], [size], [], room) == [(0, -13)]  # below, where nothing is in the way
    below = labels.around(50, 37, 4, 4)
    assert labels.placed([(50, 50)], [size], [below], room) == [(0, 13)]
    assert labels.placed([(50, 2)], [size], [], room) == [(0, 13)]  # inside the plot
    twice = labels.placed([(50, 50), (50, 50)], [size, size], [], room)
    assert twice == [(0, -13), (0, 13)]
    full = labels.placed([(50, 50)], [size], [room], room)
    assert len(full) == 1  # everywhere is taken: it stands somewhere all the same


def test_along_covers_a_line() -> None:
    boxes = labels.along(0, 0, 40, 30)
    for share in np.linspace(0, 1, 50):
        x, y = 40 * share, 30 * share
        assert any(a <= x <= c and b <= y <= d for a, b, c, d in boxes)


def crowded(report: Report) -> Report:
    """Layers with long names, close together and on each other."""
    device, npu, *layers = report.points
    spread = [replace(p, name=f"inverted_residual_{k}", operations=p.operations * (1 + k / 10))
              for k, p in enumerate(layers * 2)]  # fmt: skip
    return replace(report, points=(device, npu, *spread))


@pytest.mark.parametrize("case", ["as it is", "crowded"])
def test_labels_of_the_roofline(one: Report, case: str) -> None:
    report = one if case == "as it is" else crowded(one)
    figure = Figure(figsize=(HALF, 4.2), dpi=72, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    roofline(axes, report)
    canvas.draw()
    texts = [t for t in axes.texts if isinstance(t, Annotation)]
    names = {t.get_text() for t in texts}
    layers = [p.name for p in report.points if p.kind == "layer"]
    assert names >= {"device", *layers}
    boxes = [t.get_window_extent(canvas.get_renderer()).extents for t in texts]
    shared = [labels.overlap(tuple(a), tuple(b)) for a, b in combinations(boxes, 2)]
    assert max(shared) == 0
    for line in axes.lines:
        x, y = (np.asarray(v, float) for v in line.get_data())
        ends = axes.transData.transform(np.column_stack([x, y]))
        for (x0, y0), (x1, y1) in zip(ends, [*ends[1:], ends[-1]]):
            for share in np.linspace(0, 1, 100):
                px, py = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
                hit = [t.get_text() for t, (a, b, c, d) in zip(texts, boxes) if a < px < c and b < py < d]
                assert hit == []
