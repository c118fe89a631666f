"""Gearboxes against hls_gen.design.gearbox.regroup: tuples of words in, the same lanes in words of another width
out."""

import random

import numpy as np
import pytest

from bitloom.hls_gen.design.gearbox import regroup
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.gearbox import collected, frame_divider, gearbox
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect

from .bench import Bench, Sink, Source, run, steady, together

SHAPES = {
    "collect_3_to_7": (3, 7, 2),
    "collect_1_to_8": (1, 8, 1),
    "collect_5_to_5": (5, 5, 0),
    "collect_24_to_32": (24, 32, 2),
    "divide_7_to_3": (7, 3, 2),
    "divide_9_to_1": (9, 1, 1),
    "divide_32_to_5": (32, 5, 0),
    "divide_70_to_64": (70, 64, 3),
}
"""name: (in, out, side bits)."""

TAIL = {"tail": (32, 7, 4), "tail_1": (32, 24, 1)}
"""A frame's words, as the loader divides them: (in, out, pieces)."""

FRAME = {"frame_40": (32, 40, 2), "frame_32": (32, 32, 1), "frame_70": (32, 70, 3)}
"""... and as it collects them: (in, out, stream words of a word)."""

TAIL_BITS = 6


@pytest.fixture(scope="module")
def built():
    library = Library(32)
    blocks = {name: _gearbox(name, library, *shape) for name, shape in SHAPES.items()}
    blocks |= {name: frame_divider(library, *shape, TAIL_BITS) for name, shape in TAIL.items()}
    blocks |= {name: _frame_collector(name, library, *shape) for name, shape in FRAME.items()}
    with Bench(together("gearboxes", blocks)) as made:
        yield made


def _gearbox(name: str, library: Library, have: int, want: int, side: int) -> Block:
    """A block with nothing but a gearbox."""
    b = Block(name)
    words = gearbox(b, library, "gearbox", Stream.input(b, "in", have, last=True, side_bits=side), want)
    connect(words, Stream.output(b, "out", want, last=True, side_bits=side))
    return b


def _frame_collector(name: str, library: Library, have: int, want: int, count: int) -> Block:
    """A block with nothing but what collects a frame's words."""
    b = Block(name)
    words = collected(b, library, "collector", Stream.input(b, "in", have, last=True), want, count)
    connect(words, Stream.output(b, "out", want, last=True))
    return b


@pytest.fixture(params=SHAPES)
def name(request):
    return request.param


def number(bits: np.ndarray) -> int:
    return sum(int(b) << k for k, b in enumerate(bits))


def tuples(name: str, counts: list[int]) -> tuple[list[dict[str, int]], list[tuple[int, ...]]]:
    """Random tuples of so many words: (items for the source, words that must come out: data, last and side)."""
    have, want, side = SHAPES[name]
    rng = np.random.default_rng(len(name))
    items, expected = [], []
    for count in counts:
        bits = rng.integers(0, 2, (count, have))
        sides = rng.integers(0, 1 << side, count)
        items += [
            {"data": number(word), "last": int(k == count - 1), **({"side": int(sides[k])} if side else {})}
            for k, word in enumerate(bits)
        ]
        layout = regroup(np.arange(count * have).reshape(count, have), want)
        lanes = np.where(layout == UNUSED, 0, np.append(bits.ravel(), 0)[layout])
        for k, word in enumerate(lanes):
            newest = min((k + 1) * (want // have), count) - 1 if have <= want else k * count // len(lanes)  # word in
            expected.append((number(word), int(k == len(lanes) - 1), *([int(sides[newest])] if side else [])))
    return items, expected


def sink_of(bench: Bench, name: str, **options) -> Sink:
    return Sink(bench, f"{name}_out_", ["data", "last", *(["side"] if SHAPES[name][2] else [])], **options)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.5, 0.5), (0.1, 0.8), (0.8, 0.1)])
def test_equals_regroup(bench, name, stall_in, stall_out):
    draw = random.Random(3)
    items, expected = tuples(name, [1, 2, 3, *(draw.randrange(1, 12) for _ in range(60))])
    sink = sink_of(bench, name, expect=len(expected), stall=stall_out)
    run(bench, Source(bench, f"{name}_in_", items, stall_in), sink)
    assert sink.words == expected


def test_rate_and_latency(bench, name):
    """One word a cycle on the narrow side, without a gap between tuples. Latency 1 cycle from the last word of a
    collection."""
    items, expected = tuples(name, [4, 1, 5, 9, 2, 6])
    source, sink = Source(bench, f"{name}_in_", items), sink_of(bench, name, expect=len(expected))
    run(bench, source, sink)
    have, want, _ = SHAPES[name]
    if have <= want:
        assert steady(source.taken)
        ends, place = [], 0
        for item, cycle in zip(items, source.taken):
            place += 1
            if place == want // have or item["last"]:
                ends.append(cycle)
                place = 0
        assert sink.taken == [cycle + 1 for cycle in ends]
    else:
        pieces = -(-have // want)
        assert steady(source.taken, pieces)
        assert steady(sink.taken)
        assert sink.taken[::pieces] == [cycle + 1 for cycle in source.taken]


@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize("name", TAIL)
def test_tail(bench, name, stall):
    """The word with ``last`` has in_tail + 1 pieces, others all of them; bits above pieces * out are left out."""
    have, want, pieces = TAIL[name]
    draw = random.Random(5)
    items, expected = [], []
    for frame in range(40):
        beats, tail = draw.randrange(1, 5), frame % pieces
        for k in range(beats):
            data, last = draw.getrandbits(have), int(k == beats - 1)
            items.append({"data": data, "last": last, "tail": tail if last else draw.getrandbits(TAIL_BITS)})
            count = tail + 1 if last else pieces
            expected += [(data >> (p * want) & (1 << want) - 1, int(last and p == count - 1)) for p in range(count)]
    source = Source(bench, f"{name}_in_", items, stall)
    sink = Sink(bench, f"{name}_out_", ["data", "last"], len(expected), stall)
    run(bench, source, sink)
    assert sink.words == expected
    assert stall or steady(sink.taken)


@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize("name", FRAME)
def test_frame(bench, name, stall):
    """A word that is wider than the stream is put together from its stream words; the last one is cut."""
    have, want, pieces = FRAME[name]
    draw = random.Random(7)
    words = [draw.getrandbits(want) for _ in range(40)]
    noise = [draw.getrandbits(pieces * have - want) if pieces * have > want else 0 for _ in words]
    items = [
        {"data": (w | n << want) >> (p * have) & (1 << have) - 1, "last": int(k == len(words) - 1 and p == pieces - 1)}
        for k, (w, n) in enumerate(zip(words, noise))
        for p in range(pieces)
    ]
    source = Source(bench, f"{name}_in_", items, stall)
    sink = Sink(bench, f"{name}_out_", ["data", "last"], len(words), stall)
    run(bench, source, sink)
    assert sink.words == [(w, int(k == len(words) - 1)) for k, w in enumerate(words)]
    assert stall or steady(source.taken)
