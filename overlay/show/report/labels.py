"""Places for the labels of points in a plot: where they cross no line, no point and no other label.

Sizes are in points, 1/72 inch; a label's size is estimated from its letters, so that no font is asked.
"""

from collections.abc import Sequence
from math import ceil, hypot

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""
LETTER, LINE = 0.64, 1.25
"""Width of a letter and height of a line, as parts of the font's size; a little more than DejaVu Sans has."""
RINGS = (1.0, 1.6, 2.4, 3.4, 4.6)
"""Distances that are tried, in units of the nearest one."""
SIDES = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1))
"""Sides of a point in the order in which they are tried, below first."""


def size_of(text: str, font: float) -> tuple[float, float]:
    """Estimated width and height of a text in a font's size."""
    return LETTER * font * len(text), LINE * font


def around(x: float, y: float, width: float, height: float) -> Box:
    """The box of that size whose middle is (x, y)."""
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def along(x0: float, y0: float, x1: float, y1: float) -> list[Box]:
    """Boxes that cover a straight line."""
    steps = max(1, ceil(hypot(x1 - x0, y1 - y0) / 2))
    return [around(x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps, 3, 3) for k in range(steps + 1)]


def overlap(a: Box, b: Box) -> float:
    """Area that two boxes share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def placed(
    points: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], taken: Sequence[Box], room: Box
) -> list[tuple[float, float]]:
    """Where to put labels.

    Parameters
    ----------
    points
        Point of each label.
    sizes
        Width and height of each label.
    taken
        Areas that no label may cover: lines, points, other texts.
    room
        The plot's area; labels stay in it where they can.

    Returns
    -------
    list of tuple
        Middle of each label, relative to its point: the first place that is free, else the one that covers least.
    """
    used = list(taken)
    middles = []
    for (x, y), (width, height) in zip(points, sizes):
        best: tuple[float, float, float] | None = None
        for ring in RINGS:
            for side, up in SIDES:
                dx = side * (width / 2 + 8 * ring)
                dy = up * (height / 2 + 8 * ring)
                box = around(x + dx, y + dy, width, height)
                outside = width * height - overlap(box, room)
                covered = sum(overlap(box, other) for other in used) + outside
                if best is None or covered < best[0] - 1e-9:
                    best = covered, dx, dy
            if best is not None and best[0] <= 1e-9:
                break
        assert best is not None
        used.append(around(x + best[1], y + best[2], width, height))
        middles.append(best[1:])
    return middles
