"""Pool unit against numpy: OR over the taps of a window, word by word, the tuple memory a cycle behind the beat."""

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench
from .pool_units import PoolBeat, PoolUnitTests, beats_of

NPU = Npu.of(kfp=3, kgp=5, pfp=7, ol=2, pool_words=16)
LATENCY = 1 + 2
"""Cycles from the beat to the word at the output: one, and the FIFO's two."""


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit(Library(32), NPU)) as made:
        yield made


def windows(
    count: int, seed: int, words: int | None = None, taps: int | None = None
) -> tuple[list[PoolBeat], list[int]]:
    """(beats, words that must come out) of windows of 1 to 5 taps, tuples of 1 to 16 words."""
    rng = np.random.default_rng(seed)
    beats, out = [], []
    for window in range(count):
        n_taps, n_words = taps or int(rng.integers(1, 6)), words or int(rng.choice([1, 2, 5, 16]))
        tuples = rng.integers(0, 1 << present(NPU.pool_unit).pfp, (n_taps, n_words)) & rng.integers(
            0, 1 << present(NPU.pool_unit).pfp, (n_taps, n_words)
        )
        flags = [(int(k == n_words - 1), window % 3 // 2, window % 4 // 2) for k in range(n_words)]
        beats += beats_of(tuples.tolist(), flags)
        merged = np.bitwise_or.reduce(tuples, axis=0)  # (words)
        out += [
            int(m)
            | f[0] << present(NPU.pool_unit).pfp
            | f[1] << present(NPU.pool_unit).pfp + 1
            | f[2] << present(NPU.pool_unit).pfp + 2
            for m, f in zip(merged, flags)
        ]
    return beats, out


class TestBinaryPoolUnit(PoolUnitTests):
    npu = NPU
    windows = staticmethod(windows)
    count = 150
    latency = LATENCY
    inside = 6
