"""Writer of the tuple memory where layers read two maps side by side: words of either inlet in turn, a word a cycle."""

import random
from typing import Any

import pytest

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec
from bitloom.hls_gen.rtl.sequencer.writer import writer

from .bench import Agent, Bench, Source, bench_of, load, pack, run, steady

LANES = {"kfp": 2, "kgp": 2}
SIZES = {"skip_words": 9, "joined_words": 5, "layers": 4, "tuple_words": 16}
NPU = Npu.of(engine="integer", feature_bits=3, weight_bits=2, shift_bits=0, **LANES, **SIZES)
HOST, LOOP, SKIP = range(3)
MAPS = [(HOST, 0, 7, 0, 0), (LOOP, 1, 24, 1, 5), (SKIP, 0, 5, 3, 3), (LOOP, 1, 6, 2, 1)]
"""Of each layer: inlet, whether it reads two maps, words of all tuples, words of a tuple that are of either map."""


class Written(Agent):
    """Collects what is written; ``free``: how often the ring has room, from the second cycle after reset on."""

    def __init__(self, bench: Bench, count: int, free: float = 1):
        self.bench = bench
        self.count = count
        self.free = free
        self.random = random.Random(3)
        self.after_reset = False
        self.words: list[int] = []
        self.rows: list[int] = []
        self.cycles: list[int] = []

    def drive(self) -> None:
        self.bench["has_free"] = int(self.after_reset and self.random.random() < self.free)
        self.after_reset = True

    def look(self) -> None:
        if self.bench["write"]:
            assert self.bench["has_free"]
            self.words.append(self.bench["write_word"])
            self.rows.append(self.bench["write_row"])
            self.cycles.append(self.bench.cycle)

    @property
    def done(self) -> bool:
        return len(self.words) >= self.count


bench = bench_of(lambda: writer(Library(32), SequencerSpec(NPU.array_sequencer)))


def streams(frames: int, draw: random.Random) -> tuple[dict[str, list[dict[str, int]]], list[int]]:
    """Words of each inlet, and all in the order in which they must be written."""
    names = ("host_", "loop_", "skip_")
    expected = list[int]()
    words: dict[str, list[dict[str, int]]] = {name: [] for name in names}
    for inlet, joins, count, first, second in MAPS * frames:
        turns = [inlet] * first + [SKIP] * second if joins else [inlet]
        for k in range(count):
            word = draw.getrandbits(6)
            words[names[turns[k % len(turns)]]].append({"data": word})
            expected.append(word)
    return words, expected


def start(bench: Any) -> None:
    memory = memory_of(NPU, "inputs")
    bench.set(rst=1, last_layer=len(MAPS) - 1)
    names = ("source", "joins", "words", "first_words_minus_1", "second_words_minus_1")
    rows = [(inlet, joins, count, max(first - 1, 0), max(second - 1, 0)) for inlet, joins, count, first, second in MAPS]
    load(bench, memory, 0, [pack(memory, dict(zip(names, row))) for row in rows])
    bench["rst"] = 0


@pytest.mark.parametrize(("stall", "free"), [(0, 1), (0.5, 0.6), (0.9, 1)])
def test_words_of_two_maps_in_turn(bench, stall, free):
    start(bench)
    words, expected = streams(3, random.Random(1))
    written = Written(bench, len(expected), free)
    run(bench, *(Source(bench, name, its, stall, seed=k) for k, (name, its) in enumerate(words.items())), written)
    assert written.words == expected
    assert written.rows == [k % 16 for k in range(len(expected))]
    assert stall or steady(written.cycles)  # without a gap, from map to map and from layer to layer


def test_a_restart_in_the_middle_of_a_tuple(bench):
    """Words of the second map were coming: the next frame begins with the first map all the same."""
    for cycles in (12, None):
        start(bench)
        words, expected = streams(1, random.Random(2))
        written = Written(bench, len(expected))
        run(bench, *(Source(bench, name, its) for name, its in words.items()), written, cycles=cycles)
        assert written.words == expected[: len(written.words)]
        assert (8 < len(written.words) < 13) == (cycles == 12)
