"""The controller alone, with units that take as long as they like: what it issues never meets what is unfinished."""

import random

import pytest

from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.dependency import hazard
from bitloom.golden.discrete.machine.instruction import Instruction, encode
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.rules import broken_rule
from bitloom.golden.discrete.machine.units import ARRAY_UNIT, UNITS, needs
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.controller import controller
from tests.golden.discrete.machine.cases import TABLES
from tests.hls_gen.rtl.bench import Bench, bench_of

MACHINE = MachineParameters(slaves=2)
SHAPES = (
    "IO LOAD_NEURONS d={d} rows={rows}",
    "IO STORE_NEURONS a={a} rows={rows}",
    "IO LOAD_WEIGHTS w=0 rows=3 columns=4",
    "MOVE COPY a={a} d={d} rows={rows}",
    "MOVE SCATTER a={a} columns={rows}",
    "COMPUTE ADD a={a} b={b} d={d} rows={rows}",
    "COMPUTE FORWARD a={a} d={d} rows={rows} columns=4",
    "COMPUTE BACKWARD d={d} rows={rows} columns=4",
    "COMPUTE UPDATE a={a} rows={rows} columns=4",
    "COMPUTE UPDATE a={a} rows={rows} columns=4 kind_d=1 chance_d=1",
    "COMPUTE ACCUMULATE a={a} rows={rows} columns=4 kind_d=1 chance_d=1",
    "COMPUTE APPLY rows={rows} columns=4",
    "COMPUTE CONVERT a={a} d={a} rows={rows} kind_d=1 chance_d=1",
    "IO LOAD_PROGRAM d=100 rows={rows}",
    "NOP WAIT",
    "CONFIG RATE a=1",
)


def random_program(draw: random.Random, count: int) -> list[Instruction]:
    """Instructions that often meet, with addresses of a few places; each keeps the rules."""
    places = [0, 4, 8, 12, 16]
    instructions = []
    while len(instructions) < count:
        a, b, d = draw.choice(places), draw.choice(places), draw.choice(places)
        (i,) = assemble(draw.choice(SHAPES).format(a=a, b=b, d=d, rows=draw.randint(1, 8)))
        if broken_rule(i, MACHINE, TABLES) is None:
            instructions.append(i)
    return [*instructions, *assemble("NOP END")]


class Units:
    """Units that finish what they got after a random time. unfinished : unit -> (instruction's needs, cycles left)."""

    def __init__(self, bench: Bench, program: list[Instruction], seed: int):
        self.bench = bench
        self.program = program
        self.random = random.Random(seed)
        self.unfinished: dict[tuple[str, ...], list] = {}
        self.issued: list[int] = []
        self.overlapped = 0
        self.loading = 0

    def cycle(self) -> None:
        """Look at the outputs, then drive what ends in the next cycle, and the clock."""
        bench = self.bench
        started = tuple(unit for unit in UNITS if bench[f"start_{unit}"])
        if started:
            place = self.place(started)
            need = needs(self.program[place], MACHINE)
            assert need.units == started
            for other, _ in self.unfinished.values():
                assert hazard(other, need) is None, (place, str(self.program[place]), hazard(other, need))
            self.overlapped += len(self.unfinished) > 0
            self.unfinished[started] = [need, self.random.randint(1, 60)]
            self.issued.append(place)
        ends = []
        for units, entry in self.unfinished.items():
            entry[1] -= 1
            if entry[1] == 0:
                ends.append(units)
        done = {f"{unit}_done": 0 for unit in UNITS}
        if bench["program_start"]:
            assert not self.unfinished, "the words of a program come behind those of earlier instructions"
            self.loading = self.random.randint(2, 60)
        self.loading -= self.loading > 0
        done["program_done"] = int(self.loading == 1)
        for units in ends:
            del self.unfinished[units]
            done[f"{ARRAY_UNIT if ARRAY_UNIT in units else units[0]}_done"] = 1  # IO of the slaves ends with the array
        bench.tick()
        bench.set(**done)

    def place(self, units: tuple[str, ...]) -> int:
        """Address of the instruction that begins: the next one for units, in the order of the program."""
        place = (self.issued[-1] if self.issued else -1) + 1
        while not needs(self.program[place], MACHINE).units:
            place += 1
        return place


bench = bench_of(lambda: controller(Library(32), MACHINE))


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_issued_too_early(bench, seed):
    program = random_program(random.Random(seed), 60)
    bench.reset()
    for k, word in enumerate(encode(program).tolist()):
        bench.set(write=1, write_row=k // isa.WORDS, write_bank=k % isa.WORDS, write_data=word)
        bench.tick()
    bench.set(write=0, tables_loaded=0b111, start=1, first=0, no_data=0, data_left=0)
    bench.tick()
    bench["start"] = 0
    units = Units(bench, program, seed)
    cycles = 0
    while not bench["finished"]:
        assert not bench["fault"], (bench["fault"], bench["fault_place"])
        units.cycle()
        cycles += 1
        assert cycles < 60 * 100, "the program doesn't end"
    assert units.issued == [k for k, i in enumerate(program) if needs(i, MACHINE).units]
    assert not units.unfinished
    assert units.overlapped > 3
