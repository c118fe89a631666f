"""Integer pool unit against golden: maximum and average, word by word, chosen per window."""

import numpy as np
import pytest

from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.hls_gen.compiler.rows.pool_unit import reciprocals
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.pool_unit import POOLS, PRODUCTS
from bitloom.hls_gen.design.timing import DIVIDE_LATENCY, tap_stages
from bitloom.hls_gen.rtl.pool_unit.arithmetic import MERGES
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench, load
from .pool_units import PoolBeat, PoolUnitTests, beats_of, marks_of, packed, side_of

NPU = Npu.of(
    engine="integer", feature_bits=6, weight_bits=4, shift_bits=0, acc_bits=16, kgp=5, pfp=3, ol=2, pool_words=16
)
LATENCY = 1 + tap_stages(NPU) + DIVIDE_LATENCY + 2
"""Cycles from the beat to the word at the output: one, the divider's, and the FIFO's two."""
BITS = NPU.array.feature_bits
LOW = -(1 << BITS - 1)
HIGH = (1 << BITS - 1) - 1


def test_each_merge_of_the_table_is_one_of_hardware():
    assert MERGES.keys() == {reduction.merge for reduction in (*POOLS, PRODUCTS) if reduction.merge}


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit(Library(32), NPU)) as bench:
        memory = memory_of(NPU, "reciprocals")
        load(bench, memory, 0, reciprocals(NPU.reciprocal_bits).tolist())
        yield bench


def windows(
    count: int, seed: int, words: int | None = None, taps: int | None = None
) -> tuple[list[PoolBeat], list[int]]:
    """(beats, words that must come out) of windows of 1 to 127 taps, tuples of 1 to 16 words."""
    rng = np.random.default_rng(seed)
    beats, out = [], []
    for window in range(count):
        n_taps = taps or int(rng.choice([1, 2, 3, 4, 5, 6, 9, 25, 81, 127]))
        n_words = words or int(rng.choice([1, 2, 5, 16]))
        average = bool(rng.integers(0, 2))
        shape = (n_taps, n_words, present(NPU.pool_unit).pfp)
        tuples = rng.choice([LOW, HIGH], shape) if rng.random() < 0.2 else rng.integers(LOW, HIGH + 1, shape)
        if rng.random() < 0.2:
            tuples[:] = rng.choice([LOW, -1, HIGH])
        marks = marks_of(n_words, window)
        words_of_taps = [[packed(word, BITS) for word in tap] for tap in tuples]
        beats += beats_of(
            words_of_taps, marks, lambda tap, _, average=average: {"taps": tap + 1, "average": int(average)}
        )
        result = rounded_quotient(tuples.sum(axis=0), np.array(n_taps)) if average else tuples.max(axis=0)
        out += [packed(word, BITS) | side_of(mark) << NPU.pool_word_bits for word, mark in zip(result, marks)]
    return beats, out


class TestIntegerPoolUnit(PoolUnitTests):
    npu = NPU
    windows = staticmethod(windows)
    count = 60
    latency = LATENCY
    inside = 9
