"""Integer pool unit against golden: maximum and average, word by word, chosen per window."""

import numpy as np
import pytest

from bitloom.hls_gen.compiler.rows.pool_unit import reciprocals
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.pool_unit import POOLS, PRODUCTS
from bitloom.hls_gen.rtl.pool_unit.arithmetic import MERGES
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.npus import integer_npu

from .bench import Bench, load
from .pool_units import FOLDINGS, PoolWindow, Taps, check_pool_unit, packed

NPUS = {name: integer_npu(6, 4, 16, kgp=5, ol=2, pool_words=16, **folding) for name, folding in FOLDINGS.items()}
BITS = 6
LOW = -(1 << BITS - 1)
HIGH = (1 << BITS - 1) - 1


def test_each_merge_of_the_table_is_one_of_hardware():
    assert MERGES.keys() == {reduction.merge for reduction in (*POOLS, PRODUCTS) if reduction.merge}


def window(rng: np.random.Generator, npu: Npu, beats: int | None, words: int) -> PoolWindow:
    """A window of 1 to 127 beats of each word."""
    pool = POOLS[rng.integers(0, len(POOLS))]
    beside = pool.beside.value(BITS) if pool.beside else 0
    beats = beats or int(rng.choice([1, 2, 3, 4, 5, 6, 9, 25, 81, 127]))
    low, high = (int(rng.choice([LOW, -1, HIGH])),) * 2 if rng.random() < 0.2 else (LOW, HIGH)
    taps = Taps(rng, npu, (beats, words), pool, low=low, high=high, beside=beside)
    marks = {each.mark: int(each is pool) for each in POOLS if each.mark} | taps.ports(npu)
    out = [packed(word, BITS) for word in taps.reduced(pool.layer)]
    return PoolWindow(words=taps.words(BITS), ports=lambda beat, word: {"taps": beat + 1, **marks}, out=out)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NPUS)
def test_integer_pool_unit(name: str) -> None:
    npu = NPUS[name]
    with Bench(pool_unit(Library(32), npu)) as bench:
        load(bench, memory_of(npu, "reciprocals"), 0, reciprocals(npu.reciprocal_bits).tolist())
        check_pool_unit(bench, npu, window, 60)
