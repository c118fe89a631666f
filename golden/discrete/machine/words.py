"""The 32-bit words of a training (golden/discrete/machine/program.py): states of layers and samples in, states out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Array

from .training import DenseLayer, Training

MATRICES = ("weights", "codes", "weight_gradients")
"""Fields of a layer's state that lie in the slaves; the others are vectors in the master."""


@dataclass
class LayerState:
    """A layer's parameters. ``codes`` is None where weights are continuous, ``weights`` where they are codes alone."""

    weights: Array | None
    """(outputs, inputs) words or None."""
    codes: Array | None
    """(outputs, inputs) int64 or None."""
    biases: Array
    """(outputs,) words."""
    weight_gradients: Array | None = None
    """(outputs, inputs) words or None for 0: the last weight gradients dw', or the velocities of the weights."""
    bias_gradients: Array | None = None
    """(outputs,) words or None for 0: the last gradients of the biases, or their sums since the batch began."""
    means: Array | None = None
    """(outputs,) words or None for 0: running means of centred results."""
    gains: Array | None = None
    """(outputs,) words or None for 1: by what normalised sums are multiplied."""
    sum_means: Array | None = None
    """(outputs,) words or None for 0."""
    sum_variances: Array | None = None
    """sum_means, sum_variances: (outputs,) words, or None for 0 and 1: running mean and variance of sums that are
    normalised, by which they are normalised without a batch."""

    def whole(self, form: WordFormat, training: Training, layer: DenseLayer) -> "LayerState":
        """A copy that has all that is kept of ``layer``, for None its value at the start."""
        arrays = {}
        for name in kept(training, layer):
            given = getattr(self, name)
            first = form.one if name in ("gains", "sum_variances") else 0
            arrays[name] = np.full(shape_of(layer, name), first, np.int64) if given is None else np.array(given)
        return replace(LayerState(None, None, np.zeros(0, np.int64)), **arrays)


def kept(training: Training, layer: DenseLayer) -> list[str]:
    """Fields of the state that are kept of a layer, in the order in which IO takes and gives them: gradients only where
    the rule remembers them."""
    is_kept = {
        "weights": layer.continuous,
        "codes": layer.weights.table != 0,
        "weight_gradients": training.rule.remembers,
        "biases": True,
        "bias_gradients": training.rule.remembers,
        "means": layer.centred,
        "gains": layer.normalised,
        "sum_means": layer.normalised,
        "sum_variances": layer.normalised,
    }
    return [name for name in is_kept if is_kept[name]]


def shape_of(layer: DenseLayer, name: str) -> tuple[int, ...]:
    """The shape of a field of a layer's state."""
    return (layer.outputs, layer.inputs) if name in MATRICES else (layer.outputs,)


def first_words(training: Training, form: WordFormat, states: Sequence[LayerState]) -> Array:
    """The words that the program takes before the first sample, (n,) uint32."""
    parts = []
    for layer, state in zip(training.layers, states):
        whole = state.whole(form, training, layer)
        for name in kept(training, layer):
            cells = getattr(whole, name)
            parts.append((cells if name == "codes" else form.pack(cells)).T.reshape(-1))
    words: Array = np.concatenate(parts).astype(np.uint32)
    return words


def sample_words(training: Training, form: WordFormat, inputs: Array, targets: Array) -> Array:
    """The words that the program takes for samples.

    Parameters
    ----------
    training : Training
    form : WordFormat
    inputs : (N, inputs) words, or codes if the inputs are discrete
    targets : (N, outputs) words

    Returns
    -------
    (N * (inputs + outputs),) uint32
    """
    first = inputs if training.inputs.table else form.pack(inputs)
    words: Array = np.concatenate([first, form.pack(targets)], axis=1).reshape(-1).astype(np.uint32)
    return words


def result_words(training: Training) -> int:
    """How many words the program gives at its end."""
    return sum(prod(shape_of(layer, name)) for layer in training.layers for name in kept(training, layer))


def read_states(training: Training, form: WordFormat, words: Array) -> list[LayerState]:
    """The states from the words that the program gives at its end; ValueError if they are too few or many."""
    expected = result_words(training)
    if len(words) != expected:
        raise ValueError(f"training: results must be {expected} words, got {len(words)}")
    place = 0
    states = []
    for layer in training.layers:
        arrays = {}
        for name in kept(training, layer):
            shape = shape_of(layer, name)
            cells = words[place : place + prod(shape)].reshape(shape[::-1]).T
            arrays[name] = cells.astype(np.int64) if name == "codes" else form.unpack(cells)
            place += prod(shape)
        states.append(replace(LayerState(None, None, arrays["biases"]), **arrays))
    return states
