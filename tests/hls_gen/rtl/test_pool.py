"""Pool unit against numpy: OR over the taps of a window, word by word, the tuple memory a cycle behind the beat."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import pool_fifo_words
from bitloom.hls_gen.rtl.pool.pool import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Agent, Bench, Sink, run, steady

NPU = Npu(kfp=3, kgp=5, pfp=7, ol=2, pool_words=16)
LATENCY = 1 + 2
"""Cycles from the beat to the word at the output: one, and the FIFO's two."""


@dataclass(frozen=True)
class Beat:
    """One cycle's input; ``word`` comes a cycle later."""

    word: int
    index: int
    first: bool
    last: bool
    flags: tuple[int, int, int]


class Sequencer(Agent):
    """Gives beats as the pool sequencer does: one of a last tap only if there is room."""

    def __init__(self, bench: Bench, beats: list[Beat], stall: float, seed: int):
        self.bench, self.beats, self.stall, self.random = bench, beats, stall, random.Random(seed)
        self.given: list[int] = []
        self.waits = 0
        self._word: int | None = None

    def drive(self) -> None:
        bench, noise = self.bench, self.random.getrandbits
        beat = self.beats[len(self.given)] if not self.done and self.random.random() >= self.stall else None
        if beat and beat.last and not bench["room"]:
            beat = None
            self.waits += 1
        bench["word"] = noise(NPU.pfp) if self._word is None else self._word
        self._word = beat.word if beat else None
        names = ("tuple_last", "map_last", "target")
        bench.set(
            beat=int(beat is not None),
            index=beat.index if beat else noise(4),
            first=int(beat.first if beat else noise(1)),
            last=int(beat.last if beat else noise(1)),
            **dict(zip(names, beat.flags if beat else (noise(1), noise(1), noise(1)))),
        )
        if beat:
            self.given.append(bench.cycle)

    @property
    def done(self) -> bool:
        return len(self.given) == len(self.beats)


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit(Library(32), NPU)) as made:
        yield made


@pytest.fixture
def bench(built):
    built.reset()
    return built


def windows(count: int, seed: int, words: int | None = None, taps: int | None = None) -> tuple[list[Beat], list[int]]:
    """(beats, words that must come out) of windows of 1 to 5 taps, tuples of 1 to 16 words."""
    rng = np.random.default_rng(seed)
    beats, out = [], []
    for window in range(count):
        n_taps, n_words = taps or int(rng.integers(1, 6)), words or int(rng.choice([1, 2, 5, 16]))
        tuples = rng.integers(0, 1 << NPU.pfp, (n_taps, n_words)) & rng.integers(0, 1 << NPU.pfp, (n_taps, n_words))
        flags = [(int(k == n_words - 1), window % 3 // 2, window % 4 // 2) for k in range(n_words)]
        beats += [
            Beat(int(tuples[t, k]), k, t == 0, t == n_taps - 1, flags[k]) for t in range(n_taps) for k in range(n_words)
        ]
        merged = np.bitwise_or.reduce(tuples, axis=0)  # (words)
        out += [int(m) | f[0] << NPU.pfp | f[1] << NPU.pfp + 1 | f[2] << NPU.pfp + 2 for m, f in zip(merged, flags)]
    return beats, out


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)])
def test_equals_numpy(bench, stall_in, stall_out):
    beats, expected = windows(150, 1)
    sink = Sink(bench, "out_", expect=len(expected), stall=stall_out)
    run(bench, Sequencer(bench, beats, stall_in, 2), sink)
    assert sink.values == expected


@pytest.mark.parametrize("words", [1, 3])
def test_rate_and_latency(bench, words):
    """A word a cycle, also from window to window; the queue's word is there in the next cycle (tuples of one word)."""
    beats, expected = windows(40, 3, words=words)
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
    assert pool_fifo_words(NPU) - 6 <= len(give.given) <= pool_fifo_words(NPU)
    assert bench["room"] == 0
    sink.closed = False
    run(bench, give, sink)
    assert sink.values == expected
    assert bench["room"] == 1
