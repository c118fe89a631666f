"""Division against golden: by codes each cycle, by words a bit a cycle; small formats with all words."""

from itertools import product

import numpy as np
import pytest

from bitloom.golden.discrete.arithmetic import scale, word_of
from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.machine.configuration import Configuration
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.quotient import quotient_unit
from bitloom.hls_gen.rtl.training.word_divider import word_divider
from tests.golden.discrete.machine.cases import TABLES
from tests.hls_gen.rtl.bench import Bench

from .tables import coded_as
from .test_arithmetic import words

SMALL = WordFormat(6, 3), WordFormat(5, 0), WordFormat(6, 2)
"""All pairs of their words are divided."""
LARGE = WordFormat(18, 12), WordFormat(32, 20), WordFormat(9, 5), WordFormat(32, 0)


def cases(form: WordFormat) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors."""
    if form in SMALL:
        every = range(-form.largest, form.largest + 1)
        left, right = np.array(list(product(every, every))).T
        return left, right
    return words(form, 600, 1), words(form, 600, 2)


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", [*SMALL, *LARGE], ids=str)
def test_words_by_words(form):
    """Quotients that follow each other as closely as they may, and with pauses; noise at the operands meanwhile."""
    machine = MachineParameters(form=form, divider="words")
    left, right = cases(form)
    rng = np.random.default_rng(3)
    quotients, cycles = [], []
    with Bench(word_divider(Library(32), machine)) as bench:
        bench.reset()
        begins = []
        due = [(int(x), int(y)) for x, y in zip(form.pack(left), form.pack(right))][::-1]
        wait = 0
        for _ in range(len(due) * (facts.divider_cycles(machine) + 3)):
            go = bool(due) and wait <= 0
            x, y = due.pop() if go else rng.integers(0, 1 << form.bits, 2).tolist()
            bench.set(start=int(go), left=x, right=y)
            if go:
                begins.append(bench.cycle)
                wait = facts.divider_cycles(machine) + int(rng.integers(0, 5) * rng.integers(0, 2))
            wait -= 1
            bench.tick()
            if bench["done"]:
                quotients.append(bench["quotient"])
                cycles.append(bench.cycle)
            if len(quotients) == len(left):
                break
    assert quotients == form.pack(form.divide(left, right)).tolist()
    assert cycles == [begin + facts.divider_latency(machine) for begin in begins]


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", [WordFormat(6, 3), WordFormat(7, 4), *LARGE[:3]], ids=str)
def test_by_codes(form):
    """A word or a code by a code, each code of each table; all words of small formats."""
    machine = MachineParameters(form=form)
    held = [k for k, (table, _) in TABLES.items() if (table.places <= form.fraction).all()]
    configuration = Configuration(form, {k: Converter(table=TABLES[k][0], zone=TABLES[k][1]) for k in held})
    small = form.bits <= 7
    with Bench(quotient_unit(Library(32), machine)) as bench:
        for left, right in product((0, *configuration.tables), configuration.tables):
            codes = np.arange(len(configuration.tables[right].table.values))
            cells = np.arange(1 << form.bits) if small else form.pack(words(form, 200, left))
            pairs = np.array(list(product(cells, codes)))
            x, y = configuration.operand(left, pairs[:, 0]), configuration.discrete(right, pairs[:, 1])
            expected = form.pack(scale(form, word_of(form, x), y, -1)).tolist()
            for name, kind in (("left", left), ("right", right)):
                bench.set(**coded_as(machine, configuration, name, kind))
            got = []
            for k in range(len(pairs) + facts.PRODUCT_LATENCY):
                if k >= facts.PRODUCT_LATENCY:
                    got.append(bench["quotient"])
                cell, code = pairs[min(k, len(pairs) - 1)].tolist()
                bench.set(left=cell, right=code)
                bench.tick()
            assert got == expected, (left, right)
