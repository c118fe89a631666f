"""Beats between the array and the slaves about an instruction, worked out from golden's instructions.

Beats of a group follow one another without a pause: those of a sum, and of FORWARD as many as there are slaves, since
these give their sums one after the other. Between groups there may be pauses.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.discrete.converter import PAIRS
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.draws import matrix_draws
from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.golden.discrete.machine.master import Master
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design import training as facts
from tests.golden.discrete.machine.cases import CONVERTERS

from .tables import coded_as, conversion

KINDS = {
    "words": {},
    "words and codes": {"kind_a": 2, "kind_b": 3},
    "codes alone, by chance": {"kind_a": 2, "kind_b": 1, "kind_w": 3, "kind_d": 2, "chance_d": 1, "chance_w": 1},
    "codes with a master": {"kind_w": 2, "kind_d": 1, "master": 1},
    "codes with a master, by chance": {"kind_a": 3, "kind_w": 1, "chance_w": 1, "master": 1},
}
"""Fields of an instruction that say what is discrete."""
SHAPES = (5, 7), (1, 4), (6, 1)
"""Rows and columns of layers: slaves without a column, columns that are no multiple, fewer rows than slaves."""
READS = {
    facts.SCATTER: ("column", "slave", "data"),
    facts.FORWARD: ("row", "slave", "first", "last", "data"),
    facts.BACKWARD: ("row", "column", "slave", "first", "last"),
    facts.LEARN: ("row", "column", "slave", "data"),
    facts.LOAD: ("row", "slave", "data"),
    facts.STORE: ("row", "slave"),
}
"""Parts of a beat that a slave looks at, by kind; LEARN besides those draws that its conversions need."""


@dataclass
class Step:
    """An instruction of the array with all that it makes in golden.

    Attributes
    ----------
    instruction : Instruction
    kind : int
        Of its beats.
    groups : list of list of dict
        Its beats, by name of their parts; draws that are not used are left out.
    up : list of list of int
        What each slave gives, in order: sums, or stored words.
    results : list of int
        What goes to the neuron cache, or outside.
    words : list of int
        What LOAD takes from outside.
    """

    instruction: Instruction
    kind: int
    groups: list[list[dict[str, int]]]
    up: list[list[int]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)


def beat_kind(i: Instruction) -> int:
    """As the controller says it."""
    if i.operation == isa.MOVE:
        return facts.SCATTER
    if i.operation == isa.IO:
        return facts.STORE if i.function >= isa.STORE_NEURONS else facts.LOAD
    return {isa.FORWARD: facts.FORWARD, isa.BACKWARD: facts.BACKWARD}.get(i.function, facts.LEARN)


def layout(machine: MachineParameters, i: Instruction) -> tuple[int, int]:
    """Columns of a slave; slave of the last column."""
    return machine.columns_each(i.columns), (i.columns - 1) % machine.slaves


def groups_of(
    machine: MachineParameters, i: Instruction, data: list[int], draws: list[dict[str, int]]
) -> list[list[dict[str, int]]]:
    """Beats of an instruction.

    data : what goes with each row (FORWARD, LEARN), or with each beat (SCATTER, LOAD).
    draws : numbers of the generator for each row of LEARN.
    """
    kind = beat_kind(i)
    each, last_slave = layout(machine, i)
    rows = 1 if kind == facts.SCATTER else i.rows

    def beat(j: int, c: int, **more: int) -> dict[str, int]:
        last = last_slave if c == each - 1 else machine.slaves - 1
        return {"kind": kind, "row": i.w + j * each + c, "column": c, "slave": last, "first": 0, "last": 0, **more}

    if kind == facts.FORWARD:
        pauses = [{"kind": facts.NONE, "last": 0}] * (machine.slaves - rows)
        sums = [[beat(j, c, first=j == 0, last=j == rows - 1, data=data[j]) for j in range(rows)] for c in range(each)]
        return [beats + pauses for beats in sums]
    if kind == facts.BACKWARD:
        return [[beat(j, c, first=c == 0, last=c == each - 1) for c in range(each)] for j in range(rows)]
    if kind == facts.LEARN:
        return [[beat(j, c, data=data[j], **draws[j])] for j in range(rows) for c in range(each)]
    given = iter(data)
    owners = [(j, c, k) for j in range(rows) for c in range(each) for k in range(beat(j, c)["slave"] + 1)]
    return [[beat(j, c, slave=k, data=0 if kind == facts.STORE else next(given))] for j, c, k in owners]


def settings_of(machine: MachineParameters, master: Master, i: Instruction) -> dict[str, int]:
    """Settings of the slaves while they work on an instruction."""
    backward, learn = (beat_kind(i) == kind for kind in (facts.BACKWARD, facts.LEARN))
    s = master.configuration
    settings = coded_as(machine, s, "left", i.kind_b if backward else i.kind_a)
    settings |= coded_as(machine, s, "right", i.kind_b if learn else i.kind_w)
    for name, kind, chance, pair in (("w", i.kind_w, i.chance_w, i.pair_w), ("d", i.kind_d, i.chance_d, i.pair_d)):
        settings |= coded_as(machine, s, name, kind)
        if kind:
            table = s.tables[kind]
            settings |= conversion(machine, table.table, bool(chance), f"{name}_", pair=PAIRS[pair], zone=table.zone)
    accumulates, applies = (i.key == (isa.COMPUTE, function) for function in (isa.ACCUMULATE, isa.APPLY))
    mu = s.mu_places
    return {
        **settings,
        "w_zone": s.tables[i.kind_w].zone if i.kind_w else 0,
        "master": i.master,
        "accumulates": int(accumulates),
        "applies": int(applies),
        "rate": s.rate_places,
        "mu": 0 if accumulates or mu is None else mu,
        "mu_on": int(mu is not None or accumulates or applies),
        "cache": i.function & 3 if i.operation == isa.IO else 0,
    }


def execute(master: Master, i: Instruction, rng: random.Random) -> Step:
    """Golden executes an instruction; the step that hardware must do."""
    machine = master.machine
    kind = beat_kind(i)
    draws: list[dict[str, int]] = [{} for _ in range(i.rows)]
    data: list[int] = []
    if kind == facts.SCATTER:
        data = master.neurons[i.a : i.a + i.columns].tolist()
        master.move(i)
        return Step(i, kind, groups_of(machine, i, data, draws))
    if kind in (facts.LOAD, facts.STORE):
        return _passed(master, i, kind, rng)
    data = master.neurons[i.a : i.a + i.rows].tolist()
    up: list[list[int]] = [[] for _ in master.slaves]
    results: list[int] = []
    if kind == facts.LEARN:
        state = master.generator.state
        for name, drawn in zip(("draw_d", "draw_w"), matrix_draws(master.generator, i)):
            for j in range(i.rows) if drawn is not None else ():
                draws[j][name] = int(drawn[0, j])  # neuron 0 takes the number as it is
        master.generator.state = state
        master.compute(i)
    else:
        forward = kind == facts.FORWARD
        parts = [s.forward(i, master._x(i)) if forward else s.backward(i) for s in master.slaves]
        up = [part.tolist() for part in parts]
        master.compute(i)
        results = master.neurons[i.d : i.d + (i.columns if forward else i.rows)].tolist()
    return Step(i, kind, groups_of(machine, i, data, draws), up, results)


def _passed(master: Master, i: Instruction, kind: int, rng: random.Random) -> Step:
    """LOAD and STORE."""
    machine = master.machine
    form = master.machine.form
    number = i.function & 3
    caches = [{1: s.weights, 2: s.codes, 3: s.gradients}[number] for s in master.slaves]
    shape = i.rows, i.columns
    if kind == facts.LOAD:
        most = (1 << machine.code_bits) - 1 if number == 2 else 3 * form.one
        cells = np.array([rng.randint(0 if number == 2 else -most, most) for _ in range(i.rows * i.columns)])
        for s, cache in zip(master.slaves, caches):
            s.block(cache, i)[:] = cells.reshape(shape)[:, s.column_numbers(i.columns)]
        words = (cells if number == 2 else form.pack(cells)).tolist()
        return Step(i, kind, groups_of(machine, i, words, []), words=words)
    cells = np.zeros(shape, np.int64)
    up = []
    for s, cache in zip(master.slaves, caches):
        own = s.block(cache, i)
        cells[:, s.column_numbers(i.columns)] = own
        up.append((own if number == 2 else form.pack(own)).reshape(-1).tolist())
    words = (cells if number == 2 else form.pack(cells)).reshape(-1).tolist()
    return Step(i, kind, groups_of(machine, i, [], []), up, words)


def total(step: Step) -> list[int]:
    """Words that come up the whole tree: one slave after the other, but for BACKWARD's sums over all."""
    if step.kind == facts.BACKWARD:
        return np.sum(step.up, axis=0).tolist()
    each = max(map(len, step.up), default=0)
    if step.kind == facts.FORWARD:
        return [part[c] for c in range(each) for part in step.up if c < len(part)]
    return step.results


def steps(
    machine: MachineParameters, name: str, seed: int, shapes: Sequence[tuple[int, int]] = SHAPES
) -> tuple[Master, list[Step]]:
    """Random weights, forward, backward, update and all caches at the end, for layers of ``shapes``."""
    rng = random.Random(seed)
    master = Master(machine)
    usable = {k: converter for k, converter in CONVERTERS.items() if converter.table.bits <= machine.code_bits}
    master.configuration.tables.update(usable)
    master.configuration.rate_places, master.configuration.mu_places = 2, 1
    numbers = np.random.default_rng(seed)
    words = numbers.integers(-2 * machine.form.one, 2 * machine.form.one, machine.neuron_words)
    master.neurons[:] = machine.form.pack(words * (numbers.random(len(words)) < 0.9))
    programs = [_program(KINDS[name], rng.randrange(50), *shape) for shape in shapes]
    return master, [execute(master, i, rng) for program in programs for i in program]


def _program(kinds: dict[str, int], w: int, rows: int, columns: int) -> list[Instruction]:
    """All that the array does for a layer whose weights are from row w on."""
    at = {"w": w, "rows": rows, "columns": columns}
    forward, backward = ({n: k for n, k in kinds.items() if n in (f"kind_{of}", "kind_w")} for of in "ab")
    return [
        *[Instruction(operation=isa.IO, function=isa.LOAD_WEIGHTS + k, **at) for k in range(3)],
        Instruction(operation=isa.MOVE, function=isa.SCATTER, a=700, columns=columns),
        Instruction(operation=isa.COMPUTE, function=isa.FORWARD, a=10, d=400, **at, **forward),
        Instruction(operation=isa.COMPUTE, function=isa.BACKWARD, d=500, **at, **backward),
        *[
            Instruction(operation=isa.COMPUTE, function=function, a=30, **at, **kinds)
            for function in (isa.UPDATE, isa.ACCUMULATE, isa.APPLY)
        ],
        Instruction(operation=isa.COMPUTE, function=isa.FORWARD, a=60, d=600, **at, **forward),
        *[Instruction(operation=isa.IO, function=isa.STORE_WEIGHTS + k, last=1, **at) for k in range(3)],
    ]
