"""The master with its slaves, told by the test instead of a controller what to do: as the interpreter, with random
pauses of both streams."""

import numpy as np
import pytest

from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.instruction import Instruction, encode
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.words import first_words, sample_words
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.master import master, told_widths
from bitloom.hls_gen.rtl.training.vector import COPY
from tests.golden.discrete.machine.cases import CASES, samples, start
from tests.hls_gen.rtl.bench import Agent, Bench, Sink, Source, run

from .beats import beat_kind, layout

TWO = MachineParameters(slaves=2)


class Told(Agent):
    """Does a program's instructions one after the other, as a controller without overlaps."""

    def __init__(self, bench: Bench, machine: MachineParameters, program: list[Instruction]):
        self.bench = bench
        self.machine = machine
        self.program = program
        self.place = 0
        self.runs = [0] * isa.COUNTERS
        self.awaited = ""

    def drive(self) -> None:
        self.bench.set(**dict.fromkeys(("start_io", "start_array", "start_vector", "table_start", "seed_set"), 0))
        while not self.awaited and not self.done:
            i = self.program[self.place]
            self.place += 1
            self.tell(i)
            if i.operation == isa.CONFIG:
                break  # a cycle of its own

    def tell(self, i: Instruction) -> None:
        """Outputs of the controller for an instruction; what of the master must end before the next one."""
        fields = {f"field_{name}": getattr(i, name) for name in isa.FIELDS if f"field_{name}" in told_widths(TWO)}
        self.bench.set(**fields, payload=sum(int(word) << 32 * k for k, word in enumerate(encode([i])[1:])))
        if i.operation == isa.JUMP:
            self.runs[i.a] += 1
            again = i.rows == isa.ALWAYS or self.runs[i.a] < i.rows
            self.runs[i.a] *= again
            self.place = i.d if again else self.place
        elif i.operation == isa.CONFIG:
            self.configure(i)
        elif i.operation != isa.NOP:
            on_array = i.key in ON_ARRAY
            unit = "array" if on_array else "io" if i.operation == isa.IO else "vector"
            if on_array:
                each, last_slave = layout(self.machine, i)
                rows = 1 if i.operation == isa.MOVE else i.rows
                self.bench.set(each=each, last_slave=last_slave, array_rows=rows, beat_kind=beat_kind(i))
            if i.operation == isa.IO:
                self.bench.set(start_io=1, on_slaves=int(on_array), stores=i.function >> 3, cache=i.function & 3)
            self.bench["vector_function"] = COPY if i.operation == isa.MOVE else i.function
            self.bench[f"start_{unit}"] = 1
            self.awaited = f"{unit}_done"

    def configure(self, i: Instruction) -> None:
        if i.function == isa.RATE:
            self.bench.set(rate=i.a, mu=i.b, mu_on=i.kind_b)
        elif i.function == isa.SEED:
            self.bench.set(seed_set=1, seed=i.a | i.b << 16)
        else:
            self.bench["table_start"] = 1
            self.awaited = "table_done"

    def look(self) -> None:
        if self.awaited and self.bench[self.awaited]:
            assert not (self.awaited == "table_done" and self.bench["table_fault"])
            self.awaited = ""

    @property
    def done(self) -> bool:
        return not self.awaited and self.program[self.place].key == (isa.NOP, isa.END)


ON_ARRAY = {(isa.COMPUTE, function) for function in isa.ON_SLAVES} | {(isa.MOVE, isa.SCATTER)}
ON_ARRAY |= {(isa.IO, function) for function in isa.FUNCTIONS[isa.IO].values() if function & 3}
"""Instructions of the array."""


def compare(bench: Bench, machine: MachineParameters, case: str, stall: tuple[float, float]) -> None:
    """A training's samples with pauses of the words that come and of those that go."""
    t = CASES[case]
    form = machine.form
    data = np.concatenate([first_words(t, form, start(t, form)), sample_words(t, form, *samples(t, form, 2))])
    program = ProgramWriter(machine, t).program(2)
    (expected,) = Interpreter(machine, program).run(data)
    bench.reset()
    source = Source(bench, "data_", [{"data": int(word)} for word in data], stall[0])
    sink = Sink(bench, "results_", ("data", "last"), expect=len(expected), stall=stall[1])
    run(bench, source, Told(bench, machine, program), sink)
    assert sink.words == [(int(word), int(k == len(expected) - 1)) for k, word in enumerate(expected)]


@pytest.fixture(scope="module")
def two():
    with Bench(master(Library(32), TWO)) as bench:
        yield bench


@pytest.mark.slow
@pytest.mark.parametrize("stall", [(0, 0), (0.8, 0), (0, 0.8), (0.4, 0.4)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_the_master_equals_the_interpreter(two, case, stall):
    compare(two, TWO, case, stall)


@pytest.mark.slow
@pytest.mark.parametrize("slaves", [1, 4])
def test_the_master_with_other_slaves(slaves):
    machine = MachineParameters(slaves=slaves)
    with Bench(master(Library(32), machine)) as bench:
        for case in CASES:
            compare(bench, machine, case, (0.3, 0.3))
