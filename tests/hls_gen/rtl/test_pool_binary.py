"""Pool unit against numpy: OR over the taps of a window, word by word, the tuple memory a cycle behind the beat."""

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench
from .pool_units import PoolBeat, PoolUnitTests, beats_of, marks_of, side_of

PFP = 7
NPU = Npu.of(kfp=3, kgp=5, pfp=PFP, ol=2, pool_words=16)
LATENCY = 1 + 2
"""Cycles from the beat to the word at the output: one, and the FIFO's two."""


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit(Library(32), NPU)) as bench:
        yield bench


def windows(
    count: int, seed: int, words: int | None = None, taps: int | None = None
) -> tuple[list[PoolBeat], list[int]]:
    """(beats, words that must come out) of windows of 1 to 5 taps, tuples of 1 to 16 words."""
    rng = np.random.default_rng(seed)
    beats, out = [], []
    for window in range(count):
        n_taps, n_words = taps or int(rng.integers(1, 6)), words or int(rng.choice([1, 2, 5, 16]))
        tuples = np.bitwise_and(*rng.integers(0, 1 << PFP, (2, n_taps, n_words)))
        marks = marks_of(n_words, window)
        beats += beats_of(tuples.tolist(), marks)
        merged = np.bitwise_or.reduce(tuples, axis=0)  # (words)
        out += [int(word) | side_of(mark) << PFP for word, mark in zip(merged, marks)]
    return beats, out


class TestBinaryPoolUnit(PoolUnitTests):
    npu = NPU
    windows = staticmethod(windows)
    count = 150
    latency = LATENCY
    inside = 6
