"""A picture of a confusion matrix. Needs matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bitloom.overlay.picture import picture

from .score import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERS = 20
"""Classes up to which each cell has its number, and each class its name."""


def plot_confusion(path: Path, title: str, score: Score) -> None:
    """Write the picture, as PNG or SVG by the file's ending; its folder is made if it isn't there.

    Parameters
    ----------
    path
        The file.
    title
        Of the picture.
    score
        Whose confusion matrix it shows.

    Raises
    ------
    ValueError, ImportError
        As `bitloom.overlay.picture.check_plot`.
    """
    side = 3.5 + 0.5 * min(len(score.classes), MOST_NUMBERS)
    with picture(path, (side + 1, side)) as axes:
        draw_confusion(axes, title, score)


def draw_confusion(axes: "Axes", title: str, score: Score) -> None:
    """Draw a confusion matrix on axes of matplotlib: a row a class, coloured by the share of the class's images.

    Parameters
    ----------
    axes
        Where to draw.
    title, score
        As for `plot_confusion`.
    """
    count = len(score.classes)
    shares = score.confusion / np.maximum(score.confusion.sum(axis=1, keepdims=True), 1)
    shown = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.figure.colorbar(shown, ax=axes, label="share of the class's images")
    axes.set(title=_plain(title), xlabel="taken for", ylabel="class")
    if count > MOST_NUMBERS:
        return
    names = [_plain(name) for name in score.classes]
    axes.set_xticks(range(count), labels=names, rotation=90 if max(map(len, names)) > 2 else 0)
    axes.set_yticks(range(count), labels=names)
    for (row, column), images in np.ndenumerate(score.confusion):
        if images:
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{images:,}", ha="center", va="center", color=colour, fontsize="small")


def _plain(text: str) -> str:
    """A text in which matplotlib sees no formula."""
    return text.replace("$", r"\$")
