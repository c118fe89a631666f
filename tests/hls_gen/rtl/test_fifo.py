"""FIFO: LUT RAM and block RAM, depths that are no power of two."""

import random

import pytest

from bitloom.hls_gen.design.timing import LUT_RAM_WORDS
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench, Each, Sink, Source, bench_of, run, steady, together

KINDS = {"lut": (5, 11), "largest_lut": (33, LUT_RAM_WORDS), "block": (9, LUT_RAM_WORDS + 3), "least": (1, 2)}
KINDS |= {"margin": (7, 22, 9), "margin_of_all": (6, 14, 13)}
"""name: (width, depth), and the margin of ``room`` if it is not 4."""

LATENCY = 2


LIBRARY = Library(32)
built = bench_of(lambda: together("fifos", {name: fifo(LIBRARY, *shape) for name, shape in KINDS.items()}))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def words(kind: str, count: int) -> list[int]:
    draw = random.Random(kind)
    return [draw.getrandbits(KINDS[kind][0]) for _ in range(count)]


def source(bench: Bench, kind: str, data: list[int], stall: float = 0, seed: int = 0) -> Source:
    return Source(bench, f"{kind}_in_", [{"data": d} for d in data], stall, seed)


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0.5, 0.5), (0.1, 0.7), (0.7, 0.1)])
def test_order_under_stalls(bench, kind, stall_in, stall_out):
    data = words(kind, 5 * KINDS[kind][1] + 50)
    sink = Sink(bench, f"{kind}_out_", expect=len(data), stall=stall_out)
    run(bench, source(bench, kind, data, stall_in), sink)
    assert sink.values == data


def test_rate_and_latency(bench, kind):
    data = words(kind, 3 * KINDS[kind][1] + 20)
    give = source(bench, kind, data)
    sink = Sink(bench, f"{kind}_out_", expect=len(data))
    run(bench, give, sink)
    assert sink.values == data
    assert steady(give.taken)
    assert steady(sink.taken)
    assert sink.taken[0] - give.taken[0] == LATENCY


def test_full_depth(bench, kind):
    """Full, it holds its depth and one word more; it empties without a gap, and fills again."""
    depth = KINDS[kind][1]
    data = words(kind, 3 * depth + 10)
    give = source(bench, kind, data)
    sink = Sink(bench, f"{kind}_out_", expect=len(data))
    sink.closed = True
    run(bench, give, sink, cycles=depth + 10)
    assert depth <= len(give.taken) <= depth + 1
    assert steady(give.taken)
    sink.closed = False
    run(bench, give, sink)
    assert sink.values == data
    assert steady(sink.taken)


def test_reset_empties(bench, kind):
    run(bench, source(bench, kind, words(kind, 3)), Sink(bench, f"{kind}_out_", stall=1), cycles=9)
    assert bench[f"{kind}_out_valid"]
    bench.reset()
    sink = Sink(bench, f"{kind}_out_")
    run(bench, sink, cycles=8)
    assert sink.words == []


@pytest.mark.sample(8)
@pytest.mark.parametrize("stall_out", [0.2, 0.6, 0.9])
@pytest.mark.parametrize("kind", [name for name in KINDS if name != "least"])
def test_room(bench, kind, stall_out):
    """While ``room`` is 1, the next ``margin`` words are taken at once, whatever the sink does (depth above margin)."""
    depth, margin = (*KINDS[kind][1:], 4)[:2]
    draw = random.Random(depth)
    promised = [0]
    seen = set()
    put = [0]
    data = iter(range(1 << 30))
    sink = Sink(bench, f"{kind}_out_", stall=stall_out)

    def drive() -> None:
        room = bench[f"{kind}_room"]
        seen.add(room)
        promised[0] = margin if room else promised[0]
        offer = promised[0] > 0 and draw.random() < 0.9
        bench[f"{kind}_in_valid"] = int(offer)
        bench[f"{kind}_in_data"] = next(data) % (1 << KINDS[kind][0])
        if offer:
            assert bench[f"{kind}_in_ready"], "there was room"
            promised[0] -= 1
            put[0] += 1

    run(bench, Each(drive), sink, cycles=40 * depth)
    bench[f"{kind}_in_valid"] = 0
    sink.stall = 0
    run(bench, sink, cycles=depth + 9)
    assert len(sink.words) == put[0] > 3 * depth
    assert seen == {0, 1}
    assert bench[f"{kind}_room"] == 1
