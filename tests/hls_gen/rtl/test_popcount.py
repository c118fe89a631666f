"""Popcount for simulation, against Python's own."""

import random

import pytest

from bitloom.hls_gen.rtl.array.popcount import popcount

from .bench import Bench, bench_of, together

SMALL = (1, 2, 3, 7, 8, 11)
WIDE = (63, 64, 65, 130)


bench = bench_of(lambda: together("popcounts", {f"p{n}": popcount(n) for n in SMALL + WIDE}))


def count(bench: Bench, lanes: int, word: int) -> int:
    """Count for a word of matches, spread over features and weights; a cycle later."""
    features = random.Random(word).getrandbits(lanes)
    bench.set(**{f"p{lanes}_features": features, f"p{lanes}_weights": features ^ word ^ ((1 << lanes) - 1)})
    bench.tick()
    return bench[f"p{lanes}_count"]


@pytest.mark.parametrize("lanes", SMALL)
def test_all_words(bench, lanes):
    assert [count(bench, lanes, w) for w in range(1 << lanes)] == [w.bit_count() for w in range(1 << lanes)]


@pytest.mark.parametrize("lanes", WIDE)
def test_wide(bench, lanes):
    draw = random.Random(lanes)
    full = (1 << lanes) - 1
    words = [
        0,
        full,
        *(1 << k for k in range(lanes)),
        *(full ^ 1 << k for k in range(lanes)),
        *(full >> k for k in range(lanes)),
    ]
    words += [draw.getrandbits(lanes) for _ in range(500)]
    assert [count(bench, lanes, w) for w in words] == [w.bit_count() for w in words]


@pytest.mark.parametrize("lanes", SMALL + WIDE)
def test_ports(bench, lanes):
    """Wide enough for a count of all lanes, and no wider."""
    names = ("features", "weights", "count")
    assert [bench.widths[f"p{lanes}_{name}"] for name in names] == [lanes, lanes, len(f"{lanes:b}")]
