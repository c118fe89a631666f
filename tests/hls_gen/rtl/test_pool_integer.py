"""Integer pool unit against golden: maximum and average, word by word, chosen per window."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from bitloom.golden.layers.pool import rounded_quotient
from bitloom.hls_gen.compiler.integer_rows import reciprocals
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import DIVIDE_LATENCY, pool_fifo_words
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.pool.pool_integer import pool_unit_integer
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Agent, Bench, Sink, load, run, steady

NPU = Npu(engine="integer", feature_bits=6, weight_bits=4, shift_bits=0, acc_bits=16, kgp=5, pfp=3, ol=2, pool_words=16)
LATENCY = 1 + DIVIDE_LATENCY + 2
"""Cycles from the beat to the word at the output: one, the divider's, and the FIFO's two."""
LOW, HIGH = -(1 << NPU.feature_bits - 1), (1 << NPU.feature_bits - 1) - 1


@dataclass(frozen=True)
class Beat:
    """One cycle's input; ``word`` comes a cycle later. taps : valid taps of the window up to this one."""

    word: int
    index: int
    taps: int
    first: bool
    last: bool
    average: bool
    flags: tuple[int, int, int]


class Sequencer(Agent):
    """Gives beats as the pool sequencer does: one of a last tap only if there is room."""

    def __init__(self, bench: Bench, beats: list[Beat], stall: float, seed: int):
        self.bench, self.beats, self.stall, self.random = bench, beats, stall, random.Random(seed)
        self.given: list[int] = []
        self._word: int | None = None

    def drive(self) -> None:
        bench, noise = self.bench, self.random.getrandbits
        beat = self.beats[len(self.given)] if not self.done and self.random.random() >= self.stall else None
        if beat and beat.last and not bench["room"]:
            beat = None
        bench["word"] = noise(NPU.pool_word_bits) if self._word is None else self._word
        self._word = beat.word if beat else None
        values = {key: int(getattr(beat, key)) if beat else noise(1) for key in ("first", "last", "average")}
        flags = beat.flags if beat else (noise(1), noise(1), noise(1))
        bench.set(
            beat=int(beat is not None),
            index=beat.index if beat else noise(4),
            taps=beat.taps if beat else noise(COUNT_BITS),
            **values,
            **dict(zip(("tuple_last", "map_last", "target"), flags)),
        )
        if beat:
            self.given.append(bench.cycle)

    @property
    def done(self) -> bool:
        return len(self.given) == len(self.beats)


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit_integer(Library(32), NPU)) as made:
        memory = NPU.memory("reciprocals")
        load(made, memory, 0, reciprocals(NPU.reciprocal_bits).tolist())
        yield made


@pytest.fixture
def bench(built):
    built.reset()
    return built


def packed(values: np.ndarray) -> int:
    bits = NPU.feature_bits
    return sum((int(v) & ((1 << bits) - 1)) << k * bits for k, v in enumerate(values))


def windows(count: int, seed: int, words: int | None = None, taps: int | None = None) -> tuple[list[Beat], list[int]]:
    """(beats, words that must come out) of windows of 1 to 127 taps, tuples of 1 to 16 words."""
    rng = np.random.default_rng(seed)
    beats, out = [], []
    for window in range(count):
        n_taps = taps or int(rng.choice([1, 2, 3, 4, 5, 6, 9, 25, 81, 127]))
        n_words, average = words or int(rng.choice([1, 2, 5, 16])), bool(rng.integers(0, 2))
        shape = (n_taps, n_words, NPU.pfp)
        tuples = rng.choice([LOW, HIGH], shape) if rng.random() < 0.2 else rng.integers(LOW, HIGH + 1, shape)
        if rng.random() < 0.2:
            tuples[:] = rng.choice([LOW, -1, HIGH])
        flags = [(int(k == n_words - 1), window % 3 // 2, window % 4 // 2) for k in range(n_words)]
        beats += [
            Beat(packed(tuples[t, k]), k, t + 1, t == 0, t == n_taps - 1, average, flags[k])
            for t in range(n_taps)
            for k in range(n_words)
        ]
        result = rounded_quotient(tuples.sum(axis=0), np.array(n_taps)) if average else tuples.max(axis=0)
        side = [f[0] | f[1] << 1 | f[2] << 2 for f in flags]
        out += [packed(word) | s << NPU.pool_word_bits for word, s in zip(result, side)]
    return beats, out


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)])
def test_equals_golden(bench, stall_in, stall_out):
    beats, expected = windows(60, 1)
    sink = Sink(bench, "out_", expect=len(expected), stall=stall_out)
    run(bench, Sequencer(bench, beats, stall_in, 2), sink)
    assert sink.values == expected


@pytest.mark.parametrize("words", [1, 3])
def test_rate_and_latency(bench, words):
    """A word a cycle, also from window to window; the queue's word is there in the next cycle (tuples of one word)."""
    beats, expected = windows(30, 3, words=words)
    give, sink = Sequencer(bench, beats, 0, 2), Sink(bench, "out_", expect=len(expected))
    run(bench, give, sink)
    assert sink.values == expected
    assert steady(give.given)
    assert sink.taken == [cycle + LATENCY for cycle, beat in zip(give.given, beats) if beat.last]


def test_nothing_is_lost_when_the_output_stalls(bench):
    """``room`` falls before the FIFO is full, all that was sent comes out, and room rises again."""
    beats, expected = windows(60, 4, words=2, taps=1)
    give, sink = Sequencer(bench, beats, 0, 2), Sink(bench, "out_", expect=len(expected))
    sink.closed = True
    run(bench, give, sink, cycles=100)
    assert pool_fifo_words(NPU) - 9 <= len(give.given) <= pool_fifo_words(NPU)
    assert bench["room"] == 0
    sink.closed = False
    run(bench, give, sink)
    assert sink.values == expected
    assert bench["room"] == 1
