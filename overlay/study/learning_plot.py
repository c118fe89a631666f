"""A picture of learning curves: test accuracy after each epoch, a line a setting. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bitloom.overlay.picture import picture

from .learning import LearningRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_curves(path: Path, title: str, rows: Sequence[LearningRow]) -> None:
    """Write the picture, as PNG or SVG by the file's ending; its folder is made if it isn't there.

    Parameters
    ----------
    path : Path
    title : str
    rows : sequence of LearningRow

    Raises
    ------
    ValueError
        If the file's name has another ending.
    ImportError
        If matplotlib is missing.
    """
    with picture(path, (9, 5.5)) as axes:
        draw_curves(axes, title, rows)


def draw_curves(axes: "Axes", title: str, rows: Sequence[LearningRow]) -> None:
    """Draw the curves on axes of matplotlib: the mean over seeds of the share of wrong test images,
    and in the legend the accuracy at the end.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    title : str
    rows : sequence of LearningRow
    """
    axes.set(title=title, xlabel="epochs", ylabel="wrong test images, %", yscale="log")
    for number, row in enumerate(rows):
        wrong = 100 * (1 - np.array(row.curves).mean(axis=0))
        style = ("-", "--", ":")[number // 10 % 3]
        axes.plot(np.arange(1, len(wrong) + 1), wrong, style, label=f"{row.setting}: {row.mean:.2%}")
    axes.set_yticks([1, 2, 5, 10, 20, 50], labels=["1", "2", "5", "10", "20", "50"])
    axes.minorticks_off()
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))  # beside the curves, which it would hide
