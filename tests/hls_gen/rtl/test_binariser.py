"""On-line binariser: features against thresholds, word by word, tuple after tuple; a row of thresholds a word."""

import numpy as np
import pytest

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.ports.binariser import binariser
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench, Sink, Source, bench_of, load, run, steady

NPU = Npu.of(kfp=5, kgp=2, binariser_bits=6, binariser_rows=4)
WORDS = 3
"""Words of a tuple: not all rows are used."""


built = bench_of(lambda: binariser(Library(32), NPU))


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_bits_are_features_at_least_thresholds(built: Bench, stall: float) -> None:
    built.reset()
    rng = np.random.default_rng(3)
    limits = rng.integers(-32, 33, (WORDS, NPU.array.kfp))  # 32 is never reached
    limits[0, :2] = (-32, 32)
    features = rng.integers(-32, 32, (20 * WORDS, NPU.array.kfp))
    features[:6, :2] = [(-32, 31)] * 6
    pack = lambda values, bits: sum((int(v) & ((1 << bits) - 1)) << k * bits for k, v in enumerate(values))  # noqa: E731
    load(built, memory_of(NPU, "binariser"), 0, [pack(row, 7) for row in limits])
    built.set(last_row=WORDS - 1)
    expected = [pack(x >= limits[i % WORDS], 1) for i, x in enumerate(features)]
    source = Source(built, "in_", [{"data": pack(x, 6)} for x in features], stall=stall, seed=1)
    sink = Sink(built, "out_", expect=len(expected), stall=stall, seed=2)
    run(built, source, sink)
    assert [word for (word,) in sink.words] == expected
    if not stall:
        assert steady(sink.taken)
        assert sink.seen[0] - source.taken[0] == 1
