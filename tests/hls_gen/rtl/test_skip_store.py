"""Fork of maps and the skip store behind it: every word reaches who is to have it, once, in its order."""

import random

import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect
from bitloom.hls_gen.rtl.shell.context import NpuContext, RingWords, place
from bitloom.hls_gen.rtl.shell.stores import skip_store
from bitloom.hls_gen.rtl.stores.map_fork import map_fork

from .bench import Bench, Sink, Source, run

DEPTHS = {"lut_ram": 5, "block_ram": 70}
LOOP, HOST, SKIP = range(3)
"""Numbers of the outlets."""
MAP_LAST, TARGET, FORKS, FOR_ADDITION = 0, 1, 3, 4
"""Places of the marks of a word."""


def npu(skip_words: int) -> Npu:
    return Npu.of(engine="integer", feature_bits=3, weight_bits=2, shift_bits=0, kfp=2, kgp=2, skip_words=skip_words)


def probe(one: Npu) -> Block:
    """The fork, its outlet and what comes out of the store as ports."""
    b = Block("skip_probe")
    library = Library(32, npus=[one])
    parts = one.map_marks
    words = Stream.input(b, "in", one.array.word_bits, last=True, side_bits=5)
    ways = {name: Stream.output(b, name, one.array.word_bits) for name in ("to_addition", "to_inlet")}
    bus = LoadBus({}, None, b.input("load_row"), b.input("load_data"))
    store = skip_store(NpuContext(b, library, one, RingWords(one.array.word_bits), bus, {}))
    out = Stream.output(b, "out", one.array.word_bits, last=True, side_bits=3)
    block = map_fork(library, one, parts, parts[:2])
    fork = place(b, block, "map_fork", "fork_", **words.ports("in"), **out.ports("out"))
    connect(Stream.of(fork, "skip"), store.words)
    connect(store.to_addition, ways["to_addition"])
    connect(store.to_inlet, ways["to_inlet"])
    return b


@pytest.fixture(scope="module", params=["lut_ram", pytest.param("block_ram", marks=pytest.mark.slow)])
def built(request):
    with Bench(probe(npu(DEPTHS[request.param]))) as bench:
        yield bench, DEPTHS[request.param]


def word(data: int, target: int, forks: int = 0, for_addition: int = 0) -> dict[str, int]:
    return {"data": data, "last": data & 1, "side": target << TARGET | forks << FORKS | for_addition << FOR_ADDITION}


def maps(count: int, seed: int) -> list[dict[str, int]]:
    """Words of maps of 1 to 9 words each, which go anywhere."""
    draw = random.Random(seed)
    words = []
    for _ in range(count):
        target = draw.randrange(3)
        marks = (target, int(target == LOOP and draw.random() < 0.5), draw.randrange(2))
        words += [word(draw.getrandbits(6), *marks) for _ in range(draw.randrange(1, 10))]
        words[-1]["side"] |= 1 << MAP_LAST
    return words


def sinks(bench: Bench, words: list[dict[str, int]], stall: float) -> dict[str, tuple[Sink, list[tuple[int, ...]]]]:
    """Each taker, and what it must get."""
    side = lambda w, place, bits=1: w["side"] >> place & (1 << bits) - 1  # noqa: E731
    on = [(w["data"], w["last"], w["side"] & 7) for w in words if side(w, TARGET, 2) != SKIP]
    stored = [w for w in words if side(w, TARGET, 2) == SKIP or side(w, FORKS)]
    wanted = {"out_": on}
    for name, mark in (("to_inlet_", 0), ("to_addition_", 1)):
        wanted[name] = [(w["data"],) for w in stored if side(w, FOR_ADDITION) == mark]
    names = {"out_": ["data", "last", "side"]}
    return {
        name: (Sink(bench, name, names.get(name, ["data"]), len(values), stall, seed), values)
        for seed, (name, values) in enumerate(wanted.items())
    }


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)])
def test_every_word_reaches_its_takers(built, stall_in, stall_out):
    bench, _ = built
    bench.reset()
    words = maps(60, int(10 * (stall_in + stall_out)))
    takers = sinks(bench, words, stall_out)
    run(bench, Source(bench, "in_", words, stall_in), *[sink for sink, _ in takers.values()])
    assert {name: sink.words for name, (sink, _) in takers.items()} == {n: values for n, (_, values) in takers.items()}


def test_a_full_store_holds_back_the_next_word_alone(built):
    """The outlet has its word at once; the one behind it waits until the store has taken this one."""
    bench, depth = built
    bench.reset()
    words = [word(k % 64, LOOP, forks=1) for k in range(depth + 9)]
    takers = sinks(bench, words, 0)
    source = Source(bench, "in_", words)
    inlet, wanted = takers["to_inlet_"]
    inlet.closed = True
    others = [sink for name, (sink, _) in takers.items() if name != "to_inlet_"]
    run(bench, source, inlet, *others, cycles=depth + 20)
    held = len(source.taken)
    assert depth + 1 <= held <= depth + 2  # in memory, and in the two registers behind it
    assert len(takers["out_"][0].words) == held + 1
    inlet.closed = False
    run(bench, source, inlet, *others)
    assert inlet.words == wanted
    assert takers["out_"][0].words == takers["out_"][1]
    bench.reset()
    words = [word(1, LOOP, forks=1)] * held + [word(2, LOOP)] * 3  # the last ones are not for the store
    takers = {name: sink for name, (sink, _) in sinks(bench, words, 0).items()}
    takers["to_inlet_"].closed = True
    run(bench, Source(bench, "in_", words), *takers.values(), cycles=held + 20)
    assert (len(takers["out_"].words), bench["to_inlet_valid"]) == (held + 3, 1)


def test_a_word_waits_for_its_taker(built):
    """One that is for the inlet is not given to the addition, nor is what stands behind it."""
    bench, _ = built
    bench.reset()
    words = [word(1, SKIP), word(2, SKIP, for_addition=1)]
    takers = {name: sink for name, (sink, _) in sinks(bench, words, 0).items()}
    takers["to_inlet_"].closed = True
    run(bench, Source(bench, "in_", words), *takers.values(), cycles=12)
    assert [takers[name].words for name in ("to_inlet_", "to_addition_")] == [[], []]
    takers["to_inlet_"].closed = False
    run(bench, *takers.values())
    assert [takers[name].words for name in ("to_inlet_", "to_addition_")] == [[(1,)], [(2,)]]
