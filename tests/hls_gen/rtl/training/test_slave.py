"""A slave and the H-tree, each by itself, against golden's slaves: random pauses wherever beats may pause."""

import random

import pytest

from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.master import Master
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.slave import slave
from bitloom.hls_gen.rtl.training.tree import branch
from tests.hls_gen.rtl.bench import Agent, Bench, run

from .beats import KINDS, Step, settings_of, steps, total

FOUR = MachineParameters(slaves=4)
SHAPES = (5, 7), (1, 4), (6, 1)
"""Rows and columns of layers: slaves without a column, columns that are no multiple, fewer rows than slaves."""
STALLS = [0, 0.4, 0.8]


class Lead(Agent):
    """Gives the beats of steps as the array does, with pauses; notes what comes up.

    up : (cycle, value) of each valid cycle, a list a step. ends : cycles of the last beats of sums, and of STORE's.
    """

    def __init__(self, bench: Bench, master: Master, golden_steps: list[Step], stall: float, seed: int):
        self.bench = bench
        self.master = master
        self.stall = stall
        self.random = random.Random(seed)
        self.left = list(golden_steps)
        self.queue = []
        self.rest = 0
        self.up, self.ends = [], []

    def drive(self) -> None:
        widths = facts.beat_widths(self.master.machine)
        beat = {name: self.random.getrandbits(w) for name, w in widths.items()}  # noise but for what is said
        beat |= self.next() or {"kind": facts.NONE, "last": 0}
        for name, value in beat.items():
            self.bench[f"down_{name}"] = int(value)
        if beat["last"] or beat["kind"] == facts.STORE:
            self.ends[-1].append(self.bench.cycle)

    def next(self) -> dict[str, int] | None:
        """The next beat, or a pause."""
        if not self.queue and not self.rest and self.left:
            step = self.left.pop(0)
            self.queue = [(k > 0, beat) for group in step.groups for k, beat in enumerate(group)]
            accumulates = step.instruction.key == (isa.COMPUTE, isa.ACCUMULATE)
            drain = facts.array_drain(self.master.machine)[step.kind]
            self.rest = facts.accumulate_drain(self.master.machine) if accumulates else drain
            self.bench.set(**settings_of(self.master.machine, self.master, step.instruction))
            self.up.append([])
            self.ends.append([])
        if self.queue and (self.queue[0][0] or self.random.random() >= self.stall):
            return self.queue.pop(0)[1]
        self.rest -= not self.queue
        return None

    def look(self) -> None:
        if self.bench["up_valid"]:
            self.up[-1].append((self.bench.cycle, self.bench["up_data"]))
        else:
            assert self.bench["up_data"] == 0, "the tree adds what is not valid"

    @property
    def done(self) -> bool:
        return not self.left and not self.queue and self.rest == 0


def lead(bench: Bench, machine: MachineParameters, name: str, stall: float, seed: int) -> tuple[Lead, list[Step]]:
    """Run a program's beats."""
    master, golden_steps = steps(machine, name, seed)
    bench.reset()
    agent = Lead(bench, master, golden_steps, stall, seed)
    run(bench, agent)
    return agent, golden_steps


def compare(agent: Lead, golden_steps: list[Step], expected: list[list[int]], delays: dict[int, list[int]]) -> None:
    """Values bit for bit, each in the cycle that the header states: so many cycles after its sum, or its beat."""
    mask = (1 << facts.sum_bits(agent.master.machine)) - 1
    for got, ends, step, values in zip(agent.up, agent.ends, golden_steps, expected):
        assert [value for _, value in got] == [value & mask for value in values], step.instruction
        due = sorted(end + delay for end in ends for delay in delays.get(step.kind, []))
        assert {cycle for cycle, _ in got} <= set(due), step.instruction
    assert len(agent.up) == len(golden_steps)


@pytest.fixture(scope="module")
def alone():
    with Bench(slave(Library(32), FOUR)) as bench:
        yield bench


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", KINDS)
def test_a_slave_equals_golden(alone, name):
    """Each of the four in turn, with pauses of all lengths."""
    for number, stall in enumerate((0, 0.4, 0.8, 0.4)):
        alone["number"] = number
        agent, golden_steps = lead(alone, FOUR, name, stall, seed=number)
        delays = {facts.FORWARD: [facts.RESULT_AT + number], facts.BACKWARD: [facts.RESULT_AT], facts.STORE: [2]}
        compare(agent, golden_steps, [step.up[number] if step.up else [] for step in golden_steps], delays)


def tree_equals(machine: MachineParameters, names: list[str]) -> None:
    """Whole trees: what comes up is what golden's tree adds, before the root saturates it."""
    way = 2 * facts.tree_levels(machine)
    delays = {facts.BACKWARD: [way + facts.RESULT_AT], facts.STORE: [way + 2]}
    delays[facts.FORWARD] = [way + facts.RESULT_AT + k for k in range(machine.slaves)]
    with Bench(branch(Library(32), machine, facts.tree_levels(machine))) as bench:
        bench["number"] = 0
        for seed, name in enumerate(names):
            agent, golden_steps = lead(bench, machine, name, STALLS[seed % 3], seed)
            compare(agent, golden_steps, [total(step) for step in golden_steps], delays)


@pytest.mark.slow
@pytest.mark.parametrize("slaves", [2, 8])
def test_the_tree_copies_down_and_adds_up(slaves):
    tree_equals(MachineParameters(slaves=slaves), list(KINDS))


@pytest.mark.slow
def test_a_slave_of_other_widths():
    """Its latencies are those of any width; without a multiplier each product has a discrete operand."""
    machine = MachineParameters(slaves=2, form=WordFormat(12, 7), products="shifter", column_words=8)
    tree_equals(machine, ["words and codes", "codes alone, by chance"])
