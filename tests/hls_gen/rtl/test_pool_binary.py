"""Pool unit against numpy: OR over the taps of a window, word by word, the tuple memory a cycle behind the beat."""

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench, Sink, run
from .pool_units import PoolBeat, PoolSequencer, beats_of, check_a_closed_output, check_rate_and_latency

NPU = Npu.of(kfp=3, kgp=5, pfp=7, ol=2, pool_words=16)
LATENCY = 1 + 2
"""Cycles from the beat to the word at the output: one, and the FIFO's two."""


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit(Library(32), NPU)) as made:
        yield made


@pytest.fixture
def bench(built):
    built.reset()
    return built


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


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)])
def test_equals_numpy(bench, stall_in, stall_out):
    beats, expected = windows(150, 1)
    sink = Sink(bench, "out_", expect=len(expected), stall=stall_out)
    run(bench, PoolSequencer(bench, NPU, beats, stall=stall_in), sink)
    assert sink.values == expected


@pytest.mark.parametrize("words", [1, 3])
def test_rate_and_latency(bench, words):
    """Also of tuples of one word, whose row of the queue must be there in the next cycle."""
    beats, expected = windows(40, 3, words=words)
    check_rate_and_latency(bench, PoolSequencer(bench, NPU, beats), expected, LATENCY)


def test_nothing_is_lost_when_the_output_stalls(bench):
    beats, expected = windows(60, 4, words=2, taps=1)
    check_a_closed_output(bench, PoolSequencer(bench, NPU, beats), expected, 6)
