"""Units at streams and at the neuron cache, with random pauses on every side: nothing is lost, doubled or changed."""

import random

import numpy as np
import pytest

from bitloom.golden.discrete.converter import PAIRS
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.golden.discrete.machine.master import Master
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.rules import broken_rule
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design.training_packets import program_packet, run_packet
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.access import access
from bitloom.hls_gen.rtl.training.loader import loader
from bitloom.hls_gen.rtl.training.vector import COPY, vector
from tests.golden.discrete.machine.cases import CONVERTERS
from tests.hls_gen.rtl.bench import Agent, Bench, Each, Sink, Source, run

from .tables import coded_as, conversion

MACHINE = MachineParameters(slaves=2)
FORM = MACHINE.form
STALLS = [0, 0.3, 0.8]


class Cache(Agent):
    """The neuron cache: reads are answered a cycle later, and a write is taken when it likes.

    writes : (row, data) in order.
    """

    late = True

    def __init__(self, bench: Bench, cells, readers, write: str, stall: float, seed: int = 7):
        self.bench = bench
        self.cells = cells
        self.readers = readers
        self.write = write
        self.stall = stall
        self.random = random.Random(seed)
        self.writes = []

    def drive(self) -> None:
        self.bench["write_ready"] = int(self.random.random() >= self.stall)

    def look(self) -> None:
        bench = self.bench
        if bench[self.write] and bench["write_ready"]:
            self.writes.append((bench["write_row"], bench["write_data"]))
        self.read = {data: int(self.cells[bench[row]]) for row, data in self.readers.items()}

    def after(self) -> None:
        self.bench.set(**self.read)


class Clocked(Agent):
    """Gives the cache's answers at the beginning of the next cycle."""

    def __init__(self, cache: Cache):
        self.cache = cache
        cache.read = {}

    def drive(self) -> None:
        self.cache.after()


def until(bench: Bench, done: list[bool], *agents: Agent) -> None:
    """Run until the pulse ``done`` has come."""

    class Waits(Agent):
        def look(self) -> None:
            done.append(bool(bench["done"]))

        @property
        def done(self) -> bool:
            return any(done)

    run(bench, Waits(), *agents)


@pytest.fixture(scope="module")
def io():
    with Bench(access(Library(32), MACHINE)) as bench:
        yield bench


def begin(bench: Bench, **values: int) -> None:
    """The pulse ``start``."""
    bench.set(start=1, **values)
    bench.tick()
    bench["start"] = 0


@pytest.mark.parametrize("stall", STALLS)
def test_words_are_loaded(io, stall):
    data = [0, 1 << 17, 5, *random.Random(1).choices(range(1 << 32), k=60)]
    io.reset()
    io.set(load_ready=0, store_valid=0, results_ready=0)
    begin(io, store=0, on_slaves=0, mark_last=0, address=9, rows=len(data))
    cache = Cache(io, [0] * 1024, {}, "write", stall)
    until(io, [], Source(io, "data_", [{"data": word} for word in data], stall), cache)
    expected = FORM.pack(FORM.unpack(np.array(data) & (2 * FORM.largest + 1))).tolist()  # the low bits
    assert cache.writes == [(9 + k, cell) for k, cell in enumerate(expected)]


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("last", [0, 1])
def test_words_are_stored(io, stall, last):
    cells = np.random.default_rng(2).integers(0, 1 << FORM.bits, 1024)
    io.reset()
    io.set(data_valid=0, store_valid=0)
    begin(io, store=1, on_slaves=0, mark_last=last, address=100, rows=90)
    cache = Cache(io, cells, {"read_row": "read_data"}, "write", 0)
    sink = Sink(io, "results_", ("data", "last"), expect=90, stall=stall)
    until(io, [], Clocked(cache), cache, sink)
    assert sink.words == [(int(cells[100 + k]), int(last and k == 89)) for k in range(90)]
    assert cache.writes == []


FUNCTIONS = {name: k for name, k in isa.FUNCTIONS[isa.COMPUTE].items() if k not in isa.ON_SLAVES}
UNITS = {
    "least": MachineParameters(slaves=2),
    "codes": MachineParameters(slaves=2, divider="codes", products="shifter", form=WordFormat(12, 7)),
    "all": MachineParameters(slaves=2, divider="words", converter="multiplying", root="table"),
    "short words": MachineParameters(slaves=2, divider="words", root="table", form=WordFormat(7, 4)),
}
"""Machines by their units: a division of short words takes less time than other elements."""


@pytest.fixture(scope="module", params=UNITS)
def unit(request):
    machine = UNITS[request.param]
    with Bench(vector(Library(32), machine)) as bench:
        yield bench, machine


@pytest.mark.sample(24)
@pytest.mark.parametrize("stall", [0, 0.7])
@pytest.mark.parametrize("kind_b", [0, 2])
@pytest.mark.parametrize("name", [*FUNCTIONS, "COPY"])
def test_elements_with_pauses_of_the_cache(unit, name, kind_b, stall):
    """As the interpreter's master, with numbers of the generator in order."""
    bench, machine = unit
    form = machine.form
    operation = FUNCTIONS.get(name, COPY)
    fields = {"a": 10, "b": 200, "d": 400, "rows": 70}
    fields |= {"kind_b": kind_b} if operation in isa.TWO_OPERANDS else {}
    pair = int(machine.converter == "multiplying" and kind_b == 0)
    fields |= {"kind_d": 3, "chance_d": 1, "pair_d": pair} if name == "CONVERT" else {}
    i = Instruction(operation=isa.COMPUTE, function=FUNCTIONS.get(name, isa.RELU), **fields)
    if broken_rule(i, machine, CONVERTERS):
        return
    golden = Master(machine)
    golden.configuration.tables.update(CONVERTERS)
    golden.configuration.rate_places, golden.configuration.mu_places = 3, 1
    rng = np.random.default_rng(3)
    words = rng.integers(-3 * form.one, 3 * form.one, 1024) >> rng.integers(0, form.bits, 1024)
    golden.neurons[:] = form.pack(words * (rng.random(1024) < 0.9))
    cells = golden.neurons.copy()
    number = Lfsr(1)
    golden.move(Instruction(operation=isa.MOVE, a=10, d=400, rows=70)) if name == "COPY" else golden.compute(i)
    bench.reset()
    bench.set(rate=3, mu=1, mu_on=1, **coded_as(machine, golden.configuration, "a", 0))
    table = CONVERTERS[3]
    bench.set(**coded_as(machine, golden.configuration, "b", i.kind_b))
    bench.set(**conversion(machine, table.table, True, "d_", pair=PAIRS[pair], zone=table.zone))
    divides = {"by_words": int(name == "DIVIDE" and not kind_b)} if machine.divider == "words" else {}
    begin(bench, operation=operation, address_a=10, address_b=200, address_d=400, rows=70, draws=i.chance_d, **divides)
    cache = Cache(bench, cells, {"a_row": "a_data", "b_row": "b_data"}, "write", stall)

    def draws() -> None:
        if bench["take_one"]:
            number.draw(1)

    class Numbers(Agent):
        def drive(self) -> None:
            bench["first"] = int(Lfsr(number.state).draw(1)[0])

    until(bench, [], Clocked(cache), Numbers(), Each(draws), cache)
    assert cache.writes == [(400 + k, int(golden.neurons[400 + k])) for k in range(70)]
    assert number.state == golden.generator.state


@pytest.mark.parametrize("stall", STALLS)
def test_packets_are_taken_apart(stall):
    program = [Instruction(operation=isa.NOP), Instruction(operation=isa.JUMP, d=3, rows=7)]
    data = random.Random(4).choices(range(1 << 32), k=50)
    packets = [program_packet(program, first=5), run_packet(np.array(data), first=6), run_packet(np.array([]), first=5)]
    items = [{"data": int(word), "last": int(k == len(p) - 1)} for p in packets for k, word in enumerate(p)]
    writes, starts = [], []
    with Bench(loader(Library(32), MACHINE)) as bench:
        source = Source(bench, "s_axis_t", items, stall)
        sink = Sink(bench, "data_", expect=len(data), stall=stall)

        def look() -> None:
            if bench["write"]:
                writes.append((bench["write_row"], bench["write_bank"], bench["write_data"]))
            if bench["start"]:
                starts.append(bench["first"])

        class Controller(Agent):
            """Ends a program some cycles after it took all of its words."""

            waits = 0

            def drive(self) -> None:
                ends = bool(bench["running"]) and bool(bench["dry"]) and len(starts) > 0 and self.waits > 20
                bench["finished"] = int(ends)
                self.waits = 0 if ends else self.waits + 1

        run(bench, source, sink, Each(look), Controller())
        assert bench["fault"] == 0
        bench["finished"] = 1
        bench.tick()
        bench["finished"] = 0
        bench.tick()
        assert bench["idle"]
    words = program_packet(program)[4:].tolist()
    assert writes == [(5 + k // 4, k % 4, word) for k, word in enumerate(words)]
    assert sink.values == data
    assert starts == [6, 5]


@pytest.mark.parametrize("stall", STALLS)
def test_words_of_a_run_become_instructions(stall):
    """LOAD_PROGRAM takes some words of a run, and units take those before and behind; nobody else is offered them."""
    draw = random.Random(6)
    words = draw.choices(range(1 << 32), k=5 + 12 + 7)
    packet = run_packet(np.array(words))
    items = [{"data": int(word), "last": int(k == len(packet) - 1)} for k, word in enumerate(packet)]
    writes: list[tuple[int, int, int]] = []
    data: list[int] = []
    ends: list[int] = []
    with Bench(loader(Library(32), MACHINE)) as bench:

        class Units(Agent):
            """Take five words, load three instructions, take the other words."""

            late = True
            pause = 0
            loads = False

            def drive(self) -> None:
                begins = len(data) == 5 and not self.loads and bool(bench["running"]) and self.pause > 8
                self.pause = self.pause + 1 if len(data) == 5 else 0
                bench.set(program_start=int(begins), program_first=9, program_rows=3)
                self.loads = self.loads or begins
                asks = len(data) < 5 or (bool(ends) and draw.random() >= stall)
                bench["data_ready"] = int(asks)

            def look(self) -> None:
                if bench["data_valid"]:
                    assert not bench["wants_program"]
                    data.extend([bench["data_data"]] * bench["data_ready"])
                if bench["write"]:
                    writes.append((bench["write_row"], bench["write_bank"], bench["write_data"]))
                ends.extend([bench.cycle] * bench["program_done"])

            @property
            def done(self) -> bool:
                return len(data) == 12

        run(bench, Source(bench, "s_axis_t", items, stall), Units())
        assert (bench["fault"], bench["dry"], bench["wants_program"]) == (0, 1, 0)
    assert data == words[:5] + words[17:]
    assert writes == [(9 + k // 4, k % 4, word) for k, word in enumerate(words[5:17])]
    assert len(ends) == 1
