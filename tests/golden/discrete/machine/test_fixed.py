"""The machine and training in words are one thing: the same bits for 1, 2, 4 and 8 slaves."""

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dense import DenseSpec, Tensors
from bitloom.golden.discrete.fixed import FixedRule, FixedTrainer
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import Kind, Training
from bitloom.golden.discrete.machine.words import LayerState, first_words, read_weights, sample_words
from bitloom.golden.discrete.word import WordFormat

from .cases import CASES, samples

FORM = WordFormat(18, 12)


def converter(t: Training, kind: Kind) -> Converter | None:
    """Of a tensor of that kind."""
    if not kind.table:
        return None
    table, zone = t.tables[kind.table]
    return Converter(table=table, zone=zone, rounding="stochastic" if kind.chance else "nearest")


def trainer(t: Training) -> FixedTrainer:
    """The same perceptron in words, with random weights."""
    rng, specs, inputs = np.random.default_rng(7), [], t.inputs
    names = {"clip": "hard_tanh"}
    for layer in t.layers:
        tensors = Tensors(
            inputs=converter(t, inputs),
            weights=converter(t, layer.weights),
            gradients=converter(t, layer.errors),
            weight_gradients=converter(t, layer.gradients),
            master=layer.master,
        )
        activation = names.get(layer.activation, layer.activation)
        specs.append(DenseSpec(outputs=layer.outputs, activation=activation, norm=False, tensors=tensors))
        inputs = layer.results
    weights = [rng.normal(0, 0.5, (layer.outputs, layer.inputs)) for layer in t.layers]
    return FixedTrainer(FORM, specs, weights, FixedRule(rate_places=t.rate_places, mu_places=t.mu_places), Lfsr(99))


@pytest.mark.parametrize("case", [name for name, t in CASES.items() if not t.inputs.table])
def test_equals_training_in_words(case):
    t, count = CASES[case], 5
    fixed = trainer(t)
    start = [LayerState(layer.words, layer.codes, layer.bias) for layer in fixed.layers]
    inputs, targets = samples(t, FORM, count)
    fixed.generator = Lfsr(t.seed)
    for x, target in zip(inputs, targets):
        fixed.learn(x, target)
    for slaves in (1, 2, 4, 8):
        machine = MachineParameters(slaves=slaves, form=FORM)
        data = np.concatenate([first_words(t, FORM, start), sample_words(t, FORM, inputs, targets)])
        (words,) = Interpreter(machine, ProgramWriter(machine, t).program(count)).run(data)
        for made, layer in zip(read_weights(t, FORM, words), fixed.layers):
            np.testing.assert_array_equal(made.biases, layer.bias)
            for got, expected in ((made.weights, layer.words), (made.codes, layer.codes)):
                assert (got is None) == (expected is None)
                if got is not None:
                    np.testing.assert_array_equal(got, expected)
