"""The machine against plain numpy: all numbers of slaves give the same bits."""

import numpy as np
import pytest

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.faults import MachineFault
from bitloom.golden.discrete.machine.instruction import decode, encode
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.words import first_words, read_weights, sample_words
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error

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


LONG = """
IO LOAD_NEURONS d=0 rows=2
IO STORE_NEURONS a=0 rows=2
IO LOAD_PROGRAM d=3 rows=2
NOP END
NOP END
MOVE COPY a=0 d=1 rows=1
IO STORE_NEURONS a=0 rows=2 last=1
NOP END
"""
"""The program loads instructions in place of its instructions 3 and 4, of which the first is the next one."""


def test_a_program_that_loads_instructions():
    program = assemble(LONG)
    words = encode(assemble("COMPUTE ADD a=0 b=1 d=0 rows=1\nIO STORE_NEURONS a=0 rows=1")).tolist()
    interpreter = Interpreter(MachineParameters(slaves=2, instructions=8), program)
    results = [[5, 7, 12, 12, 12]]
    assert [given.tolist() for given in interpreter.run([5, 7, *words])] == results
    again = encode(assemble("NOP WAIT\nNOP END")).tolist()
    assert [given.tolist() for given in interpreter.run([5, 7, *again])] == [[5, 7]]
    short = [5, 7, *words[:-1]]
    message = "instruction 2: NO_DATA: IO takes no more words than the packet has, got 7 words for"
    with value_error(f"{message} IO LOAD_PROGRAM d=3 rows=2"):
        interpreter.run(short)


def test_loaded_instructions_lie_behind_the_program():
    """What is between them was never written."""
    machine = MachineParameters(slaves=2, instructions=8)
    text = "IO LOAD_PROGRAM d=7 rows=1\nJUMP LOOP d={} rows=0\nNOP END"
    Interpreter(machine, assemble(text.format(7))).run(encode(assemble("NOP END")))
    with pytest.raises(MachineFault, match=r"^instruction 6: BAD_INSTRUCTION: "):
        Interpreter(machine, assemble(text.format(6))).run(encode(assemble("NOP END")))
