"""Stores and gearboxes of the flow model against clocked models of them, register by register, under random stalls."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from bitloom.hls_gen.compiler.flow.gearbox import Gearbox
from bitloom.hls_gen.compiler.flow.kahn import Stamps
from bitloom.hls_gen.compiler.flow.ports import FrameSource
from bitloom.hls_gen.compiler.flow.streams import Fifo, Pair, Ring, Router, Sink, Source

WORDS = 120


def gaps(seed: int, busy: float, count: int = WORDS) -> list[int]:
    """Cycles from one event to the earliest next one, >= 1."""
    rng = np.random.default_rng(seed)
    return (1 + rng.geometric(busy, count) - 1).tolist()


def drive(sink: Sink, source: Source, offers: Sequence[int], pauses: Sequence[int]) -> tuple[list[int], list[int]]:
    """(cycles in, cycles out): a producer that offers word k ``offers[k]`` cycles after word k - 1 went in, a consumer
    that is ready ``pauses[k]`` cycles after it took word k - 1. Both go as far as is known, in turn."""
    ins: list[int] = []
    outs: list[int] = []
    first: int | None = None
    while len(outs) < len(offers):
        before = len(ins), len(outs)
        while len(ins) < len(offers):
            put = sink.put((ins[-1] if ins else 0) + offers[len(ins)])
            if put is None:
                break
            ins.append(put)
        while len(outs) < len(offers):
            first = source.next() if first is None else first
            if first is None:
                break
            outs.append(max(first, (outs[-1] if outs else 0) + pauses[len(outs)]))
            source.taken(outs[-1])
            first = None
        assert (len(ins), len(outs)) != before, "neither side goes on"
    return ins, outs


Clocked = Callable[[int, bool, bool], tuple[bool, bool]]
"""A store's cycle: (cycle, a word is offered, one may leave) -> (it goes in, one leaves)."""


def clock(store: Clocked, offers: Sequence[int], pauses: Sequence[int]) -> tuple[list[int], list[int]]:
    """As ``drive``, cycle by cycle."""
    ins: list[int] = []
    outs: list[int] = []
    cycle = 0
    while len(outs) < len(offers):
        offered = len(ins) < len(offers) and cycle >= (ins[-1] if ins else 0) + offers[len(ins)]
        ready = cycle >= (outs[-1] if outs else 0) + pauses[len(outs)]
        went, left = store(cycle, offered, ready)
        if went:
            ins.append(cycle)
        if left:
            outs.append(cycle)
        cycle += 1
    return ins, outs


def clocked_fifo(depth: int) -> Clocked:
    """hls_gen/rtl/primitives/fifo.py."""
    state = {"level": 0, "out": 0, "ready": 1}

    def cycle(_: int, offered: bool, may_leave: bool) -> tuple[bool, bool]:
        level, out = state["level"], state["out"]
        ready = state["ready"] if depth > 64 else level != depth
        leaves = bool(out and may_leave)
        goes, get = bool(offered and ready), level > 0 and (not out or leaves)
        state.update(level=level + goes - get, out=int(get or (out and not leaves)), ready=int(level < depth - 1))
        return goes, leaves

    return cycle


def clocked_pair(chunks: Sequence[int]) -> Clocked:
    """hls_gen/rtl/ports/ping_pong.py; chunks : words of each."""
    full, place = [False, False], {"write": 0, "read": 0, "written": 0, "got": 0}
    register = [False]

    def cycle(_: int, offered: bool, may_leave: bool) -> tuple[bool, bool]:
        was_full = list(full)
        leaves = register[0] and may_leave
        goes = offered and not was_full[place["write"] % 2]
        get = was_full[place["read"] % 2] and (not register[0] or leaves)
        if goes:
            place["written"] += 1
            if place["written"] == chunks[place["write"]]:
                full[place["write"] % 2] = True
                place.update(write=place["write"] + 1, written=0)
        if get:
            place["got"] += 1
            if place["got"] == chunks[place["read"]]:
                full[place["read"] % 2] = False
                place.update(read=place["read"] + 1, got=0)
        register[0] = get or (register[0] and not leaves)
        return goes, leaves

    return cycle


@pytest.mark.parametrize("depth", [1, 2, 5, 64, 65, 70])
@pytest.mark.parametrize(("fast_in", "fast_out"), [(1.0, 1.0), (1.0, 0.4), (0.4, 1.0), (0.6, 0.6), (1.0, 0.95)])
def test_fifo(depth: int, fast_in: float, fast_out: float) -> None:
    fifo = Fifo(depth, Stamps("words"), Stamps("room"))
    offers, pauses = gaps(1, fast_in, 400), gaps(2, fast_out, 400)
    pauses[0] += 150  # fills it
    assert drive(fifo, fifo, offers, pauses) == clock(clocked_fifo(depth), offers, pauses)
    assert fifo.level() <= depth


@pytest.mark.parametrize("maps", [[(12, 4)], [(7, 3), (1, 3)], [(5, 1)], [(10, 16), (3, 2), (6, 6)]])
@pytest.mark.parametrize(("fast_in", "fast_out"), [(1.0, 1.0), (1.0, 0.3), (0.3, 1.0), (0.5, 0.5)])
def test_pair(maps: list[tuple[int, int]], fast_in: float, fast_out: float) -> None:
    """A chunk ends with its map. Words that fill no chunk yet are not drawn: the last map is whole."""
    chunks: list[int] = []
    while sum(chunks) < WORDS:
        for words, chunk in maps:
            chunks += [chunk] * (words // chunk) + [words % chunk] * (words % chunk > 0)
    pair = Pair(maps, Stamps("words"), Stamps("room"))
    offers, pauses = gaps(3, fast_in, sum(chunks)), gaps(4, fast_out, sum(chunks))
    assert drive(pair, pair, offers, pauses) == clock(clocked_pair(chunks), offers, pauses)
    assert pair.level() == max(chunks)


def test_ring_waits_for_the_word_given_back_before() -> None:
    written, given = Stamps("words"), Stamps("room")
    ring = Ring(2, written, given)
    assert [ring.put(c) for c in (5, 6, 7)] == [5, 6, None]
    assert ring.room == (given, 0)
    given.extend([9, 9])
    assert [ring.put(c) for c in (7, 20)] == [11, 20]
    assert list(written) == [5, 6, 11, 20]
    assert ring.level() == 2


class Slow:
    """A sink that takes a word at most every so many cycles."""

    def __init__(self, every: int):
        self.every, self.taken = every, list[int]()
        self.room = (Stamps("room"), 0)

    def put(self, cycle: int) -> int:
        self.taken.append(max(cycle, self.taken[-1] + self.every) if self.taken else cycle)
        return self.taken[-1]


@pytest.mark.parametrize(
    ("source", "target", "every"), [(2, 8, 1), (2, 8, 9), (3, 8, 1), (8, 3, 1), (8, 3, 4), (4, 4, 2)]
)
def test_gearbox(source: int, target: int, every: int) -> None:
    """Against hls_gen/rtl/primitives/gearbox.py cycle by cycle: an output register, taken every so many cycles; tuples
    of 5 words."""
    words, per_tuple = 40, 5
    sink = Slow(every)
    box = Gearbox(source, target, sink)
    taken: list[int] = []
    for k in range(words):
        one = box.take((taken[-1] if taken else 0) + 1, k % per_tuple == per_tuple - 1)
        assert one is not None
        taken.append(one)
    together, pieces = max(target // source, 1), -(-source // target)
    expected: list[int] = []
    outs: list[int] = []
    place = left = cycle = 0
    while len(expected) < words:
        cycle += 1
        gives = left > 0 and (not outs or cycle >= outs[-1] + every)
        if left == 0 or (gives and left == 1):  # the output is free, or its last piece leaves
            expected.append(cycle)
            place += 1
            complete = place == together or len(expected) % per_tuple == 0
            place = 0 if complete else place
            left = (pieces if complete else 0) + (1 if gives else 0)
        if gives:
            outs.append(cycle)
            left -= 1
    assert taken == expected
    assert sink.taken[: len(outs)] == outs


def test_router_sends_each_map_its_way() -> None:
    first, second = Slow(1), Slow(1)
    router = Router([(2, first), (1, second)])
    for cycle in range(6):
        router.put(cycle)
    assert (first.taken, second.taken) == ([0, 1, 3, 4], [2, 5])


def _take(frames: FrameSource) -> int:
    cycle = frames.next()
    assert cycle is not None
    frames.taken(cycle)
    return cycle


def test_a_frame_waits_until_few_enough_are_in_flight() -> None:
    done = Stamps("frames")
    frames = FrameSource(1, 32, 32, False, done)
    for _ in range(17):
        _take(frames)
    assert frames.next() is None
    assert frames.word == (done, 0)
    done.append(500)
    assert frames.next() == 502
    assert frames.accepted[-1] == 500
