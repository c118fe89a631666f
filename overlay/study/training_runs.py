"""Training of a network with one seed: checkpoint, learning curve, and accuracy of the network of integers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitloom.golden import atomic
from bitloom.golden.encoding import Array
from bitloom.golden.kernels import packed
from bitloom.golden.names import shown
from bitloom.golden.network import Model, Network
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.golden.training.checkpoint import LARGEST
from bitloom.golden.training.train import Epoch, Recipe, Trained, fit
from bitloom.overlay.picture import picture

from .training_data import TrainingData


class EpochPoint(NamedTuple):
    """Learning after an epoch."""

    epoch: int
    """Epochs that are done, from 1."""
    loss: float
    """Mean over the epoch's images, while it learned."""
    train_accuracy: float
    """Share of the epoch's images that were right, 0 to 1, while it learned."""
    test_accuracy: float
    """Share of the test images that the network of integers finds, 0 to 1."""


@dataclass(frozen=True)
class TrainingRun:
    """The figures of a network that was trained with one seed."""

    seed: int
    """Of the run."""
    model: Model
    """The network of integers."""
    accuracy: float
    """Share of the test images whose class the network of integers finds."""
    trained_accuracy: float
    """The same share for the network as trained, with batch normalisation in real numbers."""
    same_classes: float
    same_outputs: float
    """same_classes, same_outputs: shares of test images, and of outputs, that are equal in both."""
    curve: tuple[EpochPoint, ...]
    """A point an epoch, if points were asked for."""


def curve_file(checkpoint: Path) -> Path:
    """The file beside a checkpoint that holds the learning curve so far."""
    return atomic.inside(checkpoint.parent, checkpoint.with_suffix(".curve.json").name)


def run_training(
    network: Network,
    data: TrainingData,
    recipe: Recipe,
    checkpoint: Path | None,
    progress: Callable[[Epoch], None],
    *,
    curve: bool = False,
    real_weights: bool = False,
) -> TrainingRun:
    """Train a network.

    Parameters
    ----------
    network, recipe
        See `bitloom.golden.training.train.fit`.
    data
        Images to learn from and to test with.
    checkpoint
        A file from which an interrupted run goes on; None: there is none.
    progress
        Called after each epoch.
    curve
        Whether the network is tested after each epoch; the points so far are kept beside the checkpoint.
    real_weights
        Whether the model has the real numbers of which its weights of 1 bit are the signs.

    Returns
    -------
    TrainingRun

    Raises
    ------
    OSError, ValueError
        As `bitloom.golden.training.train.fit`, or if the file of the curve is no such file.
    """
    points = _read_points(checkpoint, recipe.epochs) if curve and checkpoint else {}

    def note(epoch: Epoch) -> None:
        if curve:
            accuracy = _share(_classes(packed.forward(epoch.trained().model(), data.test_images)), data.test_labels)
            points[epoch.number] = EpochPoint(epoch.number, epoch.loss, epoch.accuracy, accuracy)
            if checkpoint:
                atomic.write_text(curve_file(checkpoint), json.dumps(list(points.values())) + "\n")
        progress(epoch)

    trained = fit(network, data.images, data.labels, recipe, progress=note, checkpoint=checkpoint)
    model = trained.model(real_weights=real_weights)
    return _tested(trained, model, data, recipe.seed, tuple(points[number] for number in sorted(points)))


def _tested(
    trained: Trained, model: Model, data: TrainingData, seed: int, curve: tuple[EpochPoint, ...]
) -> TrainingRun:
    """Test the network of integers and the network as trained, and compare both."""
    integers = packed.forward(model, data.test_images)
    real = trained.forward(data.test_images)
    predicted = _classes(integers)
    meant = _classes(real)
    return TrainingRun(
        seed,
        model,
        _share(predicted, data.test_labels),
        _share(meant, data.test_labels),
        _share(predicted, meant),
        _share(integers, real),
        curve,
    )


def _classes(outputs: Array) -> Array:
    """(N, 1, 1, classes) -> (N,): the largest output, of equal ones the first."""
    classes: Array = outputs.reshape(len(outputs), -1).argmax(axis=1)
    return classes


def _share(some: Array, others: Array) -> float:
    return float((some == others).mean())


def _read_points(checkpoint: Path, epochs: int) -> dict[int, EpochPoint]:
    """The points that a run has kept; none if it has just begun. ValueError if the file is another one."""
    path = curve_file(checkpoint)
    if not checkpoint.exists() or not path.exists():
        return {}
    rows = read_json(path, "a learning curve")
    with naming(str(path)):
        rule = f"must be a learning curve: a list of [epoch 1..{epochs}, loss, accuracy, accuracy]"
        if not isinstance(rows, list):
            raise ValueError(f"{rule}, got {shown(rows)}")
        for row in rows:
            if not _is_point(row, epochs):
                raise ValueError(f"{rule}, got {shown(row)}")
        return {row[0]: EpochPoint(*row) for row in rows}


def _is_point(row: object, epochs: int) -> bool:
    if not isinstance(row, list) or len(row) != 4 or type(row[0]) is not int or not 1 <= row[0] <= epochs:
        return False
    return all(type(x) is float and 0 <= x <= top for x, top in zip(row[1:], (LARGEST, 1, 1)))


def mean_accuracy(runs: list[TrainingRun]) -> float:
    """Mean over seeds of the accuracy of the network of integers."""
    return float(np.mean([run.accuracy for run in runs]))


def plot_training(path: Path, title: str, runs: Sequence[TrainingRun]) -> None:
    """Write a picture of loss and accuracy by epoch, a line a seed, as PNG or SVG by the file's ending.

    Its folder is made if it isn't there.

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
    ValueError, ImportError
        As `bitloom.overlay.picture.check_plot`.
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
