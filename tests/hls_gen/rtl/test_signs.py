"""Signs behind the addition of a binary NPU: every step goes on as bits, those that are kept to the skip store, too."""

import random

import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.results.signs import signs

from .bench import Sink, Source, bench_of, run

NPU = Npu.of(kfp=4, kgp=4, ol=2, pool=False, skip_words=4, skip_bits=3)
SIDE = NPU.result_side_bits
STEPS = 300


bench = bench_of(lambda: signs(Library(32, npus=[NPU]), NPU))


def steps(seed: int) -> list[dict[str, int]]:
    """Two integers of 3 bits each, of which each value comes with each."""
    draw = random.Random(seed)
    side = lambda: draw.getrandbits(SIDE + 1)  # noqa: E731
    return [{"data": k % 64, "last": draw.getrandbits(1), "side": side()} for k in range(STEPS)]


@pytest.mark.parametrize(
    ("stall_in", "stall_bits", "stall_store"), [(0, 0, 0), (0.4, 0.4, 0.6), (0, 0.7, 0), (0, 0, 0.7)]
)
def test_bits_go_on_and_integers_are_kept(bench, stall_in, stall_bits, stall_store):
    bench.reset()
    words = steps(int(10 * (stall_in + stall_bits)))
    bits = []
    for w in words:
        signs = (w["data"] >> 2 & 1 ^ 1) | (w["data"] >> 5 & 1 ^ 1) << 1
        bits.append((signs, w["last"], w["side"] & (1 << SIDE) - 1))
    kept = [(w["data"],) for w in words if w["side"] >> SIDE]
    out = Sink(bench, "out_", ["data", "last", "side"], STEPS, stall_bits, 1)
    store = Sink(bench, "skip_", ["data"], len(kept), stall_store, 2)
    source = Source(bench, "in_", words, stall_in)
    run(bench, source, out, store)
    assert (out.words, store.words) == (bits, kept)
    if not (stall_in or stall_bits or stall_store):
        assert source.taken == list(range(source.taken[0], source.taken[0] + STEPS))  # one step a cycle


def test_a_full_store_holds_back_the_next_step_alone(bench):
    """The bits of a step that the store can't take leave at once; those of the next one, which isn't kept, don't."""
    bench.reset()
    words = [{"data": 1, "last": 0, "side": 1 << SIDE}, {"data": 2, "last": 0, "side": 0}]
    out, store = Sink(bench, "out_", ["data"], 2), Sink(bench, "skip_", ["data"], 1)
    store.closed = True
    source = Source(bench, "in_", words)
    run(bench, source, out, store, cycles=9)
    assert (len(source.taken), out.words, store.words) == (0, [(3,)], [])
    store.closed = False
    run(bench, source, out, store)
    assert (out.words, store.words) == ([(3,), (3,)], [(1,)])
