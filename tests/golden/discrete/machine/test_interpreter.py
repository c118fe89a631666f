"""Programs that load instructions."""

import pytest

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.faults import MachineFault
from bitloom.golden.discrete.machine.instruction import encode
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from tests.errors import value_error

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
    """The words between them were never written."""
    machine = MachineParameters(slaves=2, instructions=8)
    text = "IO LOAD_PROGRAM d=7 rows=1\nJUMP LOOP d={} rows=0\nNOP END"
    Interpreter(machine, assemble(text.format(7))).run(encode(assemble("NOP END")))
    with pytest.raises(MachineFault, match=r"^instruction 6: BAD_INSTRUCTION: "):
        Interpreter(machine, assemble(text.format(6))).run(encode(assemble("NOP END")))
