"""The rules that an instruction must keep before it may begin; the controller of the hardware has the same."""

from collections.abc import Collection

from .faults import BAD_ADDRESS, BAD_CONSTANT, BAD_INSTRUCTION, BAD_TABLE, NO_UNIT, FaultRule
from .instruction import (
    ACCUMULATE,
    BACKWARD,
    COMPUTE,
    CONFIG,
    CONVERT,
    COUNTERS,
    DIVIDE,
    FORWARD,
    FUNCTIONS,
    INVERSE_ROOT,
    IO,
    JUMP,
    LOAD_PROGRAM,
    MOVE,
    MULTIPLY,
    ON_SLAVES,
    RATE,
    SCATTER,
    SEED,
    TABLE,
    UPDATE,
    Instruction,
)
from .parameters import MachineParameters
from .training import MOST_PLACES
from .units import needs

FACTORS = {FORWARD: ("kind_a", "kind_w"), BACKWARD: ("kind_b", "kind_w")}
"""Kinds of the two factors of a function's products."""
FACTORS |= {function: ("kind_a", "kind_b") for function in (UPDATE, ACCUMULATE, MULTIPLY)}


def broken_rule(instruction: Instruction, machine: MachineParameters, tables: Collection[int]) -> FaultRule | None:
    """The first rule that an instruction breaks, None if it may begin.

    Parameters
    ----------
    instruction : Instruction
    machine : MachineParameters
    tables : collection of int
        Numbers of the tables that are loaded.
    """
    i = instruction
    if i.unused or i.function not in FUNCTIONS.get(i.operation, {}).values():
        return BAD_INSTRUCTION
    if i.operation == CONFIG:
        return _constants(i, machine)
    if i.operation == JUMP:
        return None if i.a < COUNTERS and i.d < machine.instructions else BAD_ADDRESS
    if i.key == (IO, LOAD_PROGRAM):
        return None if i.rows and i.d + i.rows <= machine.instructions else BAD_ADDRESS
    if i.operation == COMPUTE:
        if not all(kind == 0 or kind in tables for kind in (i.kind_a, i.kind_b, i.kind_w, i.kind_d)):
            return BAD_TABLE
        if i.function == CONVERT and i.kind_d == 0:
            return BAD_TABLE
        if not _has_units(i, machine):
            return NO_UNIT
    return None if _addresses(i, machine) else BAD_ADDRESS


def _has_units(i: Instruction, machine: MachineParameters) -> bool:
    """Whether the machine has the units that a COMPUTE needs."""
    factors = FACTORS.get(i.function, ())
    coded = sum(getattr(i, name) != 0 for name in factors)
    by_table = machine.products == "table" and i.function in ON_SLAVES
    least = len(factors) if by_table else min(len(factors), int(not machine.multiplier))
    divider = {"none": False, "codes": i.kind_b != 0, "words": True}[machine.divider]
    pair = i.pair_d or i.pair_w
    lacks = {
        DIVIDE: not divider,
        INVERSE_ROOT: machine.root == "none",
    }
    return coded >= least and not lacks.get(i.function, False) and (machine.converter == "multiplying" or not pair)


def _constants(i: Instruction, machine: MachineParameters) -> FaultRule | None:
    """The rule that a CONFIG breaks; what is in a table is looked at when it is loaded."""
    if i.function == TABLE:
        return None if 1 <= i.kind_a <= machine.tables else BAD_TABLE
    if i.function == RATE:
        return None if i.a <= MOST_PLACES and i.b <= MOST_PLACES else BAD_CONSTANT
    assert i.function == SEED
    return None if i.a or i.b else BAD_CONSTANT


def _addresses(i: Instruction, machine: MachineParameters) -> bool:
    """Whether all that an instruction reads and writes is there, and results spare the operands still to be read.

    An element may be written where it was read; else the operands and the results have no word in common.
    """
    need = needs(i, machine)
    result = need.writes
    spans = [*need.reads, *([] if result is None else [result])]
    if any(span.length == 0 or span.first + span.length > machine.neuron_words for span in spans):
        return False
    by_element = not (i.operation == COMPUTE and i.function == FORWARD)
    for read in need.reads:
        if result is not None and result.overlaps(read) and not (by_element and result.first == read.first):
            return False
    block = need.weights
    if block is not None and (block.length == 0 or block.first + block.length > machine.weight_words):
        return False
    in_slaves = block is not None or (i.operation == MOVE and i.function == SCATTER)
    return not in_slaves or machine.columns_each(i.columns) <= machine.column_words
