"""The program that the source gives for one layer: loaded, computed, stored (C25)."""

import pytest

from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters

from .layer_program import KINDS, layer_program


@pytest.mark.parametrize("slaves", [1, 2, 4, 8])
@pytest.mark.parametrize("name", KINDS)
def test_the_program_of_a_layer_equals_plain_integers(name, slaves):
    machine = MachineParameters(slaves=slaves)
    case = layer_program(name, machine.form, seed=slaves)
    got = Interpreter(machine, case.program).run(case.data)
    assert [words.tolist() for words in got] == case.expected
