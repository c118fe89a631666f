"""The dependency unit: what has to wait waits, nothing else does, and without it results are wrong."""

import numpy as np
import pytest

from bitloom.golden.discrete.machine import dependency
from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.dependency import hazard
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.units import needs

MACHINE = MachineParameters(slaves=2)
PREPARE = "IO LOAD_NEURONS d=0 rows=40\nNOP WAIT\n"
HAZARDS = {
    "read after write": ("IO LOAD_NEURONS d=10 rows=20", "MOVE COPY a=29 d=60 rows=1", "a=60 rows=1"),
    "write after write": ("IO LOAD_NEURONS d=10 rows=20", "MOVE COPY a=0 d=15 rows=1", "a=10 rows=20"),
    "write after read": ("IO STORE_NEURONS a=10 rows=20", "MOVE COPY a=0 d=15 rows=1", "a=10 rows=20"),
}
"""Two instructions for different units of which the second is shorter, and what is looked at."""


def played(hazard_name: str) -> tuple[list[int], list[int], Interpreter]:
    """(what it gives, what one instruction after the other gives, machine)."""
    first, second, shown = HAZARDS[hazard_name]
    end = f"NOP WAIT\nIO STORE_NEURONS {shown}\nNOP END"
    data = np.arange(1, 1 + 40 + 20 * ("LOAD" in first))
    results = []
    for between in ("", "NOP WAIT\n"):
        machine = Interpreter(MACHINE, assemble(f"{PREPARE}{first}\n{between}{second}\n{end}"))
        results.append(np.concatenate(machine.run(data)).tolist())
        if not between:
            played_machine = machine
    return *results, played_machine


@pytest.mark.parametrize("name", HAZARDS)
def test_a_hazard_waits(name):
    got, expected, machine = played(name)
    assert got == expected
    first, second = machine.work[2:4]
    assert second.begin >= first.end
    assert hazard(needs(first.instruction, MACHINE), needs(second.instruction, MACHINE)) == name


@pytest.mark.parametrize("name", HAZARDS)
def test_without_the_dependency_unit_results_are_wrong(name, monkeypatch):
    monkeypatch.setattr(dependency, "hazard", lambda earlier, later: None)
    got, expected, _ = played(name)
    assert got != expected


def test_what_has_nothing_in_common_overlaps():
    text = PREPARE + "IO LOAD_NEURONS d=10 rows=20\nMOVE COPY a=0 d=60 rows=10\nMOVE COPY a=30 d=70 rows=1\nNOP END"
    machine = Interpreter(MACHINE, assemble(text))
    machine.run(range(60))
    load, copy, copy_after = machine.work[2:5]
    assert (copy.begin, copy.end) == (load.begin + 1, load.begin + 11)
    assert copy_after.begin == copy.end < load.end  # the same unit
