"""The generated training machine in Verilator against the interpreter: whole programs, hazards, faults."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.faults import FAULTS, MachineFault
from bitloom.golden.discrete.machine.instruction import (
    ACCUMULATE,
    BACKWARD,
    COMPUTE,
    FORWARD,
    UPDATE,
    Instruction,
    encode,
)
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.table_words import config_table
from bitloom.golden.discrete.machine.words import first_words, sample_words
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.design.headers import PROGRAM, RUN, PacketHeader
from bitloom.overlay.virtual.training_machine import SimulatedMachine
from tests.golden.discrete.machine import test_faults as rules
from tests.golden.discrete.machine import test_hazards as hazards
from tests.golden.discrete.machine import test_interpreter as loads
from tests.golden.discrete.machine.cases import (
    BATCH_CASES,
    CASES,
    NORMAL_CASES,
    PAIR_CASES,
    TABLES,
    WINDOW_CASES,
    samples,
    start,
)
from tests.golden.discrete.machine.learning_program import learning_program

SMALL = MachineParameters(slaves=2)
"""The machine of the default tier: one build for all tests."""
EQUIPPED = MachineParameters(slaves=2, tables=5, divider="words", converter="multiplying", root="table")
"""One with all units that a machine may lack."""
MORE_TABLES = MachineParameters(slaves=2, tables=5)
TABLED = MachineParameters(slaves=2, products="table")
FORM = SMALL.form
OTHERS = {
    "1 slave": MachineParameters(slaves=1),
    "4 slaves, 32 bits": MachineParameters(slaves=4, form=WordFormat(32, 20), tables=4),
    "8 slaves": MachineParameters(slaves=8),
    "no multiplier": MachineParameters(slaves=2, products="shifter", form=WordFormat(12, 7)),
    "all units": EQUIPPED,
}


ALL_CASES = {**CASES, **PAIR_CASES, "no tables": replace(CASES["continuous"], tables={})}


def training_data(machine: MachineParameters, case: str, count: int) -> tuple[list[Instruction], np.ndarray]:
    """Program and words of a training."""
    t = ALL_CASES[case]
    form = machine.form
    data = [first_words(t, form, start(t, form)), sample_words(t, form, *samples(t, form, count))]
    return ProgramWriter(machine, t).program(count), np.concatenate(data)


def compare(machine: MachineParameters, case: str, count: int, **stalls: float) -> None:
    program, data = training_data(machine, case, count)
    expected = Interpreter(machine, program).run(data)
    with SimulatedMachine(machine, program) as hardware:
        hardware.simulation.stall(**stalls, seed=1)
        hardware.simulation.check(probe_ready=bool(stalls))
        got = hardware.run(data)
    assert [words.tolist() for words in got] == [words.tolist() for words in expected]


@pytest.mark.parametrize("case", CASES)
def test_programs_equal_the_interpreter(case):
    compare(SMALL, case, 3)


@pytest.mark.parametrize("stalls", [{"source": 0.8}, {"sink": 0.9}, {"source": 0.3, "sink": 0.3}], ids=str)
def test_programs_with_stalls(stalls):
    compare(SMALL, "all", 2, **stalls)


@pytest.mark.sample(5)
@pytest.mark.parametrize("instructions", [128, 16], ids=["whole", "in pages"])
@pytest.mark.parametrize("case", [*BATCH_CASES, *NORMAL_CASES, *WINDOW_CASES])
def test_batches(case, instructions):
    """Two batches, whose program the instruction cache holds, or which comes with the data."""
    t = {**BATCH_CASES, **NORMAL_CASES, **WINDOW_CASES}[case]
    machine = EQUIPPED if t.normalised else MORE_TABLES
    inputs, targets = samples(t, FORM, 2 * t.batch)
    program, data = ProgramWriter(replace(machine, instructions=instructions), t).run(start(t, FORM), inputs, targets)
    (expected,) = Interpreter(machine, program).run(data)
    with SimulatedMachine(machine, program) as hardware:
        hardware.simulation.stall(source=0.3, sink=0.3, seed=1)
        (words,) = hardware.run(data)
    assert words.tolist() == expected.tolist()


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("machine", "words"), [(SMALL, True), (TABLED, False)], ids=["words", "tables"])
def test_learning(machine, words, seed):
    """UPDATE, ACCUMULATE and APPLY with random fields; also where the factors of all products are codes, whose products
    are in tables."""
    case = learning_program(FORM, seed, words=words)
    with SimulatedMachine(machine, case.program) as hardware:
        hardware.simulation.stall(source=0.3, sink=0.3, seed=seed)
        (results,) = hardware.run(case.data)
    assert results.tolist() == case.expected


@pytest.mark.parametrize("stalls", [{}, {"source": 0.8}, {"sink": 0.9}], ids=str)
def test_a_program_that_loads_instructions(stalls):
    """The next instruction is one that was loaded; words of data come before and after the instructions."""
    program = assemble(loads.LONG)
    interpreter = Interpreter(SMALL, program)
    with SimulatedMachine(SMALL, program) as hardware:
        hardware.simulation.stall(**stalls, seed=3)
        hardware.simulation.check(probe_ready=bool(stalls))
        for text, more in (
            ("COMPUTE ADD a=0 b=1 d=0 rows=1\nIO STORE_NEURONS a=0 rows=1", []),
            ("IO LOAD_NEURONS d=0 rows=2\nIO STORE_NEURONS a=0 rows=2", [8, 9]),
            ("NOP WAIT\nNOP END", []),
        ):
            data = [5, 7, *encode(assemble(text)).tolist(), *more]
            results = [words.tolist() for words in interpreter.run(data)]
            assert [words.tolist() for words in hardware.run(data)] == results
        for count in range(2, 10):
            with pytest.raises(MachineFault) as error:
                hardware.run(data[:count])
            assert (error.value.fault.name, error.value.place) == ("NO_DATA", 2)
        assert [words.tolist() for words in hardware.run(data)] == results


def test_programs_by_tables():
    """Tables are filled where an instruction has other kinds than the one before: some cycles more than their rows."""
    compare(TABLED, "all", 3, source=0.3, sink=0.3)
    _, data = training_data(SMALL, "all", 3)
    cycles = {}
    for machine in (SMALL, TABLED):
        interpreter = Interpreter(machine, training_data(SMALL, "all", 3)[0])
        interpreter.run(data)
        with SimulatedMachine(machine, interpreter.program) as hardware:
            hardware.run(data)
            cycles[machine.products] = hardware.cycles
    functions = [(COMPUTE, function) for function in (FORWARD, BACKWARD, UPDATE, ACCUMULATE)]
    fills = sum(work.instruction.key in functions for work in interpreter.work)
    more = cycles["table"] - cycles["multiplier"]
    assert fills > 6
    assert more <= (fills - 1) * (TABLED.table_rows + facts.PRODUCT_LATENCY + 1)


def test_a_table_that_changes():
    """Its products are filled anew, though kinds are the same as before."""
    forward = "COMPUTE FORWARD a=0 d=20 rows=4 columns=3 kind_a=1 kind_w=1\nIO STORE_NEURONS a=20 rows=3"
    tables = [config_table(1, table, 1) for table in (CodeTable((1, -0.5)), CodeTable((-0.25, 0.125)))]
    first = assemble("IO LOAD_NEURONS d=0 rows=4\nIO LOAD_CODES rows=4 columns=3")
    program = [tables[0], *first, *assemble(forward), tables[1], *assemble(f"{forward} last=1\nNOP END")]
    data = np.array([0, 1, 1, 0, *[0, 1] * 6])
    (expected,) = Interpreter(TABLED, program).run(data)
    assert len({tuple(part) for part in np.split(expected, 2)}) == 2
    assert once(program, data, TABLED)[0].tolist() == expected.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "COMPUTE FORWARD d=10 rows=2 columns=2 kind_a=1",
        "COMPUTE FORWARD d=10 rows=2 columns=2 kind_w=1",
        "COMPUTE BACKWARD d=10 rows=2 columns=2 kind_b=1",
        "COMPUTE UPDATE rows=2 columns=2 kind_b=1",
        "COMPUTE ACCUMULATE rows=2 columns=2 kind_a=1",
        "COMPUTE MULTIPLY rows=2",
        "COMPUTE MULTIPLY rows=2 kind_b=1",
        "COMPUTE APPLY rows=2 columns=2",
    ],
)
def test_tables_have_no_products_of_words(text):
    program = rules.program(text)
    good = "APPLY" in text or "MULTIPLY rows=2 kind_b" in text
    for run in (Interpreter(TABLED, program).run, lambda: once(program, [], TABLED)):
        if good:
            run()
        else:
            with pytest.raises(MachineFault, match=r"^instruction 3: NO_UNIT: "):
                run()


@pytest.mark.parametrize("stalls", [{}, {"source": 0.7}, {"sink": 0.7}], ids=str)
def test_divisions(stalls):
    """Of words and codes by words and codes, beside IO; a division that an instruction waits for."""
    rng = np.random.default_rng(1)
    words = rng.integers(-FORM.largest, FORM.largest + 1, 120) >> rng.integers(0, FORM.bits, 120)
    words[60::7] = 0
    lines = ["IO LOAD_NEURONS d=0 rows=120"]
    for place, (a, b) in enumerate(product(range(4), repeat=2)):
        lines.append(f"COMPUTE DIVIDE a=0 b=60 d={120 + 40 * place} rows=40 kind_a={a} kind_b={b}")
        lines.append(f"IO STORE_NEURONS a={120 + 40 * place} rows=40")
    lines += ["COMPUTE ADD a=760 b=0 d=0 rows=40", "IO STORE_NEURONS a=0 rows=40 last=1", "NOP END"]
    program = [config_table(number, *table) for number, table in TABLES.items()] + assemble("\n".join(lines))
    expected = Interpreter(EQUIPPED, program).run(FORM.pack(words))
    with SimulatedMachine(EQUIPPED, program) as hardware:
        hardware.simulation.stall(**stalls, seed=3)
        assert [w.tolist() for w in hardware.run(FORM.pack(words))] == [w.tolist() for w in expected]


@pytest.mark.slow
@pytest.mark.parametrize("form", [WordFormat(4, 1), WordFormat(5, 2)], ids=str)
def test_the_shortest_words(form):
    compare(MachineParameters(slaves=2, form=form), "no tables", 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_machines_of_other_parameters(name):
    machine = OTHERS[name]
    for case in CASES if machine.multiplier else ("all", "inputs and gradients"):
        compare(machine, case, 3, source=0.2, sink=0.2)
    for seed in range(6) if machine.multiplier else ():
        learning = learning_program(machine.form, seed)
        with SimulatedMachine(machine, learning.program) as hardware:
            assert [words.tolist() for words in hardware.run(learning.data)] == [learning.expected]


@pytest.mark.parametrize("name", hazards.HAZARDS)
@pytest.mark.parametrize("stalls", [{}, {"source": 0.7}, {"sink": 0.7}], ids=str)
def test_hazards(name, stalls):
    """The first instruction is slowed down by the streams, so that the second would overtake it."""
    first, second, shown = hazards.HAZARDS[name]
    program = assemble(f"{hazards.PREPARE}{first}\n{second}\nNOP WAIT\nIO STORE_NEURONS {shown} last=1\nNOP END")
    data = np.arange(1, 41 + 20 * ("LOAD" in first))
    expected = Interpreter(SMALL, program).run(data)
    with SimulatedMachine(SMALL, program) as hardware:
        hardware.simulation.stall(**stalls, seed=2)
        assert [w.tolist() for w in hardware.run(data)] == [w.tolist() for w in expected]


def test_units_work_at_the_same_time():
    """A store and a copy that have nothing in common take as long as the longer one."""
    text = "IO STORE_NEURONS a=0 rows=600 last=1\n{}MOVE COPY a=600 d=800 rows=200\nNOP END"
    cycles = []
    for between in ("", "NOP WAIT\n"):
        with SimulatedMachine(SMALL, assemble(text.format(between))) as hardware:
            hardware.run()
            cycles.append(hardware.cycles)
    assert cycles[0] < 650 < 800 < cycles[1]


BOUNDS = {
    "neurons": ("IO LOAD_NEURONS d=1015 rows={}", 9),
    "weights": ("IO LOAD_WEIGHTS w=1000 rows={} columns=4", 12),
    "operand b": ("COMPUTE ADD a=0 b=1000 d=0 rows={}", 24),
    "results": ("COMPUTE FORWARD a=0 w=0 d=1014 rows=2 columns={}", 10),
    "columns": ("MOVE SCATTER a=0 columns={}", 64),
    "overlap": ("MOVE COPY a=100 d=110 rows={}", 10),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_addresses_at_the_bounds(name):
    """As the interpreter: the last address is good, the one after it is not."""
    text, most = BOUNDS[name]
    for count, good in ((most, True), (most + 1, False)):
        program = assemble(text.format(count) + "\nNOP END")
        data = np.arange({"neurons": count, "weights": 4 * count}.get(name, 0))
        outcomes = []
        for run in (Interpreter(SMALL, program).run, lambda d, p=program: once(p, d)):
            try:
                run(data)
                outcomes.append("")
            except MachineFault as error:
                outcomes.append(error.fault.name)
        assert outcomes == ([""] * 2 if good else ["BAD_ADDRESS"] * 2)


def once(program: list[Instruction], data: np.ndarray, machine: MachineParameters = SMALL) -> list[np.ndarray]:
    with SimulatedMachine(machine, program) as hardware:
        return hardware.run(data)


def interpreted(case: str) -> MachineFault | None:
    """Results of the interpreter; None where the caches of `SMALL` are large enough for it."""
    try:
        Interpreter(SMALL, rules.program(rules.BROKEN[case][0])).run(np.arange(3))
    except MachineFault as error:
        return error
    return None


@pytest.mark.parametrize("case", [case for case in rules.BROKEN if interpreted(case)])
def test_a_fault_is_named_and_the_machine_recovers(case):
    """The same instruction, at the same place, as in the interpreter."""
    expected = interpreted(case)
    good = assemble("IO LOAD_NEURONS d=0 rows=2\nIO STORE_NEURONS a=0 rows=2 last=1\nNOP END")
    with SimulatedMachine(SMALL, rules.program(rules.BROKEN[case][0])) as hardware:
        with pytest.raises(MachineFault) as error:
            hardware.run(np.arange(3))
        assert (error.value.fault, error.value.place) == (expected.fault, expected.place)
        hardware.load(good)
        assert [words.tolist() for words in hardware.run([7, 8])] == [[7, 8]]


def test_faults_while_data_come():
    program = assemble("IO LOAD_NEURONS d=0 rows=3\nIO STORE_NEURONS a=0 rows=3 last=1\nNOP END")
    with SimulatedMachine(SMALL, program) as hardware:
        for words, name, place in (([1, 2], "NO_DATA", 0), ([1, 2, 3, 4], "DATA_LEFT", 2)):
            with pytest.raises(MachineFault) as error:
                hardware.run(words)
            assert (error.value.fault.name, error.value.place) == (name, place)
            assert [w.tolist() for w in hardware.run([5, 1 << 17, 7])] == [[5, 0, 7]]


PACKETS = {
    "no header": ("BAD_HEADER", [0, 0, 0, 0]),
    "another kind": ("BAD_PACKET", PacketHeader(1, 0, 0, 0, 1).words()),
    "behind the cache": ("BAD_RANGE", PacketHeader(PROGRAM, 0, 0, SMALL.instructions, 1).words()),
    "over the cache's end": ("BAD_RANGE", PacketHeader(PROGRAM, 0, 0, SMALL.instructions - 1, 2).words()),
    "no instruction": ("BAD_RANGE", PacketHeader(PROGRAM, 0, 0, 0, 0).words()),
    "a start behind the cache": ("BAD_RANGE", PacketHeader(RUN, 0, 0, SMALL.instructions, 0).words()),
    "a part of a header": ("TRUNCATED", PacketHeader(PROGRAM, 0, 0, 0, 1).words()[:3]),
    "a part of an instruction": ("TRUNCATED", [*PacketHeader(PROGRAM, 0, 0, 0, 1).words(), 1, 2]),
}
"""Transfers, and the rule that each breaks."""


@pytest.mark.parametrize("name", PACKETS)
def test_packets_that_are_wrong(name):
    fault, words = PACKETS[name]
    with SimulatedMachine(SMALL, assemble("NOP END")) as hardware:
        hardware.simulation.send(np.asarray(words, np.uint32), last=True)
        hardware.simulation.run(None, "interrupt")
        code = next(rule.code for rule in FAULTS if rule.name == fault)
        assert hardware.read("ERROR_CODE") == code
        assert hardware.read("STATUS") == 2
        hardware.reset()
        assert (hardware.read("ERROR_CODE"), hardware.read("STATUS") & 2) == (0, 0)
        hardware.run()


def test_a_program_may_lie_at_the_end_of_the_cache():
    """One instruction at the last address, with which a run begins; the address behind it is refused (`PACKETS`)."""
    end = assemble("NOP END")
    last = SMALL.instructions - 1
    packets = [PacketHeader(PROGRAM, 0, 0, last, 1).words(), encode(end), PacketHeader(RUN, 0, 0, last, 0).words()]
    with SimulatedMachine(SMALL, assemble("NOP WAIT")) as hardware:
        hardware.simulation.send(np.concatenate(packets), last=True)
        hardware.simulation.run(None, "interrupt")
        assert (hardware.read("ERROR_CODE"), hardware.read("RUNS")) == (0, 1)
