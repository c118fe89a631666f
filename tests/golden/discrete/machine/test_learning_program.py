"""UPDATE, ACCUMULATE and APPLY of the interpreter against plain integers, for any number of slaves."""

import pytest

from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import WordFormat

from .learning_program import learning_program


@pytest.mark.sample(20)
@pytest.mark.parametrize("form", [WordFormat(18, 12), WordFormat(12, 7)], ids=["18 bits", "12 bits"])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("converter", ["shifting", "multiplying"])
def test_learning_equals_plain_integers(form, seed, converter):
    case = learning_program(form, seed, pairs=converter == "multiplying")
    for slaves in (1, 2, 4, 8):
        machine = MachineParameters(slaves=slaves, form=form, converter=converter)
        (words,) = Interpreter(machine, case.program).run(case.data)
        assert words.tolist() == case.expected
