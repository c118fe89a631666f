"""The 32-bit words of a training (golden/discrete/machine/program.py): parameters and samples in, parameters out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Array

from .training import Training


@dataclass
class LayerState:
    """Weights and biases of a layer. ``codes`` is None where weights are continuous, ``weights`` where they are codes
    alone."""

    weights: Array | None
    """(outputs, inputs) words or None."""
    codes: Array | None
    """(outputs, inputs) int64 or None."""
    biases: Array
    """(outputs,) words."""
    gradients: Array | None = field(default=None)
    """(outputs, inputs) words or None: the last weight gradients dw', 0 if None."""
    bias_gradients: Array | None = field(default=None)
    """(outputs,) words or None: the last gradients of the biases, 0 if None."""


def first_words(training: Training, form: WordFormat, states: Sequence[LayerState]) -> Array:
    """The words that the program takes before the first sample, (n,) uint32."""
    parts: list[Array] = []
    for layer, state in zip(training.layers, states):
        shape = (layer.outputs, layer.inputs)
        if layer.continuous:
            assert state.weights is not None
            parts.append(form.pack(state.weights).T)
        if layer.weights.table:
            assert state.codes is not None
            parts.append(state.codes.T)
        parts.append(form.pack(np.zeros(shape, np.int64) if state.gradients is None else state.gradients).T)
        before = np.zeros(layer.outputs, np.int64) if state.bias_gradients is None else state.bias_gradients
        parts += [form.pack(state.biases), form.pack(before)]
    words: Array = np.concatenate([part.reshape(-1) for part in parts]).astype(np.uint32)
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
    return sum(
        (layer.continuous + (layer.weights.table != 0)) * layer.inputs * layer.outputs + layer.outputs
        for layer in training.layers
    )


def read_weights(training: Training, form: WordFormat, words: Array) -> list[LayerState]:
    """Weights and biases from the words that the program gives at its end; ValueError if they are too few or many."""
    place = 0
    states = []
    expected = result_words(training)
    if len(words) != expected:
        raise ValueError(f"training: results must be {expected} words, got {len(words)}")
    for layer in training.layers:
        size = layer.inputs * layer.outputs
        blocks: list[Array | None] = []
        for kept in (layer.continuous, layer.weights.table != 0):
            blocks.append(words[place : place + size].reshape(layer.inputs, layer.outputs).T if kept else None)
            place += size * kept
        weights = None if blocks[0] is None else form.unpack(blocks[0])
        codes = None if blocks[1] is None else blocks[1].astype(np.int64)
        states.append(LayerState(weights, codes, form.unpack(words[place : place + layer.outputs])))
        place += layer.outputs
    return states
