"""Operations of codes by other means than shifts, against golden: a table in LUT RAM; sums plane by plane of bits."""

from itertools import product

import numpy as np
import pytest

from bitloom.golden.discrete.arithmetic import look_up_table
from bitloom.golden.discrete.dot import bit_serial_dot, dot
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.operand import Continuous, Discrete
from bitloom.golden.discrete.table import THREE_BITS, TWO_BITS, CodeTable
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.corner_turn import corner_turn
from bitloom.hls_gen.rtl.training.product_table import product_table
from bitloom.hls_gen.rtl.training.serial_dot import serial_dot
from tests.hls_gen.rtl.bench import Bench

from .test_arithmetic import words

FORM = WordFormat(18, 12)
CODES = {1: CodeTable((0.25, -0.25)), 2: TWO_BITS, 3: THREE_BITS}


@pytest.mark.parametrize("code_bits", CODES)
def test_table(code_bits):
    """All pairs of codes of all tables and operations, while the rows of the table before are still being read."""
    machine = MachineParameters(form=FORM, code_bits=code_bits)
    rows = np.arange(2 << 2 * code_bits)
    tables = list(CODES.values())[:code_bits]
    latency = facts.PRODUCT_LATENCY
    rng = np.random.default_rng(0)
    contents = [None] * len(rows)
    with Bench(product_table(Library(32), machine)) as bench:
        for name, a, b in product("+-*/", tables, tables):
            left, right = (rows >> code_bits) % len(a.values), rows % len(b.values)
            new = FORM.pack(look_up_table(name, a, b, FORM)[left, right]).tolist()
            order = rng.permutation(len(rows)).tolist()
            reads = [*rng.integers(0, len(rows), len(rows)).tolist(), *range(len(rows)), *[0] * latency]
            for k, row in enumerate(reads):
                expected = contents[reads[k - latency + 1]] if k >= latency - 1 else None
                bench.set(part=row >> 2 * code_bits, left=(row >> code_bits) % (1 << code_bits))
                bench.set(right=row % (1 << code_bits), write=int(k < len(rows)))
                if k < len(rows):
                    bench.set(write_row=order[k], write_data=new[order[k]])
                    contents[order[k]] = new[order[k]]
                bench.tick()
                assert expected is None or bench["product"] == expected, (name, a, b, row)
            assert contents == new


def planes_of(form: WordFormat, group: np.ndarray) -> list[int]:
    """Planes of a group of words, signs first, then the high bits of magnitudes."""
    cells = form.pack(group)
    return [sum((int(cell) >> k & 1) << lane for lane, cell in enumerate(cells)) for k in reversed(range(form.bits))]


def passes(form: WordFormat, table: CodeTable, codes: np.ndarray, x: np.ndarray, lanes: int):
    """Planes of a sum, with all that goes with them: dictionaries of inputs."""
    groups = [slice(k, k + lanes) for k in range(0, len(x), lanes)]
    every = [(group, int(k)) for group in groups for k in np.unique(table.places[codes[group]])]
    for number, (group, places) in enumerate(every):
        chosen = codes[group]
        minus = sum(int(sign < 0) << lane for lane, sign in enumerate(table.signs[chosen]))
        used = sum(int(k == places) << lane for lane, k in enumerate(table.places[chosen]))
        planes = planes_of(form, x[group])[: form.bits - places]
        for k, plane in enumerate(planes):
            final = k == len(planes) - 1
            marks = {"signs": k == 0, "lowest": final, "first": final and number == 0}
            marks["last"] = final and number == len(every) - 1
            yield {"plane": plane, "minus": minus, "used": used, **{name: int(mark) for name, mark in marks.items()}}


def serial_sums(bench: Bench, sums: list, stall: float, seed: int, bits: int) -> list[int]:
    """Sums of planes, with pauses and noise in them; each in the cycle that the header states."""
    rng = np.random.default_rng(seed)
    got, due = [], []
    for step in [step for planes in sums for step in planes]:
        while rng.random() < stall:
            bench.set(valid=0, **{name: int(rng.integers(0, 1 << bench.widths[name])) for name in step})
            _look(bench, got)
            bench.tick()
        bench.set(valid=1, **step)
        _look(bench, got)
        if step["last"]:
            due.append(bench.cycle + facts.SERIAL_DOT_LATENCY)
        bench.tick()
    bench.set(valid=0)
    for _ in range(facts.SERIAL_DOT_LATENCY + 1):
        _look(bench, got)
        bench.tick()
    assert [cycle for cycle, _ in got] == due
    return [value - (value >> bits - 1 << bits) for _, value in got]


def _look(bench: Bench, got: list) -> None:
    if bench["done"]:
        got.append((bench.cycle, bench["sum"]))


LANES = 1, 3, 18


@pytest.fixture(scope="module", params=LANES)
def serial(request):
    machine = MachineParameters(form=FORM)
    with Bench(serial_dot(Library(32), machine, request.param)) as bench:
        bench.reset()
        yield bench, machine, request.param


@pytest.mark.sample(5)
@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize(
    "table", [*CODES.values(), CodeTable((1, -1)), CodeTable((0.5, 2**-12, -1, -(2**-5)))], ids=str
)
def test_sums_of_planes(serial, table, stall):
    """Vectors of all lengths, among them no multiple of the lanes, with words of all sizes."""
    bench, machine, lanes = serial
    rng = np.random.default_rng(len(table.values))
    vectors = [
        (rng.integers(0, len(table.values), n), words(FORM, max(n, 6), n)[:n]) for n in (1, 2, 3, 18, 19, 40, 64)
    ]
    got = serial_sums(bench, [passes(FORM, table, *v, lanes) for v in vectors], stall, 1, facts.sum_bits(machine))
    assert [int(FORM.saturate(np.array(total))) for total in got] == [
        int(dot(FORM, Discrete(codes[None], table), Continuous(x))[0]) for codes, x in vectors
    ]
    if set(table.values) == {1.0, -1.0}:
        minus = [(table.signs[codes] < 0).astype(np.int64) for codes, _ in vectors]
        assert got == [int(bit_serial_dot(x, m, FORM.bits)) for m, (_, x) in zip(minus, vectors)]


@pytest.mark.slow
def test_every_code_and_word():
    """All codes of three lanes with all words of a small format."""
    form = WordFormat(4, 1)
    lanes = 3
    machine = MachineParameters(form=form)
    table = CodeTable((0.5, -0.5))
    every = np.array(list(product(range(-form.largest, form.largest + 1), repeat=lanes)))
    vectors = [(np.array(codes), x) for codes in product((0, 1), repeat=lanes) for x in every]
    with Bench(serial_dot(Library(32), machine, lanes)) as bench:
        bench.reset()
        planes = [passes(form, table, *vector, lanes) for vector in vectors]
        got = serial_sums(bench, planes, 0, 2, facts.sum_bits(machine))
    assert got == [int((form.shift(x, 1) * table.signs[codes]).sum()) for codes, x in vectors]


@pytest.mark.parametrize("form", [FORM, WordFormat(5, 1)], ids=str)
@pytest.mark.parametrize("stall", [0, 0.5])
def test_corner_turn(form, stall):
    machine = MachineParameters(form=form)
    rng = np.random.default_rng(4)
    groups = form.unpack(rng.integers(0, 1 << form.bits, (7, form.bits)))
    expected = [plane for group in groups for plane in planes_of(form, group)]
    got = []
    with Bench(corner_turn(Library(32), machine)) as bench:
        bench.reset()
        for k, cell in enumerate([*form.pack(groups).reshape(-1), *[0] * form.bits]):
            while rng.random() < stall:
                bench.set(valid=0, word=int(rng.integers(0, 1 << form.bits)))
                bench.tick()
            bench.set(valid=1, word=int(cell))
            if k >= form.bits:
                got.append(bench["plane"])
                assert (bench["signs"], bench["lowest"]) == (k % form.bits == 0, k % form.bits == form.bits - 1)
            bench.tick()
    assert got == expected
