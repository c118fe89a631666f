"""Ping-pong pair: whole chunks in order, each side in a buffer of its own; LUT RAM and block RAM (spec D3 to D5)."""

import random
from itertools import accumulate

import pytest

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import LUT_RAM_WORDS
from bitloom.hls_gen.rtl.ports.ping_pong import ping_pong
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.npus import integer_npu

from .bench import Bench, Sink, Source, load, run, steady, together

MAPS = 9
NPUS = {
    f"{place}_{words}": Npu.of(kfp=kfp, inlets=("ring", "loop"), buffer_words=words, layers=MAPS, acc_bits=16)
    for place, words, kfp in (("least", 2, 1), ("lut", 16, 9), ("largest_lut", 32, 33), ("block", 64, 7))
}
NPUS["bits_16"] = integer_npu(8, 8, 24, kfp=6, inlets=("ring", "loop"), layers=MAPS)
"""Behind a binary NPU a word has a bit for each lane."""
LATENCY = 2
"""Cycles from a chunk's last word to its first word out."""


@pytest.fixture(scope="module")
def built():
    assert NPUS["largest_lut_32"].ports.buffer_words * 2 == LUT_RAM_WORDS
    library = Library(32, npus=list(NPUS.values()))
    blocks = {kind: library.get(ping_pong, library, npu, npu.array.kfp) for kind, npu in NPUS.items()}
    with Bench(together("ping_pongs", blocks)) as bench:
        yield bench


@pytest.fixture(params=NPUS)
def kind(request):
    return request.param


class Side:
    """The bench as one block sees it: ports without its prefix. Enough for ``load``."""

    def __init__(self, bench: Bench, kind: str):
        self.bench = bench
        self.prefix = f"{kind}_"
        self.widths = {n.removeprefix(self.prefix): w for n, w in bench.widths.items() if n.startswith(self.prefix)}

    def __setitem__(self, name: str, value: int) -> None:
        self.bench[self.prefix + name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.widths

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self[name] = value

    def tick(self) -> None:
        self.bench.tick()


class Rig:
    """A pair with its chunk sizes loaded, the words of some frames, and how they must be divided.

    maps : (words, words of a chunk) of each map of a frame.
    """

    def __init__(self, bench: Bench, kind: str, maps: list[tuple[int, int]], frames: int = 3):
        npu = NPUS[kind]
        draw = random.Random(kind)
        self.bench = bench
        self.prefix = f"{kind}_"
        assert all(1 <= chunk <= npu.ports.buffer_words for _, chunk in maps)
        bench["rst"] = 1
        load(Side(bench, kind), memory_of(npu, "chunks"), 0, [chunk - 1 for _, chunk in maps])
        bench[f"{kind}_last_chunk"] = len(maps) - 1
        bench[f"{kind}_in_valid"] = 0
        bench.reset()
        self.items = []
        self.chunks = list[int]()
        for words, chunk in maps * frames:
            self.items += [{"data": draw.getrandbits(npu.array.kfp), "last": int(k == words - 1)} for k in range(words)]
            self.chunks += [chunk] * (words // chunk) + [words % chunk] * (words % chunk > 0)
        self.words = [item["data"] for item in self.items]
        ends = list(accumulate(self.chunks))
        self.spans = list(zip([0, *ends], ends))
        """First word and the one after the last of each chunk."""

    def agents(self, stall_in: float = 0, stall_out: float = 0) -> tuple[Source, Sink]:
        source = Source(self.bench, f"{self.prefix}in_", self.items, stall_in, seed=5)
        return source, Sink(self.bench, f"{self.prefix}out_", expect=len(self.items), stall=stall_out, seed=6)

    def check(self, source: Source, sink: Sink) -> None:
        """All words in order; each is offered after its chunk's last word was taken; a chunk is begun once all words
        of the last but one have left its buffer: the last of them is at the output."""
        assert sink.values == self.words
        assert len(sink.seen) == len(source.taken) == len(self.words)
        for first, end in self.spans:
            assert sink.seen[first] >= source.taken[end - 1] + LATENCY
        for (_, before_end), (first, _) in zip(self.spans, self.spans[2:]):
            assert source.taken[first] >= sink.seen[before_end - 1]


def chunk_sizes(kind: str) -> list[int]:
    most = NPUS[kind].ports.buffer_words
    return sorted({1, 2, min(3, most), most // 2, most - 1, most})


STALLS = [(0, 0), (0.5, 0.5), (0.1, 0.7), (0.7, 0.1)]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("stall_in", "stall_out"), STALLS)
def test_chunks_of_every_size(built, kind, stall_in, stall_out):
    """Maps of 1 word, of exactly a chunk, of one word more and less, and of several chunks with a rest."""
    for chunk in chunk_sizes(kind):
        lengths = {1, chunk, chunk + 1, max(1, chunk - 1), 3 * chunk, 4 * chunk + 1}
        rig = Rig(built, kind, [(words, chunk) for words in sorted(lengths)])
        source, sink = rig.agents(stall_in, stall_out)
        run(built, source, sink)
        rig.check(source, sink)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("stall_in", "stall_out"), STALLS)
@pytest.mark.parametrize("seed", range(5))
def test_maps_with_chunks_of_their_own(built, kind, seed, stall_in, stall_out):
    """Each map goes by its own row of memory ``chunks``, round and round, also where maps of one word follow each
    other."""
    draw = random.Random(seed)
    most = NPUS[kind].ports.buffer_words
    lengths = [1, 2, most, 3 * most, draw.randint(1, 4 * most)]
    maps = [(draw.choice(lengths), draw.randint(1, most)) for _ in range(MAPS - 2 * seed)]
    rig = Rig(built, kind, maps, frames=4)
    source, sink = rig.agents(stall_in, stall_out)
    run(built, source, sink)
    rig.check(source, sink)


def test_rate_and_latency(built, kind):
    """One word a cycle both ways, also from chunk to chunk and from map to map where these are alike; the first word
    comes LATENCY cycles after the last one of its chunk."""
    for chunk in chunk_sizes(kind):
        rig = Rig(built, kind, [(5 * chunk, chunk), (3 * chunk, chunk)])
        source, sink = rig.agents()
        run(built, source, sink)
        rig.check(source, sink)
        assert steady(source.taken)
        assert steady(sink.taken)
        assert sink.taken[0] - source.taken[chunk - 1] == LATENCY


def test_reset_in_the_middle(built, kind):
    """Half a chunk is forgotten, and the first map's chunk size is in force again."""
    most = NPUS[kind].ports.buffer_words
    maps = [(2 * most, most), (2 * most, 1)]
    rig = Rig(built, kind, maps)
    for cycles in range(2 * most, 6 * most, max(1, most // 3)):
        source, sink = rig.agents(0.1, 0.3)
        sink.expect = None
        run(built, source, sink, cycles=cycles)
        built[f"{kind}_in_valid"] = 0
        built.reset()
        source, sink = rig.agents(0.2, 0.2)
        run(built, source, sink)
        rig.check(source, sink)
        built.reset()
