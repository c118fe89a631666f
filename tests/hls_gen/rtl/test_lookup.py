"""Lookup of a lane against golden: any features, tables and pauses."""

import random

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.lookup import Lookup
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import LOOKUP
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.results.lookup import lookup
from tests.npus import integer_npu

from .bench import Bench, load

LATENCY = 2
"""Moves from a feature to its result."""


def npu(feature_bits: int, tables: int) -> Npu:
    return integer_npu(feature_bits, 2, 24, kfp=2, kgp=4, lookup_rows=256 * tables)


NPUS = {"f8_1": npu(8, 1), "f9_3": npu(9, 3), "f5_2": npu(5, 2), "f12_1": npu(12, 1)}


@pytest.fixture(scope="module", params=NPUS)
def built(request):
    with Bench(lookup(Library(32), NPUS[request.param])) as bench:
        yield bench, NPUS[request.param]


@pytest.mark.sample(4)
@pytest.mark.parametrize("pauses", [0.0, 0.5])
def test_equals_golden(built, pauses):
    bench, one = built
    assert len(LOOKUP.stages) == LATENCY
    draw = random.Random(1)
    w = one.value_bits
    ends = signed(w)
    entries = [draw.randrange(ends.low, ends.high + 1) for _ in range(one.results.lookup_rows)]
    load(bench, memory_of(one, "lookups"), 0, [entry & (1 << w) - 1 for entry in entries])
    layer = Lookup(name="table", encoding=signed(min(w, 9)))
    source = Map(height=1, width=1, channels=1, encoding=signed(min(w, 9)))
    wanted: list[int] = []
    before = 0
    for _ in range(2000):
        feature = draw.randrange(ends.low, ends.high + 1)
        table = draw.randrange(one.results.lookup_rows // 256)
        looks_up = draw.getrandbits(1)
        move = int(draw.random() >= pauses)
        bench.set(move=move, feature=feature & (1 << w) - 1, looks_up=before)
        if "table_number" in bench:
            bench["table_number"] = table
        bench.tick()
        if not move:
            continue
        part = np.array(entries[256 * table : 256 * table + 256])
        entry = int(layer.forward(np.array(feature).reshape(1, 1, 1, 1), {"entries": part}, source)[0, 0, 0, 0])
        wanted.append(entry if looks_up else feature)
        before = looks_up
        if len(wanted) >= LATENCY:
            assert bench["result"] == wanted[-LATENCY] & (1 << w) - 1
