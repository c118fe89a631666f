"""The needs of an instruction: which units, which words of the master's neuron cache, and for how long."""

from dataclasses import dataclass
from functools import lru_cache

from .draws import by_chance
from .instruction import (
    APPLY,
    BACKWARD,
    COMPUTE,
    CONFIG,
    CONVERT,
    FORWARD,
    IO,
    JUMP,
    LOAD_NEURONS,
    LOAD_PROGRAM,
    MOVE,
    NOP,
    ON_SLAVES,
    SCATTER,
    STORE_NEURONS,
    TABLE,
    TWO_OPERANDS,
    WORDS,
    Instruction,
)
from .parameters import MachineParameters

IO_UNIT = "io"
ARRAY_UNIT = "array"
VECTOR_UNIT = "vector"
UNITS = (IO_UNIT, ARRAY_UNIT, VECTOR_UNIT)
"""The data access unit; the slaves with the tree; the master's own arithmetic, element by element."""


@dataclass(frozen=True)
class CacheSpan:
    """Words ``first`` to ``first + length - 1`` of a cache."""

    first: int
    length: int

    def overlaps(self, other: "CacheSpan") -> bool:
        """Whether both have a word in common."""
        return self.first < other.first + other.length and other.first < self.first + self.length


@dataclass(frozen=True)
class InstructionNeeds:
    """Units that an instruction occupies, memory that it reads and writes, and its cycles."""

    units: tuple[str, ...] = ()
    """Units that it occupies, of `UNITS`; none: the controller itself does it."""
    reads: tuple[CacheSpan, ...] = ()
    """Words of the master's neuron cache that it reads."""
    writes: CacheSpan | None = None
    """Words of that cache that it writes; None: none."""
    weights: CacheSpan | None = None
    """Rows of the slaves' caches."""
    draws: bool = False
    """Whether it takes numbers from the generator."""
    cycles: int = 1
    """Cycles at least: one for each word that the unit takes."""


@lru_cache(1 << 12)
def needs(instruction: Instruction, machine: MachineParameters) -> InstructionNeeds:
    """Units, memory and cycles of ``instruction``, which must be one that exists."""
    i = instruction
    operation = instruction.operation
    if operation == CONFIG:
        return InstructionNeeds(cycles=1 << i.kind_b if i.function == TABLE else 1)
    if operation in (NOP, JUMP):
        return InstructionNeeds()
    if i.key == (IO, LOAD_PROGRAM):
        return InstructionNeeds(cycles=WORDS * i.rows)
    columns = machine.columns_each(i.columns)
    block = CacheSpan(i.w, i.rows * columns)
    if operation == MOVE and i.function == SCATTER:
        return InstructionNeeds((ARRAY_UNIT,), (CacheSpan(i.a, i.columns),), cycles=i.columns)
    if operation == IO and i.function not in (LOAD_NEURONS, STORE_NEURONS):
        return InstructionNeeds((IO_UNIT, ARRAY_UNIT), weights=block, cycles=i.rows * i.columns)
    if operation == COMPUTE and i.function in ON_SLAVES:
        return _of_slaves(i, machine, block)
    a = CacheSpan(i.a, i.rows)
    d = CacheSpan(i.d, i.rows)
    if operation == IO:
        load = i.function == LOAD_NEURONS
        return InstructionNeeds((IO_UNIT,), () if load else (a,), d if load else None, cycles=i.rows)
    two = operation == COMPUTE and i.function in TWO_OPERANDS
    reads = (a, CacheSpan(i.b, i.rows)) if two else (a,)
    draws = operation == COMPUTE and i.function == CONVERT and bool(i.chance_d)
    return InstructionNeeds((VECTOR_UNIT,), reads, d, draws=draws, cycles=i.rows)


def _of_slaves(i: Instruction, machine: MachineParameters, block: CacheSpan) -> InstructionNeeds:
    """Units, memory and cycles of COMPUTE on the slaves."""
    if i.function == FORWARD:
        # A pass gives a result of each slave, one a cycle, while the next pass runs.
        cycles = max(i.rows, machine.slaves) * machine.columns_each(i.columns)
        return InstructionNeeds(
            (ARRAY_UNIT,), (CacheSpan(i.a, i.rows),), CacheSpan(i.d, i.columns), block, cycles=cycles
        )
    if i.function == BACKWARD:
        return InstructionNeeds((ARRAY_UNIT,), (), CacheSpan(i.d, i.rows), block, cycles=block.length)
    reads = () if i.function == APPLY else (CacheSpan(i.a, i.rows),)
    return InstructionNeeds((ARRAY_UNIT,), reads, None, block, any(by_chance(i)), block.length)
