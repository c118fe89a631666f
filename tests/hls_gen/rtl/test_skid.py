"""Skid register: words go through at once, and one waits aside where the sink stalls."""

import random

import pytest

from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.skid import skid

from .bench import Sink, Source, bench_of, run, steady

WIDTH, SIDE = 13, 3


bench = bench_of(lambda: skid(Library(32), WIDTH, SIDE))


def words(count: int) -> list[dict[str, int]]:
    draw = random.Random(count)
    widths = {"data": WIDTH, "last": 1, "side": SIDE}
    return [{name: draw.getrandbits(bits) for name, bits in widths.items()} for _ in range(count)]


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0.5, 0.5), (0.1, 0.7), (0.7, 0.1)])
def test_order_under_stalls(bench, stall_in, stall_out):
    bench.reset()
    given = words(200)
    sink = Sink(bench, "out_", ["data", "last", "side"], len(given), stall_out)
    run(bench, Source(bench, "in_", given, stall_in), sink)
    assert sink.words == [tuple(word.values()) for word in given]


def test_rate_and_latency(bench):
    bench.reset()
    given = words(40)
    give = Source(bench, "in_", given)
    sink = Sink(bench, "out_", ["data", "last", "side"], len(given))
    run(bench, give, sink)
    assert steady(give.taken)
    assert sink.taken == give.taken


def test_a_word_waits_aside(bench):
    """Ready doesn't look at the sink: it falls a cycle after a word wasn't taken, and rises a cycle after it was."""
    bench.reset()
    bench.set(in_valid=1, in_data=5, out_ready=0)
    assert bench["in_ready"] == 1
    bench.tick()
    bench.set(in_data=6, out_ready=1)
    assert (bench["in_ready"], bench["out_valid"], bench["out_data"]) == (0, 1, 5)
    bench.tick()
    assert (bench["in_ready"], bench["out_data"]) == (1, 6)
