"""Product and converter against golden: every kind of operand, each result in the cycle that the header states."""

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.draws import GivenDraws
from bitloom.golden.discrete.machine.configuration import Configuration
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design.training import CONVERTER_LATENCY, OPERAND_LATENCY, PRODUCT_LATENCY
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.converter import converter
from bitloom.hls_gen.rtl.training.product import product_unit
from tests.golden.discrete.machine.cases import CONVERTERS, TABLES
from tests.hls_gen.rtl.bench import Bench

from .tables import coded_as, conversion

MACHINES = {
    "18.12": MachineParameters(form=WordFormat(18, 12)),
    "32.20": MachineParameters(form=WordFormat(32, 20)),
    "no multiplier": MachineParameters(form=WordFormat(16, 10), products="shifter"),
    "1 bit": MachineParameters(form=WordFormat(9, 5), code_bits=1),
}


def words(form: WordFormat, count: int, seed: int) -> np.ndarray:
    """Random words of all sizes, with the ends and 0."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-form.largest, form.largest + 1, count) >> rng.integers(0, form.bits, count)
    values[:6] = 0, form.largest, -form.largest, 1, -1, form.one
    return rng.permutation(values)


@pytest.fixture(params=MACHINES)
def machine(request):
    return MACHINES[request.param]


def test_product(machine):
    form = machine.form
    count = 300
    tables = {k: converter for k, converter in CONVERTERS.items() if converter.table.bits <= machine.code_bits}
    configuration = Configuration(form, tables)
    kinds = [(left, right) for left in (0, *configuration.tables) for right in (0, *configuration.tables)]
    with Bench(product_unit(Library(32), machine)) as bench:
        for left, right in kinds:
            if not (machine.multiplier or left or right):
                continue
            cells = [form.pack(words(form, count, seed)) for seed in (left, 10 + right)]
            x, y = (configuration.operand(kind, cell) for kind, cell in zip((left, right), cells))
            expected = form.pack(configuration.product(x, y)).tolist()
            for name, kind in (("left", left), ("right", right)):
                bench.set(**coded_as(machine, configuration, name, kind))
            got, values = [], []
            for k in range(count + PRODUCT_LATENCY):
                if k >= PRODUCT_LATENCY:
                    got.append(bench["product"])
                if k >= OPERAND_LATENCY:
                    values.append(bench["left_value"])
                bench.set(left=int(cells[0][min(k, count - 1)]), right=int(cells[1][min(k, count - 1)]))
                bench.tick()
            assert got == expected, (left, right)
            if left:
                shown = configuration.tables[left].table.real[x.codes] * form.one
                assert values[:count] == form.pack(shown.astype(np.int64)).tolist()


@pytest.mark.parametrize("chance", [False, True])
def test_converter(machine, chance):
    form = machine.form
    count = 500
    rng = np.random.default_rng(5)
    tables = [*(table for table, _ in TABLES.values()), CodeTable((-2, 1)), CodeTable((0.5, 0.25))]
    with Bench(converter(Library(32), machine)) as bench:
        for table in tables:
            if table.bits > machine.code_bits:
                continue
            near = form.words(table.real)[rng.integers(0, len(table.values), count)] + rng.integers(-3, 4, count)
            values = np.where(rng.integers(0, 2, count), near, words(form, count, 3))
            values = np.where(rng.integers(0, 2, count), values, rng.integers(-3 * form.one, 3 * form.one, count))
            values = form.saturate(values)
            draws = rng.choice([0, 1, 0x7FFF, 0x8000, 0xFFFF, *rng.integers(0, 1 << 16, 40)], count)
            rounding = "stochastic" if chance else "nearest"
            golden = Converter(table=table, zone=2, rounding=rounding)
            expected = golden.word_codes(form, values, GivenDraws(draws)).tolist()
            bench.set(**conversion(machine, table, chance))
            got = []
            cells = form.pack(values)
            for k in range(count + CONVERTER_LATENCY):
                if k >= CONVERTER_LATENCY:
                    got.append(bench["code"])
                bench.set(word=int(cells[min(k, count - 1)]), draw=int(draws[min(k, count - 1)]))
                bench.tick()
            assert got == expected, table
