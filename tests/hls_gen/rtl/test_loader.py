"""Loader: packets of all kinds, well-formed and not, on both stream widths."""

import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import ERRORS, FRAME, LOAD, MAGIC, WEIGHTS, PacketHeader, check
from bitloom.hls_gen.design.loader import STATES
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.loader import settings
from bitloom.hls_gen.design.memories.memory_map import memory_map, memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import frame_header, load_packet
from bitloom.hls_gen.design.rows import pack_fields
from bitloom.hls_gen.design.signature import START, loads_signature, signature
from bitloom.hls_gen.design.topology import cascade
from bitloom.hls_gen.rtl.loader import loader
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Agent, Bench, Sink, Source, on_load_bus, run

SMALL = {
    "layers": 3,
    "taps": 5,
    "olds": 6,
    "jumps": 7,
    "kernel_rows": 9,
    "threshold_rows": 5,
    "pool_taps": 4,
    "pool_olds": 3,
}
WITHOUT_POOL = {name: size for name, size in SMALL.items() if not name.startswith("pool_")} | {
    "jumps": 3,
    "pool": False,
}
DESIGNS = {
    "32_kfp_7": Design(name="d", stream_bits=32, npus=(Npu.of(kfp=7, kgp=5, ol=2, **SMALL),)),
    "64_kfp_7": Design(name="d", stream_bits=64, npus=(Npu.of(kfp=7, kgp=5, ol=2, **SMALL),)),
    "32_kfp_70": Design(name="d", stream_bits=32, npus=(Npu.of(kfp=70, kgp=3, ol=3, **SMALL),)),
}
STREAMED = 3
"""Streamed layers of the networks in the tests of designs that have such layers."""
LAST = {"last_layer": 2, "last_pool_layer": 1}
CODE = {error.name: error.code for error in ERRORS}
NAMES = {code: name for name, code in CODE.items()}


class Bus(Agent):
    """Writes over the load bus: (memory, bank, row, data), with the cycle."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.words, self.cycles, self.restart = [], [], []

    def look(self) -> None:
        bench = self.bench
        self.restart.append(bench["restart"])
        if words := on_load_bus(bench):
            self.words += words
            self.cycles.append(bench.cycle)
            assert bench["restart"], "memories are written while the NPU is in reset"


class Rig(SimpleNamespace):
    """A loader on a bench, with what is needed to make packets for it."""

    def load(self, memory: str, first: int, rows: int, seed: int = 0, npu: int = 0) -> np.ndarray:
        """LOAD of random rows."""
        target = self.manifest.memory(npu, memory)
        draw = np.random.default_rng(seed)
        data = draw.integers(0, 1 << 32, (rows, target.words), np.uint32)
        data[:, -1] &= (1 << (target.width - 1) % 32 + 1) - 1
        return load_packet(self.manifest, npu, memory, first, data)

    def network(self, frame_words: int) -> np.ndarray:
        """LOAD of the network row for frames of so many input words."""
        pieces = max(1, self.design.stream_bits // self.kfp)
        beats = len(self.payload(frame_words)) * 32 // self.design.stream_bits
        row = {"frame_words": frame_words, "frame_beats": beats, "frame_last_piece": (frame_words - 1) % pieces, **LAST}
        if self.design.npus[0].loader.stream_weights:
            row["streamed_layers"] = STREAMED
        memory = self.manifest.memory(0, "network")
        return load_packet(self.manifest, 0, "network", 0, pack_fields(memory, {k: [v] for k, v in row.items()}))

    def payload(self, frame_words: int, words: list[int] | None = None) -> np.ndarray:
        """Stream words of a frame, 32 bits each."""
        stream = self.design.stream_bits
        draw = random.Random(3)
        words = words or [0] * frame_words
        each = max(1, stream // self.kfp)
        out = []
        for first in range(0, frame_words, each):
            size = stream if self.kfp <= stream else -(-self.kfp // stream) * stream
            word = sum(w << k * self.kfp for k, w in enumerate(words[first : first + each]))
            used = self.kfp * len(words[first : first + each])
            word |= draw.getrandbits(size) >> used << used  # noise where nobody looks
            out += [word >> 32 * k & 0xFFFFFFFF for k in range(size // 32)]
        return np.array(out, np.uint32)

    def frame(self, words: list[int], last: bool = False) -> np.ndarray:
        """FRAME with these input words."""
        header = frame_header(self.manifest, len(words), last, signature=0)
        return np.concatenate([header, self.payload(len(words), words)])

    def stamp(self, packet: np.ndarray) -> None:
        """Make a packet the next one of the stream, in place, if it begins with a whole header."""
        if getattr(self, "resets", None) != self.bench.resets:
            self.resets = self.bench.resets
            self.signature = START
            self.number, self.layer = 0, 0
        words = [int(w) for w in packet[:4]]
        if len(words) < 4 or words[0] >> 24 != MAGIC or words[3] != check(*words[:3]):
            return
        head = PacketHeader.of(*words[:3])
        if head.kind == LOAD:
            self.signature = signature(packet[3:], self.signature)
            self.number, self.layer = 0, 0
        if head.kind == FRAME:
            packet[:4] = replace(head, address=self.signature, number=self.number % 256).words()
        if head.kind == WEIGHTS:
            packet[:4] = replace(head, layer=self.layer, number=self.number % 256).words()
            self.layer = (self.layer + head.last) % STREAMED
        self.number += head.kind in (FRAME, WEIGHTS)

    def items(self, *packets: np.ndarray, tlast: bool | None = None, at: int | None = None) -> list[dict[str, int]]:
        """Stream words of the packets, each stamped; tlast on the last one unless given; or on word ``at``."""
        words = list[int]()
        step = self.design.stream_bits // 32
        for packet in packets:
            self.stamp(packet)
            words += packet.tolist()
        beats = [sum(w << 32 * k for k, w in enumerate(words[i : i + step])) for i in range(0, len(words), step)]
        marked = len(beats) - 1 if at is None else at
        return [{"data": b, "last": int(k == marked and tlast is not False)} for k, b in enumerate(beats)]

    def sinks(self, stall: float = 0) -> tuple[Sink, Sink]:
        """Sinks of the words of frames, and of their flags."""
        return Sink(self.bench, "words_", stall=stall), Sink(self.bench, "flag_", stall=stall, ready="flag_ready_out")

    def source(self, items: list[dict[str, int]], stall: float = 0) -> Source:
        return Source(self.bench, "s_axis_t", items, stall)

    def on_bus(self, *packets: np.ndarray) -> list[tuple[str, int, int, int]]:
        """Writes of these LOADs on the load bus."""
        out = []
        for packet in packets:
            header = PacketHeader.of(*(int(w) for w in packet[:3]))
            target = next(m for m in memory_map(self.manifest.npus[0]) if m.id == header.memory)
            data = [item["data"] for item in self.items(packet[4:])]
            if target.name == "network":  # whose row stays in the loader
                continue
            banks = -(-target.width // self.design.stream_bits)
            out += [(target.name, k % banks, header.address + k // banks, d) for k, d in enumerate(data)]
        return out

    def frame_left(self, count: int = 1) -> None:
        """Frames leave."""
        for _ in range(count):
            self.bench["frame_left"] = 1
            self.bench.tick()
        self.bench["frame_left"] = 0


@pytest.fixture(scope="module", params=DESIGNS)
def built(request):
    design = DESIGNS[request.param]
    with Bench(loader(Library(design.stream_bits), design)) as bench:
        yield Rig(bench=bench, design=design, kfp=design.npus[0].array.kfp, manifest=Manifest.of(design, "0" * 64))


@pytest.fixture
def rig(built):
    built.bench.set(start=1, frame_left=0, words_ready=0, flag_ready_out=0, s_axis_tvalid=0)
    built.bench.reset()
    return built


def words_of(rig: Rig, count: int, seed: int = 1) -> list[int]:
    draw = random.Random(seed)
    return [draw.getrandbits(rig.kfp) for _ in range(count)]


def header(rig: Rig, *, magic: int = MAGIC, check: int = 0, **parts: int) -> np.ndarray:
    words = PacketHeader(**{"kind": 1, "npu": 0, "memory": 5, "address": 0, "length": 1, **parts}).words(magic)
    words[3] ^= check
    return words


def load_order(rig: Rig) -> list[np.ndarray]:
    """LOADs of every memory, the network row last."""
    memories = [m for m in memory_map(rig.manifest.npus[0]) if m.name != "network"]
    return [*(rig.load(m.name, k % 2, m.depth - k % 2, k) for k, m in enumerate(memories)), rig.network(5)]


@pytest.mark.parametrize("stall", [0, 0.5])
def test_load_every_memory(rig, stall):
    """All banks of all rows, one stream word a cycle; the header takes its words and the cycles of judgement."""
    bus = Bus(rig.bench)
    packets = load_order(rig)
    source = rig.source(rig.items(*packets), stall)
    run(rig.bench, source, bus)
    assert bus.words == rig.on_bus(*packets)
    assert (rig.bench["loaded"], rig.bench["idle"], rig.bench["error"], rig.bench["restart"]) == (1, 1, 0, 1)
    assert {name: rig.bench[f"npu0_{name}"] for name in LAST} == LAST
    assert rig.bench["error_code"] == 0
    assert rig.bench["signature"] == loads_signature(rig.manifest, np.concatenate(packets))
    if not stall:
        assert source.taken[-1] - source.taken[0] == len(source.items) - 1 + timing.JUDGING * len(packets)


@pytest.mark.parametrize("stall", [0, 0.6])
@pytest.mark.parametrize("count", [1, 3, 4, 5, 9, 10])
def test_frames(rig, count, stall):
    """Words of KFP bits, in order, for every length of the last stream word; ``last`` goes to the flags."""
    packets = [rig.network(count)]
    expected, flags = [], []
    for k in range(7):
        words = words_of(rig, count, k)
        packets.append(rig.frame(words, last=k % 3 == 1))
        expected += words
        flags.append(int(k % 3 == 1))
    sink = Sink(rig.bench, "words_", expect=len(expected), stall=stall)
    flag = Sink(rig.bench, "flag_", expect=len(flags), stall=stall, ready="flag_ready_out")
    run(rig.bench, rig.source(rig.items(*packets), stall), sink, flag)
    assert sink.values == expected
    assert flag.values == flags
    assert (rig.bench["idle"], rig.bench["restart"], rig.bench["error"]) == (0, 0, 0)
    rig.frame_left(7)
    assert rig.bench["idle"] == 1


def test_rate_of_a_frame(rig):
    """A word of KFP bits a cycle, or a stream word a cycle; between frames only the header and its judgement."""
    words = words_of(rig, 12)
    run(rig.bench, rig.source(rig.items(rig.network(12))))
    sink = Sink(rig.bench, "words_", expect=12)
    source = rig.source(rig.items(rig.frame(words)))
    run(rig.bench, source, sink, Sink(rig.bench, "flag_", ready="flag_ready_out"))
    stream = rig.design.stream_bits
    beats = 128 // stream
    assert source.taken[beats] - source.taken[beats - 1] == 1 + timing.JUDGING
    step = 1 if rig.kfp <= stream else -(-rig.kfp // stream)
    assert {b - a for a, b in zip(sink.taken, sink.taken[1:])} == {step}


def test_words_in_are_counted(rig):
    """``word_taken`` in each cycle that takes a stream word, also of what is dropped."""
    taken = Counter()
    items = rig.items(rig.network(3), header(rig, kind=9), rig.network(3))
    source = rig.source(items, 0.3)

    class Pulse(Agent):
        def look(self):
            taken[rig.bench["word_taken"]] += 1

    run(rig.bench, source, Pulse())
    assert taken[1] == len(items)


# Errors

HEADERS = {
    "BAD_HEADER": {"magic": {"magic": 0xB0}, "check": {"check": 1 << 31}, "check_0": {"check": 1}},
    "BAD_KIND": {f"kind_{kind}": {"kind": kind} for kind in (0, 3, 9)},
    "BAD_NPU": {"npu": {"npu": 1}, "npu_255": {"npu": 255}, "npu_of_frame": {"kind": 2, "npu": 2}},
    "BAD_MEMORY": {"memory": {"memory": 13}, "memory_255": {"memory": 255}},
    "BAD_RANGE": {
        "no_rows": {"length": 0},
        "beyond": {"address": 9},
        "over_the_end": {"address": 5, "length": 5},
        "huge": {"address": 0xFFFFFFFF},
        "wraps": {"address": 0xFFFFFFFF, "length": 2},
        "wraps_row": {"address": 1 << 31, "length": 1 << 31},
    },
    "NOT_LOADED": {"not_loaded": {"kind": 2, "length": 5}},
}
"""By errors and names: what is wrong in the header."""
BAD = {name: (error, parts) for error, headers in HEADERS.items() for name, parts in headers.items()}


def faulty(rig: Rig, name: str) -> tuple[str, list[dict[str, int]], np.ndarray]:
    """(error, stream words, header at fault)."""
    network = rig.network(5)
    payload = rig.load("kernels", 0, 1)[4:]
    if name in BAD:
        error, parts = BAD[name]
        words = header(rig, **parts)
        return error, rig.items(words, payload, rig.load("jumps", 0, 4), tlast=True), words
    step = 32 * 4 // rig.design.stream_bits
    if name.startswith("frame_of"):
        count = {"frame_of_4": 4, "frame_of_6": 6, "frame_of_0": 0}[name]
        words = frame_header(rig.manifest, count, signature=0)
        return "BAD_FRAME", rig.items(network, words, rig.payload(5)), words
    words = rig.load("kernels", 1, 3)
    if name == "truncated_load":
        return "TRUNCATED", rig.items(words, network, at=step + 1), words[:4]
    if name == "truncated_before_payload":  # the header is whole, its word has tlast
        return "TRUNCATED", rig.items(words, network, at=step - 1), words[:4]
    assert name == "truncated_frame"
    words = rig.frame(words_of(rig, 30))
    items = rig.items(rig.network(30), words, network, tlast=False)
    items[len(rig.items(rig.network(30))) + step]["last"] = 1
    return "TRUNCATED", items, words[:4]


FAULTS = [
    *BAD,
    "frame_of_4",
    "frame_of_6",
    "frame_of_0",
    "truncated_load",
    "truncated_before_payload",
    "truncated_frame",
]


@pytest.mark.sample(24)
@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize("name", FAULTS)
def test_error(rig, name, stall):
    """The code and the header are kept; everything else is taken and dropped; after reset all is well."""
    bench = rig.bench
    bus = Bus(rig.bench)
    error, items, words = faulty(rig, name)
    items += rig.items(rig.network(5), rig.load("jumps", 0, 2), rig.frame(words_of(rig, 5)))
    run(bench, rig.source(items, stall), bus, *rig.sinks(stall))
    assert (bench["error"], NAMES[bench["error_code"]]) == (1, error)
    assert [bench[f"error_{n}"] for n in ("header", "address", "length")] == words[:3].tolist()
    assert (bench["loader_state"], bench["restart"], bench["s_axis_tready"]) == (STATES.index("DRAIN"), 1, 1)
    assert not any(memory == "jumps" for memory, *_ in bus.words)
    bench.reset()
    assert (bench["error"], bench["error_code"], bench["loaded"], bench["restart"]) == (0, 0, 0, 1)
    test_frames(rig, 5, stall)


def test_all_codes_are_tested():
    assert {error for error, _ in BAD.values()} | {"BAD_FRAME", "TRUNCATED", "BAD_ORDER", "BAD_PROGRAM"} == set(CODE)


@pytest.mark.parametrize("at", range(4))
def test_truncated_header(rig, at):
    """tlast inside the header: TRUNCATED as well."""
    at = min(at, 128 // rig.design.stream_bits - 1)
    run(rig.bench, rig.source([*rig.items(rig.network(5), at=at), *rig.items(rig.network(5))]))
    assert (rig.bench["error"], rig.bench["error_code"]) == (1, CODE["TRUNCATED"])


CHANGES = [("BAD_ORDER", {"number": number}) for number in (1, 3, 0x82)]
CHANGES += [("BAD_PROGRAM", {"flip": flip}) for flip in (1, 1 << 1, 1 << 15, 1 << 30, 1 << 31, 0xFFFFFFFF)]


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_frame_out_of_order_or_for_other_parameters(rig, name, change):
    """Frames 0 and 1 are taken; what should be number 2 is not, and none of its words."""
    sink, flag = rig.sinks()
    items = rig.items(rig.network(3), *(rig.frame(words_of(rig, 3, k)) for k in range(2)))
    asked = rig.signature ^ change.get("flip", 0)
    number = change.get("number", 2)
    words = frame_header(rig.manifest, 3, signature=asked, number=number).tolist()
    step = rig.design.stream_bits // 32
    for first in range(0, 4, step):
        beat = sum(word << 32 * k for k, word in enumerate(words[first : first + step]))
        items.append({"data": beat, "last": 0})
    run(rig.bench, rig.source(items), sink, flag)
    assert (rig.bench["error"], NAMES[rig.bench["error_code"]]) == (1, name)
    assert sink.values == [word for k in range(2) for word in words_of(rig, 3, k)]


def test_numbers_of_frames_wrap(rig):
    """The number after 255 is 0."""
    sink, flag = rig.sinks()
    run(rig.bench, rig.source(rig.items(rig.network(2))))
    for _ in range(20):
        run(rig.bench, rig.source(rig.items(*(rig.frame([1, 0]) for _ in range(13)))), sink, flag)
        rig.frame_left(13)
    assert (rig.bench["error"], rig.number, len(sink.values)) == (0, 260, 520)


def test_first_error_stays(rig):
    run(rig.bench, rig.source(rig.items(header(rig, kind=7), header(rig, npu=4), header(rig, check=5), tlast=True)))
    assert rig.bench["error_code"] == CODE["BAD_KIND"]


def test_tlast_after_every_packet_or_none(rig):
    packets = load_order(rig)
    for split in (True, False):
        bus = Bus(rig.bench)
        items = [item for p in packets for item in rig.items(p, tlast=split)]
        run(rig.bench, rig.source(items), bus)
        assert bus.words == rig.on_bus(*packets)
        assert rig.bench["error"] == 0


# Order of packets


def test_a_load_waits_for_frames_in_flight(rig):
    """Nothing is written and the NPU runs on until the last frame has left."""
    bench = rig.bench
    second = rig.load("kernels", 2, 3)
    sink, flag = rig.sinks()
    run(bench, rig.source(rig.items(rig.network(3), *[rig.frame(words_of(rig, 3))] * 3)), sink, flag)
    bus = Bus(bench)
    source = rig.source(rig.items(second))
    run(bench, source, bus, sink, flag, cycles=40)
    for _ in range(2):
        rig.frame_left()
        run(bench, source, bus, sink, flag, cycles=20)
        assert (bus.words, set(bus.restart)) == ([], {0})
    assert not source.done
    rig.frame_left()
    run(bench, source, bus, sink, flag)
    assert bus.words == rig.on_bus(second)
    assert (bench["restart"], bench["loaded"]) == (1, 1)
    run(bench, rig.source(rig.items(rig.frame(words_of(rig, 3)))), sink, flag)
    assert bench["restart"] == 0


def test_a_frame_waits_for_start(rig):
    """Its header is taken; its words are not until START. A frame that has begun goes on without."""
    bench = rig.bench
    bench["start"] = 0
    words = words_of(rig, 9)
    sink, flag = rig.sinks()
    source = rig.source(rig.items(rig.network(9), rig.frame(words), rig.frame(words)))
    run(bench, source, sink, flag, cycles=60)
    assert (sink.values, flag.values, bench["restart"], bench["idle"]) == ([], [], 1, 0)
    assert bench["loader_state"] == STATES.index("JUDGE")
    bench["start"] = 1
    run(bench, source, sink, flag, cycles=1)
    bench["start"] = 0
    run(bench, source, sink, flag, cycles=60)
    assert (sink.values, flag.values) == (words, [0])
    bench["start"] = 1
    run(bench, source, sink, flag)
    assert sink.values == words * 2


def test_loads_need_no_start(rig):
    rig.bench["start"] = 0
    bus = Bus(rig.bench)
    run(rig.bench, rig.source(rig.items(*load_order(rig))), bus)
    assert bus.words == rig.on_bus(*load_order(rig))


def test_frames_in_flight_are_bounded(rig):
    """The flags' FIFO holds back further frames, and none is lost."""
    bench = rig.bench
    count = timing.FRAMES_IN_FLIGHT + 6
    sink, flag = Sink(bench, "words_"), Sink(bench, "flag_", expect=count, ready="flag_ready_out")
    flag.closed = True
    frames = [rig.frame(words_of(rig, 2, k), last=k % 2 == 1) for k in range(count)]
    source = rig.source(rig.items(rig.network(2), *frames))
    run(bench, source, sink, flag, cycles=40 * count)
    assert len(sink.values) == 2 * (timing.FRAMES_IN_FLIGHT + 1)  # one flag waits in the output register
    flag.closed = False
    run(bench, source, sink, flag)
    assert flag.values == [k % 2 for k in range(count)]
    assert sink.values == [w for k in range(count) for w in words_of(rig, 2, k)]
    rig.frame_left(count)
    assert bench["idle"] == 1


def test_a_frame_leaves_as_another_enters(rig):
    """The count of frames in flight is right when both happen in one cycle, at whatever moment."""
    bench = rig.bench
    for moment in range(12):
        bench.reset()
        sink, flag = rig.sinks()
        run(bench, rig.source(rig.items(rig.network(2), rig.frame([1, 1]))), sink, flag)
        source = rig.source(rig.items(rig.frame([1, 0])))
        for cycle in range(30):
            bench["frame_left"] = int(cycle == moment)
            run(bench, source, sink, flag, cycles=1)
        assert bench["idle"] == 0
        rig.frame_left()
        assert bench["idle"] == 1


def test_a_new_network_row_changes_the_frames(rig):
    """The second network's frame length, last piece and last layers are those in force."""
    sink, flag = rig.sinks()
    for count in (7, 2):
        run(rig.bench, rig.source(rig.items(rig.network(count), rig.frame(words_of(rig, count)))), sink, flag, extra=20)
        assert sink.values[-count:] == words_of(rig, count)
        rig.frame_left()
    assert rig.bench["error"] == 0
    run(rig.bench, rig.source(rig.items(rig.frame(words_of(rig, 7)))), sink, flag)
    assert rig.bench["error_code"] == CODE["BAD_FRAME"]


# Several NPUs

THIRD = Npu.of(kfp=2, kgp=3, **{**SMALL, "kernel_rows": 4})
TRIPLE = cascade([Npu.of(kfp=7, kgp=5, ol=2, **SMALL), Npu.of(kfp=9, kgp=1, **WITHOUT_POOL), THIRD])


class Buses(Agent):
    """Writes over the load bus, with the NPU that each is for: (npu, memory, bank, row, data)."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.words = []

    def look(self) -> None:
        words = [(n, *word) for n in range(3) for word in on_load_bus(self.bench, n)]
        assert len(words) <= 1
        self.words += words


@pytest.fixture(scope="module", params=[32, 64])
def triple(request):
    design = Design(name="d", stream_bits=request.param, npus=TRIPLE)
    with Bench(loader(Library(request.param), design)) as bench:
        manifest = Manifest.of(design, "0" * 64)
        yield Rig(bench=bench, design=design, kfp=7, manifest=manifest)


@pytest.fixture
def several(triple):
    triple.bench.set(start=1, frame_left=0, words_ready=0, flag_ready_out=0, s_axis_tvalid=0)
    triple.bench.reset()
    return triple


def settings_row(rig: Rig, n: int, **fields: int) -> np.ndarray:
    """LOAD of the network row of NPU ``n``, which begins no frame."""
    columns = {name: [fields.get(name, 0)] for name in memory_of(rig.design.npus[n], "network").widths}
    return load_packet(rig.manifest, n, "network", 0, pack_fields(rig.manifest.memory(n, "network"), columns))


def test_each_npu_gets_its_own_rows(several):
    """All banks of all rows of every memory, to nobody else; settings stand at the ports of the NPU they are of."""
    packets, expected = [], []
    wanted = {}
    for n in (2, 0, 1):
        for memory in memory_map(several.manifest.npus[n])[1:]:
            packets.append(several.load(memory.name, 0, memory.depth, n, n))
        numbers = {name: 3 + 5 * n + k for k, (name, _) in enumerate(settings(several.design.npus[n]))}
        packets.append(settings_row(several, n, **numbers))
        wanted |= {f"npu{n}_{name}": number for name, number in numbers.items()}
    for packet in packets:
        head = PacketHeader.of(*(int(w) for w in packet[:3]))
        target = memory_map(several.manifest.npus[head.npu])[head.memory]
        banks = -(-target.width // several.design.stream_bits)
        for k, item in enumerate(several.items(packet[4:])):
            if target.name != "network":
                expected.append((head.npu, target.name, k % banks, k // banks, item["data"]))
    bus = Buses(several.bench)
    run(several.bench, several.source(several.items(*packets), 0.2), bus)
    assert bus.words == expected
    assert (several.bench["error"], several.bench["loaded"]) == (0, 1)
    assert {name: several.bench[name] for name in wanted} == wanted
    pools, chunks = ("npu0_last_pool_layer", "npu2_last_pool_layer"), ("npu1_last_chunk", "npu2_last_chunk")
    assert set(wanted) == {*(f"npu{n}_last_layer" for n in range(3)), *pools, *chunks}


@pytest.mark.parametrize("missing", range(3))
def test_all_network_rows_must_be_there(several, missing):
    rows = {n: several.network(5) if n == 0 else settings_row(several, n) for n in range(3)}
    run(several.bench, several.source(several.items(*(row for n, row in rows.items() if n != missing))))
    assert several.bench["loaded"] == 0
    run(several.bench, several.source(several.items(several.frame(words_of(several, 5)))))
    assert several.bench["error_code"] == CODE["NOT_LOADED"]
    several.bench.reset()
    run(several.bench, several.source(several.items(*rows.values())))
    assert (several.bench["loaded"], several.bench["error"]) == (1, 0)
    words = words_of(several, 5)
    sink = Sink(several.bench, "words_", expect=5)
    flag = Sink(several.bench, "flag_", expect=1, ready="flag_ready_out")
    run(several.bench, several.source(several.items(several.frame(words))), sink, flag)
    assert sink.values == words


NOT_THERE = [
    ({"npu": 3}, "BAD_NPU"),
    ({"npu": 131}, "BAD_NPU"),
    ({"npu": 3, "kind": 2}, "BAD_NPU"),
    ({"npu": 1, "memory": 10}, "BAD_MEMORY"),  # NPU 1 has no pool
    ({"npu": 0, "memory": 13}, "BAD_MEMORY"),  # NPU 0 has no inlet ring, NPU 2 has its chunks there
    ({"npu": 1, "memory": 5, "length": 4}, "BAD_RANGE"),  # jumps: 3 rows there, 7 elsewhere
    ({"npu": 2, "memory": 6, "length": 5}, "BAD_RANGE"),  # kernels: 4 rows
]


@pytest.mark.parametrize(("parts", "error"), NOT_THERE)
def test_every_npu_has_memories_of_its_own(several, parts, error):
    pool = ["pool_inputs", "pool_layers", "pool_flags", "pool_olds"]
    memories = [[m.name for m in memory_map(npu)][9:] for npu in several.manifest.npus]
    assert memories == [pool, ["chunks"], [*pool, "chunks"]]
    words = header(several, **parts)
    bus = Buses(several.bench)
    run(several.bench, several.source(several.items(words, several.load("jumps", 0, 7))), bus)
    assert (several.bench["error"], NAMES[several.bench["error_code"]]) == (1, error)
    assert [several.bench[f"error_{n}"] for n in ("header", "address", "length")] == words[:3].tolist()
    assert bus.words == []
