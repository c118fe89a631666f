"""A perceptron learns from images with a setting; its curve is kept, and an interrupted run goes on."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.training.checkpoint import Checkpoint
from bitloom.golden.training.reproducible import random_order

from .data import LearnData
from .mlp import MlpTrainer
from .setting import Setting

ORDER = 1_000_000
"""What the random streams of the images' order are for; those of weights have the layer's number here."""


@dataclass(frozen=True, kw_only=True)
class LearnPlan:
    """What is the same for all settings.

    Attributes
    ----------
    hidden : tuple of int
        Neurons of each hidden layer.
    epochs : int
        How often all images are gone through, >= 1.
    seed : int
        Of all that is random, >= 0.
    criterion : str
        Name of the loss.
    """

    hidden: tuple[int, ...] = (256, 256)
    epochs: int = 30
    seed: int = 0
    criterion: str = "cross_entropy"

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < low:
                raise ValueError(f"learning: {name} must be an integer >= {low}, got {value!r}")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"learning: hidden layers must be one or more, of 1 neuron or more, got {self.hidden}")


class CurvePoint(NamedTuple):
    """State after an epoch."""

    loss: float
    """Mean over the epoch's images, while it learned."""
    test_accuracy: float
    """Share of the test images that are right, 0 to 1, with weights as for use."""


@dataclass(frozen=True)
class Learned:
    """What learning makes.

    Attributes
    ----------
    mlp : MlpTrainer
    curve : list of CurvePoint
        One an epoch.
    """

    mlp: MlpTrainer
    curve: list[CurvePoint]


def learn(
    setting: Setting,
    plan: LearnPlan,
    data: LearnData,
    *,
    progress: Callable[[int, int], None] | None = None,
    checkpoint: Path | None = None,
) -> Learned:
    """Train a perceptron.

    Parameters
    ----------
    setting : Setting
    plan : LearnPlan
    data : LearnData
    progress : callable, optional
        Called with epochs done and epochs in all, after each.
    checkpoint : Path, optional
        A file, written after each epoch, from which an interrupted run goes on; the same arguments with the same file
        give the same result as a run that was never interrupted.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If there are fewer images than a batch has, or if the checkpoint is of another run.
    """
    if len(data.train) < setting.batch:
        raise ValueError(f"learning: images must be at least a batch, {setting.batch}, got {len(data.train)}")
    specs = setting.specs(plan.hidden, int(data.train_labels.max()) + 1)
    mlp, curve = MlpTrainer(data.train.shape[1], specs, plan.seed), []
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, [asdict(setting), asdict(plan)], data.train, data.train_labels)
        if saved := store.read():
            curve = [CurvePoint(*point) for point in saved.pop("curve").tolist()]
            mlp.restore(saved)
    while len(curve) < plan.epochs:
        mean_loss = _epoch(mlp, setting, plan, data, len(curve))
        curve.append(CurvePoint(mean_loss, accuracy(mlp, data)))
        if store:
            store.write({**mlp.arrays(), "curve": np.array(curve)})
        if progress:
            progress(len(curve), plan.epochs)
    return Learned(mlp, curve)


def accuracy(mlp: MlpTrainer, data: LearnData) -> float:
    """Share of the test images that are right, 0 to 1, with nearest codes and the moments of all training images."""
    preset = mlp.preset(data.real(data.train))
    return float((mlp.outputs(data.real(data.test), preset).argmax(axis=1) == data.test_labels).mean())


def _epoch(mlp: MlpTrainer, setting: Setting, plan: LearnPlan, data: LearnData, epoch: int) -> float:
    """Go once through the images, in whole batches; the mean loss."""
    batches = len(data.train) // setting.batch
    order: Array = random_order(len(data.train), plan.seed, ORDER, epoch)[: batches * setting.batch]
    losses = []
    for number, chosen in enumerate(order.reshape(batches, setting.batch)):
        done = (epoch * batches + number) / (plan.epochs * batches)
        share = 1 - done * done * (3 - 2 * done)
        x, labels = data.real(data.train[chosen]), data.train_labels[chosen]
        losses.append(mlp.learn(x, labels, plan.criterion, setting.rule, share)[0].mean())
    return float(np.mean(losses))
