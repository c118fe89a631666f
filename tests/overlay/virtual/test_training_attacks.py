"""The training machine under damaged packets and programs, and random programs that meet in the neuron cache.

What golden's rules say of an attack is what the hardware says, and after a reset the next run is right.
"""

import random

import numpy as np
import pytest

from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.faults import FAULTS, MachineFault
from bitloom.golden.discrete.machine.instruction import Instruction, encode
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.headers import HEADER_WORDS, MAGIC, PROGRAM, RUN
from bitloom.hls_gen.design.training_packets import program_packet, run_packet
from bitloom.overlay.virtual.training_machine import SimulatedMachine

SMALL = MachineParameters(slaves=2)
EQUIPPED = MachineParameters(slaves=2, divider="words", converter="multiplying", root="table")
"""SMALL, EQUIPPED: as in test_training_machine.py, so that their models are compiled once."""
ECHO = assemble("IO LOAD_NEURONS d=0 rows=3\nIO STORE_NEURONS a=0 rows=3 last=1\nNOP END")
CODES = {rule.name: rule.code for rule in FAULTS}


@pytest.fixture(
    scope="module", params=[SMALL, pytest.param(EQUIPPED, marks=pytest.mark.slow)], ids=["small", "equipped"]
)
def hardware(request):
    with SimulatedMachine(request.param, ECHO) as machine:
        machine.simulation.check(probe_ready=True)
        yield machine


def echoes(hardware) -> None:
    """The machine is reset, and right again."""
    hardware.reset()
    hardware.write("IRQ_ENABLE", 6)
    hardware.load(ECHO)
    assert [words.tolist() for words in hardware.run([1, 2, 3])] == [[1, 2, 3]]


def verdict(words: list[int]) -> str | None:
    """The rule that a transfer of whole packets breaks, by the rules of docs/explanation/training-machine.md; None if
    it breaks none. A RUN is of ECHO, with data as they come."""
    while words:
        if len(words) < HEADER_WORDS:
            return "TRUNCATED"
        (head, first, length, check), words = words[:HEADER_WORDS], words[HEADER_WORDS:]
        if head >> 24 != MAGIC or head >> 4 & 0xFFFFF or check != ~(head ^ first ^ length) & 0xFFFFFFFF:
            return "BAD_HEADER"
        kind = head & 15
        rows = SMALL.instructions
        if kind not in (PROGRAM, RUN):
            return "BAD_PACKET"
        if first >= rows if kind == RUN else not length or first + length > rows:
            return "BAD_RANGE"
        payload = length * isa.WORDS if kind == PROGRAM else length
        if payload and not words:
            return "TRUNCATED"
        if kind == RUN and first != 0:
            return None  # not tried
        if kind == RUN and length < 3:
            return "NO_DATA" if len(words) >= length else "TRUNCATED"
        if kind == RUN and len(words) > 3 < length:
            return "DATA_LEFT"
        if len(words) < payload:
            return "TRUNCATED"
        words = words[payload:]
    return None


def attack(draw: random.Random) -> list[int]:
    """A transfer with one thing wrong, more or less."""
    kind = draw.choice(["bit", "cut", "length", "noise", "swap", "longer"])
    words = [int(w) for w in draw.choice([program_packet(ECHO), run_packet(np.array([7, 8, 9]))])]
    if kind == "bit":
        place = draw.randrange(HEADER_WORDS)
        words[place] ^= 1 << draw.randrange(32)
    elif kind == "cut":
        words = words[: draw.randrange(1, len(words))]
    elif kind == "length":
        words[2] = draw.choice([0, 1, 2, 4, 5, SMALL.instructions, 1 << 31])
        words[3] = ~(words[0] ^ words[1] ^ words[2]) & 0xFFFFFFFF
    elif kind == "noise":
        words = [draw.getrandbits(32) for _ in range(draw.randrange(1, 9))]
    elif kind == "swap":
        words[0] = words[0] & ~15 | draw.choice([0, 1, 2, 3, 6, 15])
        words[3] = ~(words[0] ^ words[1] ^ words[2]) & 0xFFFFFFFF
    else:
        words += [draw.getrandbits(32) for _ in range(draw.randrange(1, 9))]
    return words


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(4))
def test_damaged_packets(hardware, seed):
    """Each is refused with the code of the first rule that is broken, also with pauses, and the machine recovers."""
    draw = random.Random(seed)
    tried = set()
    for _ in range(40):
        words = attack(draw)
        rule = verdict(words)
        if rule is None:
            continue
        hardware.simulation.stall(source=draw.choice([0, 0.6]), seed=draw.randrange(99))
        hardware.write("IRQ_ENABLE", 2)  # errors alone: a good packet may end before a bad one
        hardware.simulation.send(np.array(words, np.uint32), last=True)
        hardware.simulation.run(None, "interrupt")
        hardware.simulation.run(max_cycles=200)  # whatever follows from the fault
        assert hardware.read("ERROR_CODE") == CODES[rule], (rule, [hex(word) for word in words])
        tried.add(rule)
        echoes(hardware)
    assert len(tried) >= 4


CLEAR = assemble("""
IO LOAD_NEURONS d=0 rows=1024
MOVE SCATTER a=0 columns=64
IO LOAD_WEIGHTS w=0 rows=1024 columns=2
IO LOAD_CODES w=0 rows=1024 columns=2
IO LOAD_GRADIENTS w=0 rows=1024 columns=2
NOP END""")


def empty(hardware) -> None:
    """Tables, constants and caches are as those of a new interpreter."""
    hardware.simulation.stall()
    hardware.reset()
    hardware.load(CLEAR)
    hardware.run(np.zeros(1024 + 3 * 2048, np.int64))


def damaged(draw: random.Random, machine: MachineParameters) -> list[Instruction]:
    """A program of which a bit is wrong; no jump is, since it may then run for ever."""
    lines = ["IO LOAD_NEURONS d=0 rows=3", "COMPUTE ADD a=0 b=0 d=64 rows=3", "MOVE SCATTER a=0 columns=3"]
    lines += [f"COMPUTE {what} a=0 w=0 rows=3 columns=3" for what in ("UPDATE", "ACCUMULATE")]
    lines += ["CONFIG RATE a=2", "COMPUTE APPLY w=0 rows=3 columns=3", "MOVE COPY a=64 d=0 rows=3"]
    lines += ["COMPUTE FORWARD a=0 w=0 d=32 rows=3 columns=3", "IO LOAD_PROGRAM d=40 rows=1"]
    if machine.divider == "words":
        lines[-1:-1] = ["COMPUTE DIVIDE a=32 b=64 d=64 rows=3"]
    if machine.root == "table":
        lines[-1:-1] = ["COMPUTE INVERSE_ROOT a=32 d=64 rows=3"]
    words = encode(assemble("\n".join(lines) + "\nIO STORE_NEURONS a=0 rows=3 last=1\nNOP END"))
    place = draw.randrange(isa.WORDS * len(lines))
    words[place] ^= np.uint32(1 << draw.randrange(32))
    return isa.decode(words)


def outcome(run, program: list[Instruction]):
    """Results, or name and place of the fault."""
    try:
        return [words.tolist() for words in run(program)]
    except MachineFault as error:
        return error.fault.name, error.place


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3)]])
def test_damaged_programs(hardware, seed):
    """The interpreter's results, or its fault at its place; caches keep what they have, so both begin with the same."""
    draw = random.Random(seed)
    kinds = set()
    data = [5, 6, 7, *encode(assemble("NOP WAIT")).tolist()]
    for _ in range(40):
        program = damaged(draw, hardware.machine)
        if any(i.operation == isa.JUMP for i in program):
            continue
        empty(hardware)

        def on_hardware(program):
            hardware.load(program)
            return hardware.run(data)

        expected = outcome(lambda program: Interpreter(hardware.machine, program).run(data), program)
        assert outcome(on_hardware, program) == expected, [str(i) for i in program]
        kinds.add(expected[0] if isinstance(expected, tuple) else "results")
    assert {"results", "BAD_INSTRUCTION", "BAD_ADDRESS"} <= kinds


PLACES = (0, 4, 8, 12, 40)
"""Addresses that are so near each other that spans of 1 to 20 words often meet."""


def meeting(draw: random.Random, count: int, machine: MachineParameters) -> tuple[list[Instruction], int]:
    """Instructions that read and write a few places of the neuron cache, and how many words they take."""
    lines = ["IO LOAD_NEURONS d=0 rows=64", "IO LOAD_WEIGHTS w=0 rows=20 columns=6"]
    words = 64 + 120
    while len(lines) < count:
        a, b, d = (draw.choice(PLACES) for _ in range(3))
        n = draw.randint(1, 20)
        slow = [(f"COMPUTE DIVIDE a={a} b={b} d={d} rows={n}", 0)] if machine.divider == "words" else []
        roots = [(f"COMPUTE INVERSE_ROOT a={a} d={d} rows={n}", 0)] if machine.root == "table" else []
        packets = [(f"IO LOAD_NEURONS d={d} rows={n}", n), (f"IO LOAD_PROGRAM d={100 + d % 8} rows={n}", 4 * n)]
        vectors = [f"COMPUTE ADD a={a} b={b} d={d}", f"COMPUTE RELU a={a} d={d}", f"MOVE COPY a={a} d={d}"]
        vectors = [f"IO STORE_NEURONS a={a} rows={n}", *(f"{text} rows={n}" for text in vectors)]
        matrices = [f"FORWARD a={a} w=0 d={d}", f"BACKWARD w=0 d={d}", f"UPDATE a={a} w=0", f"ACCUMULATE a={a} w=0"]
        matrices = [f"COMPUTE {text} rows={n} columns=6" for text in (*matrices, "APPLY w=0")]
        others = [(text, 0) for text in (*vectors, "MOVE SCATTER a=0 columns=6", *matrices)]
        line, needed = draw.choice([*slow, *roots, *packets, *others])
        (i,) = assemble(line)
        reads = [(i.a, n)] * ("a" in isa.USED[i.key]) + [(i.b, n)] * ("b" in isa.USED[i.key])
        writes = 6 if i.key == (isa.COMPUTE, isa.FORWARD) else n
        forward = i.key == (isa.COMPUTE, isa.FORWARD)
        if "d" in isa.USED[i.key] and any(
            i.d < at + size and at < i.d + writes and (forward or at != i.d) for at, size in reads
        ):
            continue  # results that overlap an operand elsewhere are a fault
        lines.append(line)
        words += needed
    return assemble("\n".join([*lines, "NOP WAIT", "IO STORE_NEURONS a=0 rows=64 last=1", "NOP END"])), words


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(10))
def test_programs_that_meet_in_the_neuron_cache(hardware, seed):
    """Reads after writes, writes after writes, writes after reads, of all units: as one instruction after the other."""
    draw = random.Random(seed)
    program, count = meeting(draw, 60, hardware.machine)
    data = np.random.default_rng(seed).integers(0, 1 << 18, count)
    expected = Interpreter(hardware.machine, program).run(data)
    empty(hardware)
    hardware.simulation.stall(source=draw.choice([0, 0.5]), sink=draw.choice([0, 0.5]), seed=seed)
    hardware.load(program)
    assert [words.tolist() for words in hardware.run(data)] == [words.tolist() for words in expected]
