"""Trainings for the tests of the machine: all, some or no tensors discrete; asymmetric on purpose."""

from dataclasses import replace

import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.fixed import first_state
from bitloom.golden.discrete.machine.training import DenseLayer, SourceRule, TensorKind, Training, VelocityRule, Windows
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
SCALED = {
    4: (CodeTable((-1 / 4, -1 / 32, 1 / 32, 1 / 4)), 1),
    5: (CodeTable((1, -1)), 1),
}
"""Other values of the codes of tables 2 and 1."""


def training(*, sizes=(5, 7, 3), activation="relu", last="none", rule=None, inputs=None, **fields) -> Training:
    """A perceptron whose layers have all the same ``fields``, but for the last layer, whose results are words."""
    count = len(sizes) - 1
    layers = []
    for n in range(count):
        hidden = n < count - 1
        kept = {name: value for name, value in fields.items() if hidden or name not in ("results", "centred", "slopes")}
        layers.append(
            DenseLayer(inputs=sizes[n], outputs=sizes[n + 1], activation=activation if hidden else last, **kept)
        )
    tables = {**TABLES, **SCALED} if "forward_table" in fields else TABLES
    rule = rule or SourceRule(rate_places=3)
    return Training(layers=tuple(layers), rule=rule, tables=tables, inputs=inputs or TensorKind(), seed=0x1234567)


def momentum(places: int) -> SourceRule:
    return SourceRule(rate_places=3, mu_places=places)


CASES = {
    "continuous": training(),
    "continuous, momentum": training(rule=momentum(1), activation="clip"),
    "weights of 1 bit, master": training(weights=TensorKind(1), master=True),
    "weights of 2 bits by chance, master": training(weights=TensorKind(2, True), master=True, rule=momentum(0)),
    "weights of 3 bits, codes alone": training(weights=TensorKind(3, True)),
    "inputs and results": training(inputs=TensorKind(2), results=TensorKind(3)),
    "gradients": training(weight_gradients=TensorKind(2, True), errors=TensorKind(3, True)),
    "inputs and gradients": training(
        inputs=TensorKind(2), results=TensorKind(1), weights=TensorKind(3), errors=TensorKind(2), master=True
    ),
    "weights and their gradients by chance": training(
        weights=TensorKind(2, True), weight_gradients=TensorKind(3, True), master=True
    ),
    "all": training(
        inputs=TensorKind(2),
        results=TensorKind(3, True),
        weights=TensorKind(2, True),
        weight_gradients=TensorKind(3),
        errors=TensorKind(2),
        rule=momentum(2),
    ),
    "one layer": training(sizes=(4, 9), weights=TensorKind(2), master=True),
    "three layers": training(sizes=(3, 6, 4, 2), results=TensorKind(2), activation="clip"),
    "slopes": training(sizes=(3, 6, 4, 2), slopes=TensorKind(2), activation="clip", centred=True),
    "slopes by chance": training(
        sizes=(3, 6, 4, 2), slopes=TensorKind(3, True), results=TensorKind(2, True), errors=TensorKind(2, True)
    ),
}


def batch(size: int, decay: int | None = None) -> VelocityRule:
    return VelocityRule(rate_places=2, bias_places=3, decay_places=decay, batch=size)


BATCH_CASES = {
    "batch, continuous": training(rule=batch(3), last="clip", centred=True),
    "batch, master": training(
        rule=batch(2), weights=TensorKind(2), master=True, forward_table=4, centred=True, last="clip"
    ),
    "batch, codes alone": training(
        rule=batch(1, 2), weights=TensorKind(1), forward_table=5, backward_table=5, centred=True, last="clip"
    ),
    "batch, by chance": training(
        rule=batch(4, 1),
        weights=TensorKind(3, True),
        weight_gradients=TensorKind(2, True),
        master=True,
        sizes=(4, 6, 5, 3),
    ),
    "batch, all": training(
        rule=batch(6),
        sizes=(4, 6, 5, 3),
        inputs=TensorKind(2),
        results=TensorKind(3, True),
        weights=TensorKind(2),
        master=True,
        forward_table=4,
        weight_gradients=TensorKind(3, True),
        errors=TensorKind(2, True),
        slopes=TensorKind(3),
        activation="clip",
        last="clip",
        centred=True,
    ),
}
"""By the rule of velocities; 12 samples are whole batches of each."""
NORMAL_CASES = {
    "normalised": training(rule=batch(4), last="clip", normalised=True),
    "normalised, no activation": training(rule=batch(2), activation="none", normalised=True, weights=TensorKind(2)),
    "normalised, all": replace(BATCH_CASES["batch, all"], rule=batch(4, 1)),
}
NORMAL_CASES["normalised, all"] = replace(
    NORMAL_CASES["normalised, all"],
    layers=tuple(
        replace(layer, normalised=n != 1, weights=TensorKind(2, True))
        for n, layer in enumerate(NORMAL_CASES["normalised, all"].layers)
    ),
)
"""Over batches of 2 and 4 samples; of three layers all but the second one, which is centred, too."""
WINDOWS = Windows(height=4, width=5, channels=2, size=2)
"""12 windows of 8 elements each."""
MORE_WINDOWS = Windows(height=3, width=4, channels=3, size=2, stride=2)
"""2 windows of 12 elements each, of the results of three neurons that see `WINDOWS`."""


def windowed(rule: VelocityRule, **fields) -> Training:
    """Two convolutions and a layer behind them; the first one has all the ``fields``, but is alone centred."""
    last = DenseLayer(inputs=8, outputs=3, activation="clip")
    between = DenseLayer(inputs=12, outputs=4, windows=MORE_WINDOWS, weights=TensorKind(2), master=True)
    first = DenseLayer(inputs=8, outputs=3, windows=WINDOWS, centred=True, **fields)
    return Training(layers=(first, between, last), rule=rule, tables=TABLES, seed=0x1234567)


WINDOW_CASES = {
    "windows": windowed(batch(3)),
    "windows, all": windowed(
        batch(2, 1),
        weights=TensorKind(2, True),
        weight_gradients=TensorKind(3, True),
        results=TensorKind(2, True),
        errors=TensorKind(2, True),
        slopes=TensorKind(3, True),
        activation="clip",
    ),
}
"""Convolutions, whose windows the program copies out of images."""
PAIR_CASES = {
    "pairs of weights": training(
        weights=TensorKind(3, True, "nearest"),
        weight_gradients=TensorKind(2, True),
        errors=TensorKind(2, True, "nearest"),
        master=True,
    ),
    "pairs, all": training(
        inputs=TensorKind(2),
        results=TensorKind(3, True, "nearest"),
        weights=TensorKind(3, True),
        weight_gradients=TensorKind(2, True, "nearest"),
        errors=TensorKind(2, True, "nearest"),
    ),
}
"""Conversions between the two nearest codes, for machines whose converters have a multiplier."""


def start(t: Training, form: WordFormat, seed: int = 0) -> list[LayerState]:
    """Random states, all that is kept."""
    rng = np.random.default_rng(seed)
    states = []
    for layer in t.layers:
        state = first_state(form, t, layer, rng.normal(0, 0.5, (layer.outputs, layer.inputs))).whole(form, t, layer)
        state.biases = form.words(rng.normal(0, 0.2, layer.outputs))
        if layer.centred:
            state.means = form.words(rng.normal(0, 0.2, layer.outputs))
        if layer.normalised:
            state.gains = form.words(rng.uniform(0.5, 1.5, layer.outputs))
            state.sum_means = form.words(rng.normal(0, 0.2, layer.outputs))
            state.sum_variances = form.words(rng.uniform(0.1, 2, layer.outputs))
        states.append(state)
    return states


def samples(t: Training, form: WordFormat, count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs (words or codes) and targets."""
    rng = np.random.default_rng(seed)
    size = (count, t.layers[0].vector_inputs)
    if t.inputs.table:
        inputs = rng.integers(0, 1 << t.tables[t.inputs.table][0].bits, size)
    else:
        inputs = form.words(rng.uniform(-1, 1, size))
    return inputs, form.words(rng.integers(0, 2, (count, t.layers[-1].vector_outputs)))
