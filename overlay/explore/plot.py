"""A picture of the Pareto front: cycles a frame against LUTs, on logarithmic axes. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bitloom.overlay.picture import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .tries import Row


def plot(path: Path, title: str, front: Sequence["Row"], best: "Row | None", lut_limit: float | None = None) -> None:
    """Write the picture, as PNG or SVG by the file's ending.

    Parameters
    ----------
    path
        The file; its folder is made if it isn't there.
    title
        Of the picture.
    front
        Rows, fastest first.
    best
        The row that is marked, or None.
    lut_limit
        LUTs of the budget, or None.
    """
    with picture(path, (8, 5)) as axes:
        draw(axes, title, front, best, lut_limit)


def draw(
    axes: "Axes", title: str, front: Sequence["Row"], best: "Row | None" = None, lut_limit: float | None = None
) -> None:
    """Draw the picture on axes of matplotlib. Each point is labelled with its number of NPUs.

    Parameters
    ----------
    axes
        Where to draw.
    title, front, best, lut_limit
        As for ``plot``.
    """
    axes.set(xscale="log", yscale="log", title=title, xlabel="LUTs, logic and memory", ylabel="cycles a frame")
    luts = [row.figures.lut for row in front]
    cycles = [row.figures.cycles for row in front]
    axes.plot(luts, cycles, "o-", color="tab:blue", label="Pareto front, NPUs beside the points")
    for row in front:
        axes.annotate(
            str(len(row.candidate.npus)),
            (row.figures.lut, row.figures.cycles),
            xytext=(5, 5),
            textcoords="offset points",
        )
    if best is not None:
        axes.plot([best.figures.lut], [best.figures.cycles], "s", color="tab:red", label="chosen")
    if lut_limit is not None:
        axes.axvline(lut_limit, color="gray", linestyle="--", label="LUTs of the budget")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
