"""The machine against golden.discrete.fixed, the training in words: the same bits for all numbers of slaves."""

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
from bitloom.golden.discrete.machine.words import first_words, read_weights, sample_words
from bitloom.golden.discrete.word import WordFormat

from .cases import CASES, samples, start

FORM, COUNT = WordFormat(18, 12), 9


def trainer(t: Training) -> FixedTrainer:
    """The training that a program describes."""

    def converter(kind: Kind) -> Converter | None:
        if not kind.table:
            return None
        table, zone = t.tables[kind.table]
        return Converter(table=table, zone=zone, rounding="stochastic" if kind.chance else "nearest")

    activations = {"clip": "hard_tanh"}
    specs = [
        DenseSpec(
            outputs=layer.outputs,
            activation=activations.get(layer.activation, layer.activation),
            norm=False,
            tensors=Tensors(
                inputs=converter(t.layers[n - 1].results if n else t.inputs),
                weights=converter(layer.weights),
                gradients=converter(layer.errors),
                weight_gradients=converter(layer.gradients),
                master=layer.master,
            ),
        )
        for n, layer in enumerate(t.layers)
    ]
    rule = FixedRule(rate_places=t.rate_places, mu_places=t.mu_places)
    zeros = [np.zeros((layer.outputs, layer.inputs)) for layer in t.layers]
    made = FixedTrainer(FORM, specs, zeros, rule, Lfsr(1))
    for layer, state in zip(made.layers, start(t, FORM)):
        layer.words, layer.codes, layer.bias = state.weights, state.codes, state.biases
    made.generator.state = t.seed
    return made


@pytest.mark.parametrize("case", CASES)
def test_the_machine_equals_training_in_words(case):
    t, words = CASES[case], trainer(CASES[case])
    inputs, targets = samples(t, FORM, COUNT)
    values = FORM.words(t.tables[t.inputs.table][0].real)[inputs] if t.inputs.table else inputs
    for x, target in zip(values, targets):
        words.learn(x, target)
    data = np.concatenate([first_words(t, FORM, start(t, FORM)), sample_words(t, FORM, inputs, targets)])
    for slaves in (1, 2, 4, 8):
        machine = MachineParameters(slaves=slaves, form=FORM)
        (results,) = Interpreter(machine, ProgramWriter(machine, t).program(COUNT)).run(data)
        for layer, made in zip(words.layers, read_weights(t, FORM, results)):
            np.testing.assert_array_equal(made.biases, layer.bias)
            for ours, theirs in ((layer.words, made.weights), (layer.codes, made.codes)):
                assert (ours is None) == (theirs is None)
                if ours is not None:
                    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_samples_in_turn_or_one_after_another(count):
    """Caches without room for the next sample's inputs or instructions give the same results, later."""
    t = CASES["gradients"]
    found, cycles, lengths = [], [], []
    for sizes in ({}, {"instructions": 48}, {"neuron_words": 66}):
        machine = MachineParameters(slaves=2, **sizes)
        form, program = machine.form, ProgramWriter(machine, t).program(count)
        data = [first_words(t, form, start(t, form)), sample_words(t, form, *samples(t, form, count))]
        interpreter = Interpreter(machine, program)
        found.append([words.tolist() for words in interpreter.run(np.concatenate(data))])
        cycles.append(interpreter.cycles)
        lengths.append(len(program))
    assert found[0] == found[1] == found[2]
    assert lengths[0] > lengths[1] == lengths[2]
    assert cycles[1] == cycles[2]
    assert count == 1 or cycles[0] < cycles[1]
