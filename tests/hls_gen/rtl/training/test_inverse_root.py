"""Inverse roots against golden: a word each cycle, all words of small formats, of large ones those at the ends of each
entry of the table."""

import numpy as np
import pytest

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.hls_gen.design.training import ROOT_LATENCY
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.training.inverse_root import inverse_root
from tests.hls_gen.rtl.bench import Bench

FORMS = [
    *(WordFormat(4, 1), WordFormat(6, 3), WordFormat(7, 0), WordFormat(10, 7)),
    *(WordFormat(18, 12), WordFormat(18, 13), WordFormat(32, 20), WordFormat(32, 0)),
]


def words(form: WordFormat) -> np.ndarray:
    if form.bits <= 10:
        return np.arange(-form.largest, form.largest + 1)
    ends = [0]
    for place in range(form.bits - 1):
        step = max(1, 1 << place >> 3)
        for entry in range(8):
            ends += [(1 << place) + entry * step, (1 << place) + (entry + 1) * step - 1]
    sizes = np.array([end for end in ends if end <= form.largest])
    return np.random.default_rng(1).permutation(np.concatenate([sizes, -sizes]))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_roots(form):
    cells = form.pack(words(form)).tolist()
    expected = form.inverse_root(words(form)).tolist()
    got = []
    with Bench(inverse_root(Library(32), MachineParameters(form=form, root="table"))) as bench:
        for k in range(len(cells) + ROOT_LATENCY):
            if k >= ROOT_LATENCY:
                got.append(bench["root"])
            bench.set(word=cells[min(k, len(cells) - 1)])
            bench.tick()
    assert got == expected
