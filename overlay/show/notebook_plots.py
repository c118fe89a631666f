"""Pictures for notebooks. Each function draws one, on axes of matplotlib that are given or on its own figure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.overlay.evaluation.plot import draw_confusion
from bitloom.overlay.evaluation.score import Score
from bitloom.overlay.show.report.colours import LIGHT, SPENT
from bitloom.overlay.virtual.sim.vcd import SignalTrace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bitloom.golden.training.train import Epoch

GOOD = LIGHT["beats"]
BAD = LIGHT["wait_room"]
LETTERS = 130
"""Letters that fit beside each other in the width of a waveform."""


def images(axes: Sequence["Axes"], pictures: np.ndarray, titles: Sequence[str], marked: Sequence[bool] = ()) -> None:
    """Draw images, one an axes.

    Parameters
    ----------
    axes
        One for each image.
    pictures
        (N, H, W, 1) grey on white, or (N, H, W, 3) uint8 RGB.
    titles
        One for each image.
    marked
        A flag for each image whose title is red.
    """
    grey = {"cmap": "gray_r", "vmin": 0, "vmax": pictures.max()} if pictures.shape[3] == 1 else {}
    for k, (axis, picture, title) in enumerate(zip(axes, pictures, titles)):
        axis.imshow(picture.squeeze(), **grey)
        axis.set_title(title, fontsize=9, parse_math=False, color=BAD if len(marked) and marked[k] else "black")
        axis.set_xticks([])
        axis.set_yticks([])


def gallery(
    pictures: np.ndarray, predicted: np.ndarray, labels: np.ndarray, classes: Sequence[str], columns: int
) -> None:
    """Draw images in rows, each with its predicted class; where that is wrong in red, with the class that it is.

    Parameters
    ----------
    pictures
        As of `images`.
    predicted, labels
        (N,) classes.
    classes
        Names of the classes.
    columns
        Images in a row.
    """
    from matplotlib import pyplot

    rows = -(-len(pictures) // columns)
    _, axes = pyplot.subplots(rows, columns, figsize=(10, 1.1 * rows + 0.3), layout="constrained", squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    titles = [classes[p] if p == want else f"{classes[p]}, is {classes[want]}" for p, want in zip(predicted, labels)]
    images(axes.flat, pictures, titles, predicted != labels)


def images_and_scores(pictures: np.ndarray, values: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> None:
    """Draw a few images, with the class that each is, and the scores of each below it.

    Parameters
    ----------
    pictures
        As of `images`.
    values
        (N, classes) scores.
    labels
        (N,) classes.
    classes
        Names of the classes.
    """
    from matplotlib import pyplot

    ratios = {"height_ratios": (1, 2)}
    _, axes = pyplot.subplots(2, len(pictures), figsize=(10, 5), layout="constrained", gridspec_kw=ratios)
    images(axes[0], pictures, [f"is {classes[label]}" for label in labels])
    for axis, image_scores, label in zip(axes[1], values, labels):
        scores(axis, image_scores, classes, int(label))


def learning(history: Sequence["Epoch"], accuracy: float) -> None:
    """Draw the share of training images that are right after each epoch, and that of test images at the end.

    Parameters
    ----------
    history
        Epochs, as ``train`` tells of them.
    accuracy
        Of the test images, 0..1.
    """
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    right = [100 * epoch.accuracy for epoch in history]
    axes.plot([epoch.number for epoch in history], right, "o-", label="training images")
    axes.axhline(100 * accuracy, color=BAD, linestyle="--", label="test images, at the end")
    axes.set(title="while it learns", xlabel="epoch", ylabel="right, %")
    axes.legend()


def confusion(axes: "Axes", labels: np.ndarray, predicted: np.ndarray, classes: Sequence[str]) -> None:
    """Draw how many images of each class (rows) were taken for which class (columns), as `bitloom evaluate` does.

    Parameters
    ----------
    axes
        Where to draw.
    labels, predicted
        (N,) classes.
    classes
        Names of the classes.
    """
    counts = np.zeros((len(classes), len(classes)), int)
    np.add.at(counts, (labels, predicted), 1)
    draw_confusion(axes, "images by class and prediction", Score(tuple(classes), counts))


def cycles(axes: "Axes", counters: Mapping[str, int], names: Sequence[str]) -> None:
    """Draw where the cycles of each NPU went: a bar an NPU, with the array's share beside it.

    Parameters
    ----------
    axes
        Where to draw.
    counters
        Of ``Accelerator.counters``.
    names
        Of the NPUs; the first one is drawn uppermost.
    """
    total = counters["cycles"]
    begin = np.zeros(len(names))
    for key, label in SPENT.items():
        share = np.array([100 * counters.get(f"npu{n}_{key}", 0) / total for n in range(len(names))])
        if share.any():
            axes.barh(names, share, left=begin, color=LIGHT[key], label=label)
        begin += share
    for n in range(len(names)):
        axes.text(101, n, f"{counters[f'npu{n}_beats'] / total:.1%}", va="center")
    axes.invert_yaxis()
    axes.set(xlim=(0, 112), xlabel=f"share of {total:,} cycles, %")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=len(SPENT), frameon=False)


def waveform(axes: "Axes", signals: Mapping[str, SignalTrace], begin: int, end: int) -> None:
    """Draw signals, uppermost first: bits as lines, others as bars with values.

    Parameters
    ----------
    axes
        Where to draw.
    signals
        By the names that stand beside them.
    begin, end
        Clock cycles ``begin`` .. ``end`` - 1.
    """
    time = np.arange(begin, end + 1)
    for row, signal in enumerate(signals.values()):
        values = signal.in_cycles(begin, end)
        bottom = -1.5 * row
        if values.max(initial=0) <= 1:
            line = bottom + np.append(values, values[-1])
            axes.step(time, line, where="post", color=GOOD, linewidth=1)
            axes.fill_between(time, bottom, line, step="post", color=GOOD, alpha=0.3)
            continue
        edges = [0, *(np.flatnonzero(np.diff(values)) + 1), len(values)]
        for a, b in pairwise(edges):
            axes.broken_barh([(begin + a, b - a)], (bottom, 1), facecolor=LIGHT["panel"], edgecolor=LIGHT["muted"])
            if len(str(values[a])) * len(values) < LETTERS * (b - a):
                axes.text(begin + (a + b) / 2, bottom + 0.5, f"{values[a]}", ha="center", va="center", fontsize=7)
    axes.set_yticks([0.5 - 1.5 * row for row in range(len(signals))], list(signals))
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(begin, end), xlabel="clock cycle")
    axes.spines[["left", "right", "top"]].set_visible(False)


def waves(signals: Mapping[str, SignalTrace], begin: int, end: int, title: str) -> None:
    """Draw signals as `waveform` does, on a figure of their own with a title."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(10, 0.5 * len(signals) + 0.7), layout="constrained")
    waveform(axes, signals, begin, end)
    axes.set_title(title)


def visits(axes: "Axes", table: StageTables, windows: int) -> None:
    """Draw which tuple each tap of a stage's first windows reads: new ones, old ones, and how far back the oldest lies.

    Parameters
    ----------
    axes
        Where to draw.
    table
        The stage's schedule.
    windows
        How many windows.
    """
    taps = np.flatnonzero(table.window < windows)
    index = table.index[taps]
    new = table.new[taps]
    newest = table.newest[taps]
    count = table.capacity(False)
    axes.fill_between(
        taps,
        np.maximum(newest - count + 1, 0),
        newest,
        color=LIGHT["muted"],
        alpha=0.2,
        step="mid",
        label=f"in the memory: {count} tuple{'s' * (count > 1)}",
    )
    axes.plot(taps[new], index[new], "s", markersize=4, color=BAD, label="new: arrives now")
    axes.plot(taps[~new], index[~new], "o", markersize=3, color=GOOD, label="old: read again")
    for end in taps[table.last[taps]][:-1]:
        axes.axvline(end + 0.5, color=LIGHT["line"], linewidth=0.7)
    axes.set(
        title=f"{table.stage.name}, {table.map_order} order",
        xlabel="tap; lines part windows",
        ylabel="tuple, in order of arrival",
    )
    axes.legend(loc="upper left", fontsize=8)


def scores(axes: "Axes", values: np.ndarray, classes: Sequence[str], label: int | None = None) -> None:
    """Draw the scores of one image as bars. The largest one is the class that is given; the true class has a bold name.

    Parameters
    ----------
    axes
        Where to draw.
    values
        (classes,) scores.
    classes
        Names of the classes.
    label
        The true class, None if it is not known.
    """
    best = int(values.argmax())
    colours = [(GOOD if label in (None, best) else BAD) if k == best else LIGHT["line"] for k in range(len(classes))]
    axes.barh(range(len(classes)), values, color=colours)
    axes.set_yticks(range(len(classes)), classes, fontsize=8, parse_math=False)
    for k, text in enumerate(axes.get_yticklabels()):
        text.set_fontweight("bold" if k == label else "normal")
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_xlabel("score")
