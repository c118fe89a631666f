"""Streams: connect, fork and join, under random stalls on all sides, and the rules that ready and valid follow."""

import random
import re
from itertools import product

import pytest

from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect, fork, join

from .bench import Each, Sink, Source, bench_of, run, steady, together

FORKS = {"fork_1": 1, "fork_2": 2, "fork_3": 3}
JOINS = {"join_1": (5,), "join_2": (3, 7), "join_3": (1, 40, 2)}
"""name: widths of the sources' data; source k has k side bits."""


def connected() -> Block:
    b = Block("connected", clocked=False)
    connect(
        Stream.input(b, "in", 9, last=True, side_bits=2),
        Stream.output(b, "out", 9, last=True, side_bits=2),
    )
    return b


def forked(sinks: int) -> Block:
    """Sink 0 has all parts, sink 1 no side, sink 2 data alone."""
    b = Block(f"fork_{sinks}")
    source = Stream.input(b, "in", 12, last=True, side_bits=3)
    restart = b.input("restart")
    shapes = [{"last": True, "side_bits": 3}, {"last": True}, {}][:sinks]
    fork(b, "way", source, [Stream.output(b, f"out{k}", 12, **shape) for k, shape in enumerate(shapes)], restart)
    return b


def joined(widths: tuple[int, ...]) -> Block:
    b = Block(f"join_{len(widths)}")
    sources = [Stream.input(b, f"in{k}", w, last=True, side_bits=k) for k, w in enumerate(widths)]
    sides = sum(range(len(widths)))
    join(b, "both", sources, Stream.output(b, "out", sum(widths), last=True, side_bits=sides))
    return b


def diamond(depths: tuple[int, int]) -> Block:
    """A fork whose branches are FIFOs of different depths and meet again in a join."""
    library = Library(32)
    b = Block("diamond")
    source = Stream.input(b, "in", 8)
    sink = Stream.output(b, "out", 16)
    before = [Stream.wires(b, f"before_{k}", 8) for k in (0, 1)]
    after = [Stream.wires(b, f"after_{k}", 8) for k in (0, 1)]
    fork(b, "way", source, before)
    for k, depth in enumerate(depths):
        store = library.get(fifo, library, 8, depth)
        ports = before[k].ports("in") | after[k].ports("out")
        b.instance(store, f"branch_{k}", **ports, room=b.wire(f"room_{k}_unused"))
    join(b, "both", after, sink)
    return b


BLOCKS = {"connect": connected, "diamond": lambda: diamond((2, 11))}
BLOCKS |= {name: lambda n=n: forked(n) for name, n in FORKS.items()}
BLOCKS |= {name: lambda widths=widths: joined(widths) for name, widths in JOINS.items()}


built = bench_of(lambda: together("streams", {name: make() for name, make in BLOCKS.items()}))


def items(seed: str, count: int, **widths: int) -> list[dict[str, int]]:
    draw = random.Random(seed)
    return [{name: draw.getrandbits(w) for name, w in widths.items()} for _ in range(count)]


STALLS = [(0, 0, 0, 0), (0.5, 0.5, 0.5, 0.5), (0.1, 0.8, 0.2, 0.5), (0.8, 0.1, 0.1, 0.3), (0, 0.3, 0.9, 0)]
"""Chance of a stall: of the one source or sink, and of up to three sinks or sources."""


@pytest.mark.parametrize("stalls", STALLS)
def test_connect(bench, stalls):
    data = items("connect", 200, data=9, last=1, side=2)
    sink = Sink(bench, "connect_out_", ["data", "last", "side"], len(data), stalls[1])
    source = Source(bench, "connect_in_", data, stalls[0])
    run(bench, source, sink)
    assert sink.words == [(d["data"], d["last"], d["side"]) for d in data]
    assert source.taken == sink.taken


@pytest.mark.sample(8)
@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("name", FORKS)
def test_fork(bench, name, stalls):
    """Every sink gets every word once, in order; a word leaves the source with the last sink that takes it."""
    data = items(name, 300, data=12, last=1, side=3)
    parts = [("data", "last", "side"), ("data", "last"), ("data",)][: FORKS[name]]
    source = Source(bench, f"{name}_in_", data, stalls[0], seed=7)
    sinks = [Sink(bench, f"{name}_out{k}_", names, len(data), stalls[1 + k], seed=k) for k, names in enumerate(parts)]
    run(bench, source, *sinks)
    for sink, names in zip(sinks, parts):
        assert sink.words == [tuple(d[n] for n in names) for d in data]
    assert source.taken == [max(cycles) for cycles in zip(*(sink.taken for sink in sinks))]
    if not any(stalls):
        assert steady(source.taken)


@pytest.mark.sample(8)
@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("name", JOINS)
def test_join(bench, name, stalls):
    """Words of the sources leave side by side, source 0 low; all are taken in the cycle in which they leave."""
    widths = JOINS[name]
    data = [items(f"{name}{k}", 300, data=w, last=1, **({"side": k} if k else {})) for k, w in enumerate(widths)]
    sources = [Source(bench, f"{name}_in{k}_", d, stalls[1 + k], seed=k) for k, d in enumerate(data)]
    names = ["data", "last", *(["side"] if len(widths) > 1 else [])]
    sink = Sink(bench, f"{name}_out_", names, 300, stalls[0])
    run(bench, *sources, sink)
    expected = []
    for words in zip(*data):
        low, side_low, word, side = 0, 0, 0, 0
        for k, (w, d) in enumerate(zip(widths, words)):
            word |= d["data"] << low
            side |= d.get("side", 0) << side_low
            low, side_low = low + w, side_low + k
        expected.append((word, int(all(d["last"] for d in words)), side)[: len(names)])
    assert sink.words == expected
    assert all(source.taken == sink.taken for source in sources)
    if not any(stalls):
        assert steady(sink.taken)


@pytest.mark.parametrize("name", BLOCKS)
def test_rules_in_every_state(bench, name):
    """No valid moves with any ready, of its own stream or of another; a fork's ready with no valid, a join's not with
    its own."""
    valids = [p for p in bench.widths if p.startswith(f"{name}_out") and p.endswith("valid")]
    readys = [p for p in bench.widths if p.startswith(f"{name}_out") and p.endswith("ready")]
    offers = [p for p in bench.widths if p.startswith(f"{name}_in") and p.endswith("valid")]
    draw = random.Random(name)

    def look() -> None:
        before = {p: bench[p] for p in (*readys, *offers)}
        given = set()
        for values in product((0, 1), repeat=len(readys)):
            bench.set(**dict(zip(readys, values)))
            given.add(tuple(bench[p] for p in valids))
        bench.set(**before)
        assert len(given) == 1
        for offer in offers:
            own = offer.removesuffix("valid") + "ready"
            seen = set()
            for value in (0, 1):
                bench[offer] = value
                seen.add(bench[own])
            bench.set(**before)
            assert len(seen) == 1

    class Drive(Each):
        def drive(self) -> None:
            for port in readys:
                bench[port] = draw.getrandbits(1)

    sources = [Source(bench, offer.removesuffix("valid"), items(offer, 60, data=1), 0.5) for offer in offers]
    run(bench, *sources, Drive(look), cycles=100)


def message(text: str):
    return pytest.raises(ValueError, match=f"^{re.escape(text)}$")


def test_errors():
    b = Block("wrong")
    plain, wide = Stream.wires(b, "plain", 5), Stream.wires(b, "wide", 6)
    ends, sided = Stream.wires(b, "ends", 5, last=True), Stream.wires(b, "sided", 5, side_bits=2)
    with message("connect: data must be as wide in the sink as in the source, got 5 bits into 6"):
        connect(plain, wide)
    with message("connect: the sink's last must come from the source, which has none"):
        connect(plain, ends)
    with message("fork: the sink's side must come from the source, which has none"):
        fork(b, "way", plain, [sided])
    with message("fork: sinks must be one or more, got none"):
        fork(b, "way", plain, [])
    with message("join: sources must be one or more, got none"):
        join(b, "both", [], plain)
    with message("join: all sources must have last or none, got 1 of 2"):
        join(b, "both", [plain, ends], Stream.wires(b, "sum", 10))
    with message("join: data must be as wide in the sink as in the source, got 11 bits into 10"):
        join(b, "more", [plain, wide], Stream.wires(b, "sum2", 10))
