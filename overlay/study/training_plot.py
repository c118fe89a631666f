"""A picture of how a network was trained: loss and accuracy by epoch, a line a seed. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path

from bitloom.overlay.picture import picture

from .training_runs import TrainingRun


def plot_training(path: Path, title: str, runs: Sequence[TrainingRun]) -> None:
    """Write the picture, as PNG or SVG by the file's ending; its folder is made if it isn't there.

    Parameters
    ----------
    path
        The file.
    title
        Of the picture, without mathematics.
    runs
        With curves.

    Raises
    ------
    ValueError
        If the file's name has another ending.
    ImportError
        If matplotlib is missing.
    """
    with picture(path, (9, 5.5)) as axes:
        axes.set(xlabel="epochs", ylabel="right images, %")
        axes.set_title(title.replace("$", r"\$"))
        losses = axes.twinx()
        losses.set(ylabel="loss, mean over training images", yscale="log")
        lines = []
        for number, run in enumerate(runs):
            epochs = [point.epoch for point in run.curve]
            label = "" if number else "test, integers"
            for values, style, words, on in (
                ([100 * point.test_accuracy for point in run.curve], "C0-", label, axes),
                ([100 * point.train_accuracy for point in run.curve], "C1--", label and "training", axes),
                ([max(point.loss, 1e-12) for point in run.curve], "C2:", label and "loss", losses),
            ):
                lines += on.plot(epochs, values, style, marker="." if len(epochs) < 2 else None, label=words)
        axes.grid(True, alpha=0.3)
        axes.legend(lines[:3], [line.get_label() for line in lines[:3]], loc="center right", fontsize="small")
