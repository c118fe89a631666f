"""Training of networks of few bits in plain numpy; the same seed gives the same bytes on every machine.

A network of Conv, Dense, pool, Threshold, Requantise and Add layers, integers in, is trained with straight-through
estimators (golden/training/blocks.py, residual.py), batch normalisation and Adam, in the exact arithmetic of
golden/training/reproducible.py. Batch normalisation is then folded into integers (golden/training/trained.py):
thresholds, or bias, multiplier and shift. The last layer stays raw: class = argmax.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import fsum, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Model, Network

from .batches import batches
from .block_graph import BlockGraph
from .checkpoint import Checkpoint
from .loss import hinge
from .reproducible import LIMIT
from .state import State
from .trained import Trained, by_positions, norms_of

ORDER = 0
"""Purpose of random streams that order the images; streams are named by (seed, purpose, number)."""
MOST_RATE = 1.0
"""The largest `Recipe.rate`: a step as far as from 0 to the bound of a weight."""
MOST_MARGIN = LIMIT
"""The largest `Recipe.margin`: errors are as large as what is missing to it, and are cut off there."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train."""

    epochs: int
    """How often all images are gone through, >= 1."""
    seed: int = 0
    """Of all that is random, >= 0."""
    batch: int = 32
    """Images from which the parameters are changed at a time, >= 1."""
    rate: float = 0.03
    """How far Adam changes a parameter at first, > 0 and at most MOST_RATE; it falls to 0 until the end."""
    margin: float = 3.0
    """A class's output, divided by the root of its fan-in and by the units of features and weights, should be >= margin
    for the class's own images and <= -margin for others (squared hinge loss). > 0 and at most MOST_MARGIN."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what, least in (("epochs", 1), ("seed", 0), ("batch", 1)):
            value = getattr(self, what)
            if type(value) is not int or value < least:
                raise ValueError(f"training: {what} must be an integer >= {least}, got {value!r}")
        for what, most in (("rate", MOST_RATE), ("margin", MOST_MARGIN)):
            if not 0 < getattr(self, what) <= most:
                raise ValueError(f"training: {what} must be > 0 and at most {most:g}, got {getattr(self, what)!r}")


class Epoch(NamedTuple):
    """EpochProgress of training after an epoch."""

    number: int
    """Epochs that are done."""
    epochs: int
    """Epochs in all."""
    loss: float
    """Mean over the epoch's images, while it learned."""
    accuracy: float
    """Share of the epoch's images that were right, 0 to 1, while it learned."""
    trained: Callable[[], Trained]
    """Makes the result of training as if training ended here; the call goes through all images once."""


EpochProgress = Callable[[Epoch], None]
"""Called behind each epoch."""


def train(
    network: Network,
    images: Array,
    labels: Array,
    recipe: Recipe,
    *,
    progress: EpochProgress | None = None,
    checkpoint: Path | None = None,
) -> Model:
    """Train a network and fold what it learned to integers.

    For parameters and errors see `fit`.

    Returns
    -------
    Model
        The network with its weights and thresholds.
    """
    return fit(network, images, labels, recipe, progress=progress, checkpoint=checkpoint).model()


def fit(
    network: Network,
    images: Array,
    labels: Array,
    recipe: Recipe,
    *,
    progress: EpochProgress | None = None,
    checkpoint: Path | None = None,
) -> Trained:
    """Train a network.

    Parameters
    ----------
    network : Network
        Of layers that `bitloom.golden.training.block_graph.BlockGraph` knows.
    images : (N, H, W, C) integers
        Of the network's input map; at least a batch. What is left over by whole batches is another part of the images
        in each epoch.
    labels : (N,) integers
        The class of each image.
    recipe : Recipe
    progress : callable, optional
        Called with an `Epoch` after each epoch.
    checkpoint : Path, optional
        A file, written after each epoch, from which an interrupted run goes on. The same arguments with the same file
        give the same result as a run that was never interrupted.

    Returns
    -------
    Trained

    Raises
    ------
    ValueError
        If the network can't be trained here, if images or labels don't fit it, or if the checkpoint is of another run.
    """
    last = _last(network)
    graph = BlockGraph(network, recipe.batch)
    _check_data(network, images, labels, recipe.batch)
    state = State.initial(graph.blocks, recipe.seed)
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, [network.to_dict(), asdict(recipe)], images, labels)
        saved = store.read()
        with store.checking():
            state.restore(saved, recipe.epochs)
    x = by_positions(images)
    scale = 1 / sqrt(last.fan_in(*network.sources(last))) / graph.blocks[last.name].target_unit

    def trained() -> Trained:
        params = {name: {key: value.copy() for key, value in group.items()} for name, group in state.params.items()}
        return Trained(network, params, norms_of(network, graph, params, x, recipe.batch))

    while state.epoch < recipe.epochs:
        loss, accuracy = _epoch(state, graph, x, labels, recipe, scale)
        if store:
            store.write(state.arrays())
        if progress:
            progress(Epoch(state.epoch, recipe.epochs, loss, accuracy, trained))
    return trained()


def _epoch(
    state: State, graph: BlockGraph, images: Array, labels: Array, recipe: Recipe, scale: float
) -> tuple[float, float]:
    """Go once through the flat images, in whole batches; returns mean loss and accuracy."""
    losses: list[float] = []
    right = 0
    for chosen, share in batches(len(images), recipe.batch, state.epoch, recipe.epochs, recipe.seed, ORDER):
        x, steps = graph.forward(state.params, images[chosen])
        output = x.reshape(len(x), -1)
        loss, error = hinge(output, labels[chosen], scale, recipe.margin)
        losses += loss.tolist()
        right += int((output.argmax(axis=1) == labels[chosen]).sum())
        state.tick()
        for name, slopes in graph.backward(state.params, steps, error.reshape(x.shape)):
            state.update(name, slopes, recipe.rate * share)
    state.epoch += 1
    return fsum(losses) / len(losses), right / len(losses)


def _last(network: Network) -> Weighted:
    """The network's last layer, whose accumulators are the classes' scores; ValueError if it can't be that."""
    last = network.layers[-1]
    if not isinstance(last, Weighted) or network.output.positions != 1:
        raise ValueError(
            f"{network.name}: the last layer must be dense, or a conv with one window, "
            f"got {last.kind} with {network.output.positions} positions"
        )
    if last.accumulate != "popcount":
        raise ValueError(f"{network.name}: the last layer must accumulate by popcount, got {last.accumulate}")
    return last


def _check_data(network: Network, images: Array, labels: Array, batch: int) -> None:
    if images.ndim != 4 or images.shape[1:] != network.input.shape or len(images) < batch:
        raise ValueError(
            f"{network.name}: images must have shape (N, {', '.join(map(str, network.input.shape))}), "
            f"N >= {batch}, got {images.shape}"
        )
    network.input.encoding.check(f"{network.name}: images", images)
    if labels.shape != images.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"{network.name}: labels must be {len(images)} integers, got {labels.shape} {labels.dtype}")
    if labels.min() < 0 or labels.max() >= network.output.channels:
        raise ValueError(
            f"{network.name}: labels must be 0..{network.output.channels - 1}, got {labels.min()}..{labels.max()}"
        )
