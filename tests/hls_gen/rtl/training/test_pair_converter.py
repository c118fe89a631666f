"""The converter with a multiplier against golden's: both pairs, both zones, draws where the decision changes."""

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.draws import GivenDraws
from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design.training import PAIR_CONVERTER_LATENCY
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.pair_converter import pair_converter
from tests.golden.discrete.machine.cases import TABLES
from tests.hls_gen.rtl.bench import Bench

from .tables import conversion
from .test_arithmetic import words

MACHINES = {
    "18.12": MachineParameters(form=WordFormat(18, 12), converter="multiplying"),
    "32.20": MachineParameters(form=WordFormat(32, 20), converter="multiplying"),
    "16.13": MachineParameters(form=WordFormat(16, 13), converter="multiplying"),
    "1 bit": MachineParameters(form=WordFormat(9, 5), code_bits=1, converter="multiplying"),
}


def near_words(form: WordFormat, table: CodeTable, count: int, rng) -> np.ndarray:
    """Words near the values of a table and half-way between two of them, in and beyond its zone, and of all sizes."""
    values = form.words(table.real)
    middles = (values[rng.integers(0, len(values), count)] + values[rng.integers(0, len(values), count)]) // 2
    near = middles + rng.integers(-3, 4, count)
    mixed = np.where(rng.integers(0, 2, count), near, words(form, count, 3))
    return form.saturate(np.where(rng.integers(0, 2, count), mixed, rng.integers(-3 * form.one, 3 * form.one, count)))


def convert(bench: Bench, form: WordFormat, values: np.ndarray, draws: np.ndarray, latency: int) -> list[int]:
    """Codes of words that follow one another, each in its cycle."""
    got = []
    cells = form.pack(values)
    count = len(values)
    for k in range(count + latency):
        if k >= latency:
            got.append(bench["code"])
        bench.set(word=int(cells[min(k, count - 1)]), draw=int(draws[min(k, count - 1)]))
        bench.tick()
    return got


MORE_TABLES = CodeTable((-2, 1)), CodeTable((0.5, 0.25))
DRAWS = [0, 1, 0x7FFF, 0x8000, 0xFFFF]


def rounding_of(case: str) -> dict[str, str]:
    """Rounding and pair of a case."""
    return {"rounding": "nearest"} if case == "nearest" else {"rounding": "stochastic", "pair": case.split()[-1]}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", ["nearest", "by chance of bracket", "by chance of nearest"])
def test_pair_converter(name, case):
    """Both pairs and both zones; half of the draws lie where the decision changes."""
    machine = MACHINES[name]
    form = machine.form
    count = 800
    how = rounding_of(case)
    rng = np.random.default_rng(6)
    with Bench(pair_converter(Library(32), machine)) as bench:
        for table in (*(table for table, _ in TABLES.values()), *MORE_TABLES):
            for zone in (1, 2):
                if table.bits > machine.code_bits or table.span > zone:
                    continue
                golden = Converter(table=table, zone=zone, **how)
                values = near_words(form, table, count, rng)
                draws = rng.choice([*DRAWS, *rng.integers(0, 1 << 16, 40)], count)
                if golden.draws:
                    draws[::2] = changes(golden, form, values[::2], rng)
                bench.set(**conversion(machine, table, golden.draws, pair=golden.pair, zone=zone))
                got = convert(bench, form, values, draws, PAIR_CONVERTER_LATENCY)
                assert got == golden.word_codes(form, values, GivenDraws(draws)).tolist(), (table, zone)


def changes(golden: Converter, form: WordFormat, values: np.ndarray, rng) -> np.ndarray:
    """Draws at which a word's code changes, or the draw before; found by halving."""
    low, high = np.zeros(len(values), np.int64), np.full(len(values), 1 << DRAW_BITS)
    first = golden.word_codes(form, values, GivenDraws(low))
    for _ in range(DRAW_BITS):
        middle = (low + high) // 2
        same = golden.word_codes(form, values, GivenDraws(middle)) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low + (rng.integers(0, 2, len(values)) & (low < (1 << DRAW_BITS) - 1))
