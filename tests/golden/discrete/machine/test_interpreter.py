"""The machine against plain numpy: all numbers of slaves give the same bits."""

import numpy as np
import pytest

from bitloom.golden.discrete.machine.instruction import decode, encode
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.words import first_words, read_weights, sample_words
from bitloom.golden.discrete.word import WordFormat

from .cases import CASES, samples, start
from .reference import Reference

FORM = WordFormat(18, 12)


def trained(case: str, slaves: int, form: WordFormat, count: int):
    t = CASES[case]
    machine = MachineParameters(slaves=slaves, form=form)
    program = ProgramWriter(machine, t).program(count)
    interpreter = Interpreter(machine, decode(encode(program)))
    data = np.concatenate([first_words(t, form, start(t, form)), sample_words(t, form, *samples(t, form, count))])
    (results,) = interpreter.run(data)
    return read_weights(t, form, results)


WIDE, NARROW = WordFormat(32, 20), WordFormat(12, 7)


@pytest.mark.parametrize(("case", "form"), [*((c, FORM) for c in CASES), ("all", WIDE), ("continuous", NARROW)])
def test_equals_numpy_for_any_number_of_slaves(case, form):
    t, count = CASES[case], 6
    states = start(t, form)
    reference = Reference(t, form, states)
    for x, target in zip(*samples(t, form, count)):
        reference.step(x, target)
    before = start(t, form)
    for slaves in (1, 2, 4, 8):
        for layer, made, expected, first in zip(t.layers, trained(case, slaves, form, count), states, before):
            np.testing.assert_array_equal(made.biases, expected.biases)
            assert np.any(made.biases != first.biases)
            if layer.continuous:
                np.testing.assert_array_equal(made.weights, expected.weights)
                assert np.any(made.weights != first.weights)
            if layer.weights.table:
                np.testing.assert_array_equal(made.codes, expected.codes)
