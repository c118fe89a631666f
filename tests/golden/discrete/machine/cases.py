"""Trainings for the tests of the machine: all, some or no tensors discrete; asymmetric on purpose."""

import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.machine.training import DenseLayer, Kind, Training
from bitloom.golden.discrete.machine.words import LayerState
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.discrete.word import WordFormat

TABLES = {
    1: (CodeTable((0.25, -0.25)), 1),
    2: (CodeTable((-1, -1 / 8, 1 / 8, 1)), 1),
    3: (CodeTable((2, -1 / 2, -2, 1 / 4, -1 / 16, 1 / 16, 1 / 2, -1)), 2),
}
"""Of 1, 2 and 3 bits; the codes of the last are in no order."""
CONVERTERS = {number: Converter(table=table, zone=zone) for number, (table, zone) in TABLES.items()}
"""As a machine keeps them."""


def training(*, sizes=(5, 7, 3), activation="relu", **kinds) -> Training:
    """A perceptron whose layers have all the same ``kinds``; the inputs are of kind ``inputs``."""
    inputs = kinds.pop("inputs", Kind())
    mu, rate = kinds.pop("mu_places", None), kinds.pop("rate_places", 3)
    count = len(sizes) - 1
    layers = tuple(
        DenseLayer(
            inputs=sizes[n],
            outputs=sizes[n + 1],
            activation=activation if n < count - 1 else "none",
            **{name: kind for name, kind in kinds.items() if name != "results" or n < count - 1},
        )
        for n in range(count)
    )
    return Training(layers=layers, rate_places=rate, mu_places=mu, tables=TABLES, inputs=inputs, seed=0x1234567)


CASES = {
    "continuous": training(),
    "continuous, momentum": training(mu_places=1, activation="clip"),
    "weights of 1 bit, master": training(weights=Kind(1), master=True),
    "weights of 2 bits by chance, master": training(weights=Kind(2, True), master=True, mu_places=0),
    "weights of 3 bits, codes alone": training(weights=Kind(3, True)),
    "inputs and results": training(inputs=Kind(2), results=Kind(3)),
    "gradients": training(gradients=Kind(2, True), errors=Kind(3, True)),
    "inputs and gradients": training(inputs=Kind(2), results=Kind(1), weights=Kind(3), errors=Kind(2), master=True),
    "weights and their gradients by chance": training(weights=Kind(2, True), gradients=Kind(3, True), master=True),
    "all": training(
        inputs=Kind(2), results=Kind(3, True), weights=Kind(2, True), gradients=Kind(3), errors=Kind(2), mu_places=2
    ),
    "one layer": training(sizes=(4, 9), weights=Kind(2), master=True),
    "three layers": training(sizes=(3, 6, 4, 2), results=Kind(2), activation="clip"),
}


def start(t: Training, form: WordFormat, seed: int = 0) -> list[LayerState]:
    """Random weights and biases."""
    rng = np.random.default_rng(seed)
    states = []
    for layer in t.layers:
        words = form.words(rng.normal(0, 0.5, (layer.outputs, layer.inputs)))
        codes = None
        if layer.weights.table:
            codes = Converter(table=t.tables[layer.weights.table][0], zone=2).word_codes(form, words)
        states.append(
            LayerState(words if layer.continuous else None, codes, form.words(rng.normal(0, 0.2, layer.outputs)))
        )
    return states


def samples(t: Training, form: WordFormat, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs (words or codes) and targets."""
    rng = np.random.default_rng(seed)
    size = (count, t.layers[0].inputs)
    if t.inputs.table:
        inputs = rng.integers(0, 1 << t.tables[t.inputs.table][0].bits, size)
    else:
        inputs = form.words(rng.uniform(-1, 1, size))
    return inputs, form.words(rng.integers(0, 2, (count, t.layers[-1].outputs)))
