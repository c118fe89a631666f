"""The machine as an interpreter: controller, dependency unit and data access unit around the master (C21 to C26).

Time is counted in cycles, one for each word that a unit takes: the least that any hardware needs. An instruction takes
effect when it is finished. So instructions that overlap in time take effect in the order in which they finish, as in
hardware, and only the dependency unit keeps results equal to those of one instruction after the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.encoding import Array

from . import instruction as isa
from .dependency import DependencyUnit, Issued
from .faults import BAD_ADDRESS, DATA_LEFT, NO_DATA, FaultRule, MachineFault
from .instruction import Instruction, decode
from .master import Master
from .parameters import MachineParameters
from .rules import broken_rule
from .table_words import table_of
from .units import needs


@dataclass(frozen=True)
class Work:
    """When a unit worked on an instruction."""

    place: int
    """Address of the instruction."""
    instruction: Instruction
    units: tuple[str, ...]
    """Units that it occupied; none: the controller did it."""
    ready: int
    """Cycle from which the controller could issue it, but for what is still at work."""
    begin: int
    end: int
    """begin, end: first cycle, and the cycle after the last."""


class Interpreter:
    """A machine with its caches and a loaded program.

    Parameters
    ----------
    machine : MachineParameters
    program : sequence of Instruction
        Fills the instruction cache from address 0 on; ValueError if it is too long.

    Attributes
    ----------
    master : Master
        Caches and configuration, to be looked at.
    work : list of Work
        Work of the last run, in order of issue.
    cycles : int
        How long the last run took.
    """

    def __init__(self, machine: MachineParameters, program: Sequence[Instruction]) -> None:
        self.machine = machine
        self.master = Master(machine)
        self.program: list[Instruction] = []
        self.work: list[Work] = []
        self.cycles = 0
        self.load(program)

    def load(self, program: Sequence[Instruction]) -> None:
        """Put another program into the instruction cache, from address 0 on; ValueError if it is too long."""
        most = self.machine.instructions
        if len(program) > most:
            raise ValueError(f"machine: a program must have at most {most} instructions, got {len(program)}")
        self.program = list(program)

    def run(self, data: Array | Iterable[int] = ()) -> list[Array]:
        """Run the program from its first instruction to END.

        Parameters
        ----------
        data : (n,) integers
            32-bit words that IO takes, all of them.

        Returns
        -------
        list of (...) uint32
            Words that IO gave, cut after each word that was marked as last.

        Raises
        ------
        MachineFault
            A rule was broken.
        """
        run = _ProgramRun(self, np.asarray(data, np.int64))
        self.work = run.work
        try:
            return run.to_end()
        finally:
            self.cycles = run.now


class _ProgramRun:
    """One run of a program."""

    def __init__(self, owner: Interpreter, data: Array) -> None:
        self.machine = owner.machine
        self.program = owner.program
        self.master = owner.master
        self.data = data
        self.taken = 0
        self.given: list[int] = []
        self.transfers: list[Array] = []
        self.work: list[Work] = []
        self.counters = [0] * isa.COUNTERS
        self.dependency = DependencyUnit()
        self.now = 0

    def to_end(self) -> list[Array]:
        """Issue instructions until END."""
        place = 0
        while True:
            i = self.program[place] if place < len(self.program) else Instruction(operation=0)
            fault = broken_rule(i, self.machine, self.master.configuration.tables)
            if place >= self.machine.instructions:
                fault = BAD_ADDRESS
            if fault:
                raise MachineFault(fault, place, str(i))
            need = needs(i, self.machine)
            ready = self.now
            while (issued := self.dependency.conflict(i, need)) is not None:
                self._finish(issued)
            self.work.append(Work(place, i, need.units, ready, self.now, self.now + need.cycles))
            if need.units:
                self.dependency.add(Issued(place, i, need, self.now + need.cycles))
                self.now += 1  # the controller issues an instruction a cycle at most
                place += 1
                continue
            self.now += need.cycles
            if i.key == (isa.NOP, isa.END):
                self._end(place)
                return self.transfers
            place = self._controller(place, i)

    def _finish(self, awaited: Issued) -> None:
        """Let time pass until ``awaited`` is finished; instructions that end earlier take effect earlier."""
        while awaited in self.dependency.unfinished:
            first = min(self.dependency.unfinished, key=lambda issued: issued.end)
            self.dependency.unfinished.remove(first)
            self.now = max(self.now, first.end)
            self._effect(first.place, first.instruction)

    def _effect(self, place: int, i: Instruction) -> None:
        """Carry out an instruction of a unit."""
        if i.operation == isa.MOVE:
            self.master.move(i)
        elif i.operation == isa.COMPUTE:
            self.master.compute(i)
        elif i.function < isa.STORE_NEURONS:
            self._load(place, i)
        else:
            self._store(i)

    def _controller(self, place: int, i: Instruction) -> int:
        """Carry out an instruction of the controller; returns the address of the next instruction."""
        if i.operation == isa.JUMP:
            runs = self.counters[i.a] + 1
            again = i.rows == isa.ALWAYS or runs < i.rows
            self.counters[i.a] = runs if again and i.rows else 0
            return i.d if again else place + 1
        if i.operation == isa.CONFIG:
            self._configure(place, i)
        elif i.operation == isa.IO:
            self._load_program(place, i)
        return place + 1

    def _configure(self, place: int, i: Instruction) -> None:
        """CONFIG: nothing else is at work."""
        configuration = self.master.configuration
        if i.function == isa.RATE:
            configuration.rate_places = i.a
            configuration.mu_places = i.b if i.kind_b else None
        elif i.function == isa.SEED:
            self.master.generator = Lfsr(i.a | i.b << 16)
        else:
            table = table_of(i, self.machine.form, self.machine.code_bits)
            if isinstance(table, FaultRule):
                raise MachineFault(table, place, str(i))
            assert isinstance(table, CodeTable)
            configuration.tables[i.kind_a] = Converter(table=table, zone=i.kind_w)

    def _end(self, place: int) -> None:
        """END: all words were taken; those given after the last transfer are one of their own."""
        if self.taken < len(self.data):
            raise MachineFault(DATA_LEFT, place, f"{len(self.data) - self.taken} words left")
        if self.given:
            self.transfers.append(np.array(self.given, np.uint32))

    def _take(self, place: int, i: Instruction, count: int) -> Array:
        """The next words from outside."""
        words = self.data[self.taken : self.taken + count]
        if len(words) < count:
            raise MachineFault(NO_DATA, place, f"{len(words)} words for {i}")
        self.taken += count
        return words

    def _load_program(self, place: int, i: Instruction) -> None:
        """IO of instructions from outside; nothing else is at work. They stay there for later runs."""
        instructions = decode(self._take(place, i, isa.WORDS * i.rows) & 0xFFFFFFFF)
        missing = max(i.d - len(self.program), 0)
        self.program += [Instruction(operation=0)] * missing
        self.program[i.d : i.d + i.rows] = instructions

    def _load(self, place: int, i: Instruction) -> None:
        """IO from outside. Weights come input by input, each input's from column 0 on."""
        words = self._take(place, i, i.rows if i.function == isa.LOAD_NEURONS else i.rows * i.columns)
        form = self.machine.form
        if i.function == isa.LOAD_CODES:
            cells = words & ((1 << self.machine.code_bits) - 1)
        else:
            cells = form.unpack(words & (2 * form.largest + 1))  # minus zero becomes zero
        if i.function == isa.LOAD_NEURONS:
            self.master.neurons[i.d : i.d + i.rows] = form.pack(cells)
            return
        self._block(i, i.function - isa.LOAD_NEURONS)[:] = cells.reshape(i.rows, i.columns)

    def _store(self, i: Instruction) -> None:
        """IO to outside, in the same order."""
        form = self.machine.form
        if i.function == isa.STORE_NEURONS:
            words = self.master.neurons[i.a : i.a + i.rows]
        else:
            cells = self._block(i, i.function - isa.STORE_NEURONS)
            words = (cells if i.function == isa.STORE_CODES else form.pack(cells)).reshape(-1)
        self.given += words.tolist()
        if i.last:
            self.transfers.append(np.array(self.given, np.uint32))
            self.given = []

    def _block(self, i: Instruction, number: int) -> Array:
        """The part of the slaves' caches that an instruction loads or stores, a view, (rows, columns); by ``number``: 1
        weights, 2 codes, 3 gradients."""
        array = self.master.array
        return array.block({1: array.weights, 2: array.codes, 3: array.gradients}[number], i)
