"""The array by itself: its beats, and what it makes of what comes up, with random pauses of both streams."""

import random

import pytest

from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.draws import by_chance
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.array import array
from tests.hls_gen.rtl.bench import Agent, Bench, run

from .beats import KINDS, READS, Step, layout, steps, total

FOUR = MachineParameters(slaves=4)


class Surroundings(Agent):
    """Neuron cache, generator, streams and tree around the array; one step, until it is done.

    beats : (cycle, parts) of each beat that went down. written : what went to the neuron cache, (row, cell).
    stored : (word, last) of STORE. took : numbers of the generator. ends : pulses of done.
    """

    late = True

    def __init__(self, bench: Bench, machine: MachineParameters, cells: list[int], step: Step, stall: float, seed: int):
        self.bench = bench
        self.machine = machine
        self.cells = cells
        self.step = step
        self.stall = stall
        self.random = random.Random(seed)
        self.words = list(step.words)
        self.offered = False
        self.coming: dict[int, int] = {}  # cycle -> value at the root of the tree
        self.beats, self.written, self.stored = [], [], []
        self.row, self.took, self.ends, self.room = 0, 0, 0, 0
        self.numbers = [beats[0] for beats in step.groups if beats[0]["column"] == 0]  # of each row of LEARN
        self.sums, self.given = iter(total(step)), iter(step.results)

    def drive(self) -> None:
        bench = self.bench
        noise = self.random.getrandbits
        self.offered = bool(self.words) and (self.offered or self.random.random() >= self.stall)
        bench.set(load_valid=int(self.offered), load_data=self.words[0] if self.offered else noise(18))
        bench["store_room"] = int(self.random.random() >= self.stall)
        bench["x_data"] = self.cells[self.row]
        valid = bench.cycle in self.coming
        mask = (1 << bench.widths["up_data"]) - 1
        bench.set(up_valid=int(valid), up_data=self.coming.pop(bench.cycle, noise(18)) & mask)
        drawn = self.numbers[min(self.took, len(self.numbers) - 1)] if self.numbers else {}
        named = [drawn[name] for name in ("draw_d", "draw_w") if name in drawn]
        bench.set(**dict(zip(("first", "second"), [*named, noise(16), noise(16)])))

    def look(self) -> None:
        bench = self.bench
        kind = self.step.kind
        self.row = bench["x_row"]
        if self.offered and bench["load_ready"]:
            self.words.pop(0)
            self.offered = False
        assert not (bench["load_ready"] and kind != facts.LOAD), "words belong to LOAD"
        draws = sum(name in self.numbers[0] for name in ("draw_d", "draw_w")) if self.numbers else 0
        assert bench["take_one"] + 2 * bench["take_two"] in (0, draws)
        self.took += bench["take_one"] or bench["take_two"]
        if bench["write"]:
            self.written.append((bench["write_row"], bench["write_data"]))
        if bench["store_valid"]:
            self.stored.append((bench["store_data"], bench["store_last"]))
        if bench["down_kind"]:
            assert self.room or kind != facts.STORE, "what STORE gives has no room"
            self.beat({name: bench[f"down_{name}"] for name in facts.beat_widths(self.machine)})
        self.ends += bench["done"]
        self.room = bench["store_room"]

    def beat(self, parts: dict[str, int]) -> None:
        """The tree answers a beat when it has gone down and come up."""
        self.beats.append((self.bench.cycle, parts))
        way = 2 * facts.tree_levels(self.machine)
        forward = parts["kind"] == facts.FORWARD
        if parts["kind"] == facts.STORE:
            self.coming[self.bench.cycle + way + 2] = next(self.given)
        elif parts["last"] and parts["kind"] in (facts.FORWARD, facts.BACKWARD):
            for k in range(parts["slave"] + 1 if forward else 1):
                self.coming[self.bench.cycle + way + facts.RESULT_AT + k] = next(self.sums)

    @property
    def done(self) -> bool:
        return bool(self.ends)


def beats_are(step: Step, beats: list[tuple[int, dict[str, int]]]) -> None:
    """Those of golden in order, and without a pause inside a group."""
    expected = [beat for group in step.groups for beat in group if beat["kind"]]
    assert len(beats) == len(expected)
    for (_, got), wanted in zip(beats, expected):
        read = ["kind", *READS[step.kind], *[name for name in ("draw_d", "draw_w") if name in wanted]]
        assert [got[name] for name in read] == [wanted[name] for name in read], step.instruction
    if step.kind in (facts.FORWARD, facts.BACKWARD, facts.LEARN):  # nothing of them can wait
        length = len(step.groups[0])
        due = [length * k + n for k, group in enumerate(step.groups) for n, beat in enumerate(group) if beat["kind"]]
        assert [cycle - beats[0][0] for cycle, _ in beats] == due


@pytest.fixture(scope="module")
def lead():
    with Bench(array(Library(32), FOUR)) as bench:
        yield bench


def performed(bench: Bench, machine: MachineParameters, cells: list[int], step: Step, stall: float, seed: int) -> None:
    """The array does a step as golden."""
    i = step.instruction
    each, last_slave = layout(machine, step.instruction)
    rows = 1 if step.kind == facts.SCATTER else i.rows
    chances = {f"draws_{n}": int(chance) for n, chance in zip("dw", by_chance(i))}
    bench.set(start=1, kind=step.kind, a=i.a, d=i.d, w=i.w, rows=rows, each=each, last_slave=last_slave, **chances)
    bench.set(accumulates=int(i.key == (isa.COMPUTE, isa.ACCUMULATE)))
    bench.set(load_valid=0, store_room=0, up_valid=0)
    bench.tick()
    bench["start"] = 0
    around = Surroundings(bench, machine, cells, step, stall, seed)
    run(bench, around)
    beats_are(step, around.beats)
    assert (around.words, around.coming, around.ends) == ([], {}, 1)
    assert around.took == (i.rows if any(chances.values()) else 0)
    store = step.kind == facts.STORE
    assert around.written == ([] if store else [(i.d + k, cell) for k, cell in enumerate(step.results)])
    last = len(step.results) - 1
    assert around.stored == ([(word, int(k == last)) for k, word in enumerate(step.results)] if store else [])


@pytest.mark.parametrize("name", ["words", "codes alone, by chance", "codes with a master, by chance"])
def test_the_array_leads_the_slaves_as_golden(lead, name):
    compare(lead, FOUR, name, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("slaves", [1, 2, 8])
def test_the_array_of_other_machines(slaves):
    machine = MachineParameters(slaves=slaves)
    with Bench(array(Library(32), machine)) as bench:
        for name in KINDS:
            for stall in (0, 0.3, 0.9):
                compare(bench, machine, name, stall)


def compare(bench: Bench, machine: MachineParameters, name: str, stall: float) -> None:
    """All steps, one after the other."""
    bench.reset()
    master, golden_steps = steps(machine, name, 3)
    for seed, step in enumerate(golden_steps):
        performed(bench, machine, master.neurons.tolist(), step, stall, seed)
