"""A perceptron learns from images with a setting; its curve is kept, and an interrupted run goes on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.limits import MB, RUN_MB
from bitloom.golden.names import shown
from bitloom.golden.training.batches import batches
from bitloom.golden.training.checkpoint import LARGEST, Checkpoint, check_range

from .data import LearnData
from .lfsr import STATE_BITS
from .mlp import MlpTrainer
from .setting import Setting

PRECISION = "float32"
ORDER = 1_000_000
"""Purpose in the keys of random streams that order images; the streams of weights have the layer's number here."""
MOST_SEED = (1 << STATE_BITS) - 2
"""Seeds up to here give the generator states that differ (lfsr.py)."""
MOST_LAYERS = 64
MOST_NEURONS = 1 << 20
BYTES = 64
CURVE = "curve"
"""Name of the curve in a checkpoint."""


def check_hidden(hidden: Sequence[int]) -> None:
    """ValueError unless there are 1 to MOST_LAYERS hidden layers, each of 1 to MOST_NEURONS neurons."""
    if not 1 <= len(hidden) <= MOST_LAYERS or not 1 <= min(hidden) <= max(hidden) <= MOST_NEURONS:
        rule = f"must be 1..{MOST_LAYERS}, of 1..{MOST_NEURONS} neurons"
        raise ValueError(f"learning: hidden layers {rule}, got {shown(hidden)}")


@dataclass(frozen=True, kw_only=True)
class LearnPlan:
    """How perceptrons are trained, apart from the setting."""

    hidden: tuple[int, ...] = (256, 256)
    """Neurons of each hidden layer: 1 to MOST_LAYERS layers, of 1 to MOST_NEURONS."""
    epochs: int = 30
    """How often all images are gone through, >= 1."""
    seed: int = 0
    """Of all that is random, 0 to MOST_SEED."""
    criterion: str = "cross_entropy"
    """Name of the loss."""
    rate_times: float = 1.0
    """Factor of the setting's rates, > 0."""
    held_out: bool = False
    """Whether a fifth of the training images, at random by the seed, is held out and takes the place of the test
    images, so that a rate can be chosen without them."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for name, low in (("epochs", 1), ("seed", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < low:
                raise ValueError(f"learning: {name} must be an integer >= {low}, got {value!r}")
        if not 0 < self.rate_times < float("inf"):
            raise ValueError(f"learning: rate_times must be > 0 and finite, got {self.rate_times!r}")
        if self.seed > MOST_SEED:
            raise ValueError(f"learning: seed must be <= {MOST_SEED}, got {shown(self.seed)}")
        check_hidden(self.hidden)

    def check_work(self, inputs: int, images: int) -> None:
        """Refuse what takes more memory than golden/limits.py allows: ValueError with the number and the limit.

        Each weight, and each neuron's value for an image when all images are looked at, takes up to BYTES while it is
        converted.
        """
        weights = sum(before * after for before, after in pairwise((inputs, *self.hidden, max(self.hidden))))
        RUN_MB.check("learning: hidden layers", BYTES * (weights + images * max(self.hidden)) / MB)


class CurvePoint(NamedTuple):
    """State after an epoch."""

    loss: float
    """Mean over the epoch's images, while it learned."""
    test_accuracy: float
    """Share of the test images that are right, 0 to 1: with nearest codes, and mean and variance of all training
    images."""


@dataclass(frozen=True)
class Learned:
    """The result of learning."""

    mlp: MlpTrainer
    curve: list[CurvePoint]
    """One an epoch."""


def learn(
    setting: Setting,
    plan: LearnPlan,
    data: LearnData,
    *,
    progress: Callable[[Sequence[CurvePoint]], None] | None = None,
    checkpoint: Path | None = None,
) -> Learned:
    """Train a perceptron.

    Parameters
    ----------
    setting : Setting
    plan : LearnPlan
    data : LearnData
    progress : callable, optional
        Called after each epoch with the curve so far.
    checkpoint : Path, optional
        A file, written after each epoch, from which an interrupted run goes on; the same arguments with the same file
        give the same result as a run that was never interrupted.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If there are fewer images than a batch has, if learning takes too much memory, or if the loss grows beyond all
        numbers.
    CheckpointError
        If the file is no checkpoint of this run.
    """
    if plan.held_out:
        data = data.held_out(plan.seed)
    if len(data.train) < setting.batch:
        raise ValueError(f"learning: images must be at least a batch, {setting.batch}, got {len(data.train)}")
    plan.check_work(data.train.shape[1], len(data.train))
    specs = setting.specs(data.train.shape[1], plan.hidden, int(data.train_labels.max()) + 1)
    mlp = MlpTrainer(data.train.shape[1], specs, plan.seed, PRECISION)
    curve = []
    mean = data.real(data.train).mean(axis=0) if setting.centred else 0
    images, tested = ((data.real(part) - mean).astype(PRECISION) for part in (data.train, data.test))
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, [asdict(setting), asdict(plan)], data.train, data.train_labels)
        if saved := store.read():
            with store.checking():
                curve = [CurvePoint(*point) for point in saved_curve(saved, plan.epochs, (LARGEST, 1))]
                mlp.restore({name: value for name, value in saved.items() if name != CURVE})
    while len(curve) < plan.epochs:
        mean_loss = _epoch(mlp, setting, plan, (images, data.train_labels), len(curve))
        if not mean_loss <= LARGEST:  # also refuses nan
            got = f"{mean_loss:g} in epoch {len(curve) + 1}"
            raise ValueError(f"learning: loss must stay below {LARGEST:g}, got {got}: lower the rate")
        predicted = mlp.outputs(tested, mlp.preset(images)).argmax(axis=1)
        curve.append(CurvePoint(mean_loss, float((predicted == data.test_labels).mean())))
        if store:
            store.write({**mlp.arrays(), CURVE: np.array(curve)})
        if progress:
            progress(curve)
    return Learned(mlp, curve)


def saved_curve(saved: Mapping[str, Array], epochs: int, most: tuple[float, float]) -> list[list[float]]:
    """The curve of a checkpoint.

    Parameters
    ----------
    saved : mapping of str to array
        Result of `Checkpoint.read`.
    epochs : int
        Of the run.
    most : tuple of float
        Largest first and second number of a point; the smallest is 0.

    Returns
    -------
    list of list of float
        The two numbers of each epoch that is done.

    Raises
    ------
    ValueError
        If there is none, or another.
    """
    curve = saved.get(CURVE, np.zeros(0))
    if curve.dtype != np.float64 or curve.ndim != 2 or curve.shape[1] != len(most) or not 1 <= len(curve) <= epochs:
        got = f"{curve.dtype} of shape {curve.shape}" if CURVE in saved else "none"
        raise ValueError(f"state: {CURVE} must be float64 of shape (1..{epochs}, {len(most)}), got {got}")
    for column, high in zip(curve.T, most):
        check_range(CURVE, column, 0, high)
    points: list[list[float]] = curve.tolist()
    return points


def _epoch(mlp: MlpTrainer, setting: Setting, plan: LearnPlan, data: tuple[Array, Array], epoch: int) -> float:
    """Go once through the images and their labels, in whole batches; the mean loss."""
    images, labels = data
    losses = []
    for chosen, share in batches(len(images), setting.batch, epoch, plan.epochs, plan.seed, ORDER):
        of_rate = plan.rate_times * share
        with np.errstate(over="ignore", invalid="ignore"):  # where numbers grow beyond all bounds, `learn` tells it
            losses.append(mlp.learn(images[chosen], labels[chosen], plan.criterion, setting.rule, of_rate)[0].mean())
    return float(np.mean(losses))
