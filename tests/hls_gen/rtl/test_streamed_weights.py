"""Weights down the stream: the loader writes them while frames are computed, the sequencer waits for them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from bitloom.hls_gen.check import check as check_rules
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import ERRORS, WEIGHTS, ErrorCode, PacketHeader, errors, kinds
from bitloom.hls_gen.design.loader import STATES
from bitloom.hls_gen.design.manifest import TOP, Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import load_packet
from bitloom.hls_gen.design.registers import register_map
from bitloom.hls_gen.design.rows import pack_fields
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.loader import loader
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.virtual.sim import lint
from tests.rows import memory_rows

from .bench import Agent, Bench, Sink, on_load_bus, run
from .test_loader import SMALL, words_of
from .test_loader import Rig as LoaderRig
from .test_sequencer import BIG, FRAMES, check, plan_of
from .test_sequencer import Rig as SequencerRig

DESIGNS = {
    bits: Design(name="d", stream_bits=bits, npus=(Npu.of(kfp=7, kgp=5, ol=2, stream_weights=True, **SMALL),))
    for bits in (32, 64)
}
CODE = {error.name: error.code for error in ERRORS}
INTEGER = Npu.of(engine="integer", feature_bits=4, weight_bits=3, shift_bits=0, kfp=3, kgp=4, pfp=2, ol=2)


# The design


def test_kinds_and_errors():
    without, streaming = Npu.of(), Npu.of(stream_weights=True)
    all_kinds = ["LOAD", "FRAME", "WEIGHTS"]
    for npu, names, rule in (
        (without, all_kinds[:2], "kind is 1 or 2"),
        (streaming, all_kinds, "kind is 1, 2 or 3"),
    ):
        design = Design(name="d", npus=(npu,))
        assert list(kinds(design)) == names
        order = "frames, weights and streamed layers come in order" if npu.loader.stream_weights else ERRORS[8].rule
        codes = ErrorCode(2, "BAD_KIND", rule), ErrorCode(9, "BAD_ORDER", order)
        assert errors(design) == (ERRORS[0], codes[0], *ERRORS[2:8], codes[1], ERRORS[9])
        assert list(Manifest.of(design, "0" * 64).packet_kinds) == names
        registers = {r.name for r in register_map(design)}
        assert ("NPU0_WAIT_WEIGHTS" in registers) == npu.loader.stream_weights


STREAMING = [Npu.of(stream_weights=True), INTEGER.changed(stream_weights=True)]
STREAMING.append(Npu.of(kfp=16, kgp=3, planes=8, accumulators=4, stream_weights=True))


@pytest.mark.sample(1)
@pytest.mark.parametrize("npu", STREAMING)
@pytest.mark.parametrize("stream_bits", [32, 64])
def test_verilog_is_clean(npu, stream_bits):
    text = generate(Design(name="d", stream_bits=stream_bits, npus=(npu,)), checked=False).text
    check_rules(text, TOP)
    assert lint(text) == []


def test_a_design_without_has_nothing_of_it():
    assert "weights_" not in generate(Design(name="d"), checked=False).text.replace("kernels_weights", "")


# The loader


class Bus(Agent):
    """Writes over the load bus: (memory, bank, row, data), and ``restart`` with them."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.words, self.cycles = [], []
        self.restart = set()

    def look(self) -> None:
        if words := on_load_bus(self.bench):
            self.words += words
            self.cycles.append(self.bench.cycle)
            self.restart.add(self.bench["restart"])


class Rig(LoaderRig):
    def weights(self, first: int, rows: int, ahead: int = 0, last: bool = True, seed: int = 0) -> np.ndarray:
        """WEIGHTS packet of random rows."""
        packet = self.load("kernels", first, rows, seed)
        packet[:4] = PacketHeader(WEIGHTS, 0, ahead, first, rows, last).words(0xB1)
        return packet

    def expected(self, *packets: np.ndarray) -> list[tuple[str, int, int, int]]:
        """Writes of these WEIGHTS on the load bus."""
        loads = [packet.copy() for packet in packets]
        for load in loads:
            load[0] = 1 | self.manifest.memory(0, "kernels").id << 8
        return self.on_bus(*loads)

    def pulse(self, name: str, count: int = 1) -> None:
        self.bench[name] = 1
        self.bench.tick(count)
        self.bench[name] = 0

    def send(self, *packets: np.ndarray, cycles: int | None = 300, stall: float = 0) -> Bus:
        bus = Bus(self.bench)
        run(self.bench, self.source(self.items(*packets, tlast=False), stall), bus, cycles=cycles)
        return bus


@pytest.fixture(scope="module", params=DESIGNS)
def built(request):
    design = DESIGNS[request.param]
    with Bench(loader(Library(design.stream_bits), design)) as bench:
        manifest = Manifest.of(design, "0" * 64)
        yield Rig(bench=bench, design=design, kfp=design.npus[0].array.kfp, manifest=manifest)


@pytest.fixture
def rig(built):
    built.bench.set(start=1, frame_left=0, words_ready=1, flag_ready_out=1, s_axis_tvalid=0, weights_begun=0)
    built.bench["weights_done"] = 0
    built.bench.reset()
    built.send(built.network(3))
    return built


@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize("frame", [False, True])
def test_rows_are_written_as_they_come(rig, frame, stall):
    """Before the first frame and during one, which goes on: ``run`` stays as it is."""
    if frame:
        rig.send(rig.frame(words_of(rig, 3)))
    packets = [rig.weights(2, 3), rig.weights(0, 2, ahead=1, seed=1), rig.weights(5, 4, ahead=2, seed=2)]
    bus = rig.send(*packets, stall=stall, cycles=None)
    assert bus.words == rig.expected(*packets)
    assert bus.restart == {int(not frame)}
    assert (rig.bench["error"], rig.bench["loaded"], rig.bench["idle"]) == (0, 1, int(not frame))


def test_rate(rig):
    """One stream word a cycle; the header takes its words and 2 cycles of judgement."""
    packets = [rig.weights(0, 3, ahead=9), rig.weights(3, 2, ahead=9), rig.weights(5, 4, ahead=9)]
    source = rig.source(rig.items(*packets))
    run(rig.bench, source)
    assert source.taken[-1] - source.taken[0] == len(source.items) - 1 + 2 * len(packets)


@pytest.mark.parametrize("ahead", [0, 1, 2, 255])
def test_a_layer_waits_until_enough_are_done(rig, ahead):
    first = [rig.weights(k % 9, 1, ahead=255) for k in range(3)]
    assert len(rig.send(*first, cycles=None).words) == len(rig.expected(*first))
    packet = rig.weights(4, 2, ahead=ahead)
    bus = Bus(rig.bench)
    source = rig.source(rig.items(packet))
    for unfinished in range(3, -1, -1):
        run(rig.bench, source, bus, cycles=60)
        if unfinished > ahead:
            assert (bus.words, rig.bench["loader_state"]) == ([], STATES.index("JUDGE"))
            assert not source.done
            rig.pulse("weights_done")
    assert source.done
    assert bus.words == rig.expected(packet)


def test_the_longest_queue(rig):
    """256 layers may be unfinished; the next one waits even with ahead = 255."""
    rig.send(*[rig.weights(0, 1, ahead=255)] * 256, cycles=None)
    source = rig.source(rig.items(rig.weights(1, 1, ahead=255)))
    bus = Bus(rig.bench)
    run(rig.bench, source, bus, cycles=60)
    assert (bus.words, rig.bench["weights_there"]) == ([], 1)
    rig.pulse("weights_done")
    run(rig.bench, source, bus)
    assert bus.words == rig.expected(rig.weights(1, 1))
    rig.pulse("weights_begun", 256)
    assert rig.bench["weights_there"] == 1
    rig.pulse("weights_begun")
    assert (rig.bench["weights_there"], rig.bench["error"]) == (0, 0)


def test_weights_are_there_once_they_are_whole(rig):
    """In several packets, of which the last one says so; each layer counts once."""
    bench = rig.bench
    bus = rig.send(rig.weights(0, 2, last=False), rig.weights(2, 1, last=False))
    assert (len(bus.words), bench["weights_there"]) == (len(rig.expected(rig.weights(0, 3))), 0)
    rig.send(rig.weights(3, 1), rig.weights(4, 1, ahead=1))
    for there in (1, 1, 0):
        assert bench["weights_there"] == there
        rig.pulse("weights_begun", there)


def test_margins(rig):
    """Rows that a layer's last beat reads may be written 3 cycles later; the last row is written as it is counted."""
    bench = rig.bench
    there = []
    bus = rig.send(rig.weights(0, 1))
    bus = Bus(bench)
    packet = rig.weights(0, 2)
    source = rig.source(rig.items(packet))
    run(bench, source, bus, cycles=60)
    assert (bus.words, bench["weights_there"]) == ([], 1)
    rig.pulse("weights_begun")
    done = bench.cycle
    rig.pulse("weights_done")
    while not source.done or len(there) < 200:
        bench["s_axis_tvalid"] = 0
        run(bench, source, bus, cycles=1)
        if bench["weights_there"]:
            there.append(bench.cycle)
    assert bus.cycles[0] - done == 3
    assert there[0] - bus.cycles[-1] == 1


def test_both_at_once(rig):
    """A layer is whole in the very cycle in which another begins or ends, whatever the moment."""
    for moment in range(12):
        rig.bench.reset()
        rig.send(rig.network(3), rig.weights(0, 1, ahead=5), cycles=None)
        source = rig.source(rig.items(rig.weights(1, 1, ahead=5)))
        for cycle in range(40):
            rig.bench.set(weights_begun=int(cycle == moment), weights_done=int(cycle == moment))
            run(rig.bench, source, cycles=1)
        assert rig.bench["weights_there"] == 1
        assert rig.send(rig.weights(2, 1, ahead=0)).words == []
        rig.pulse("weights_done")
        rig.bench.tick(20)
        rig.pulse("weights_begun")
        assert rig.bench["loader_state"] != STATES.index("JUDGE")


def test_a_load_begins_anew(rig):
    """Weights that were there are forgotten: the engine starts at its first layer."""
    rig.send(rig.weights(0, 1, ahead=3), rig.weights(1, 1, ahead=3))
    assert rig.bench["weights_there"] == 1
    rig.send(rig.load("jumps", 0, 1))
    assert (rig.bench["weights_there"], rig.bench["loaded"]) == (0, 1)
    assert rig.send(rig.weights(0, 1)).words == rig.expected(rig.weights(0, 1))


def test_frames_and_weights_keep_their_order(rig):
    """A frame behind weights that wait waits too; words are whole."""
    sink, flag = Sink(rig.bench, "words_"), Sink(rig.bench, "flag_", ready="flag_ready_out")
    words = words_of(rig, 6)
    packets = [rig.weights(0, 2), rig.frame(words[:3]), rig.weights(3, 2), rig.frame(words[3:])]
    source = rig.source(rig.items(*packets))
    bus = Bus(rig.bench)
    run(rig.bench, source, sink, flag, bus, cycles=200)
    assert sink.values == words[:3]
    rig.pulse("weights_done")
    run(rig.bench, source, sink, flag, bus)
    assert sink.values == words
    assert bus.words == rig.expected(packets[0], packets[2])


OUT_OF_ORDER = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 1), (2, 0x82)]
OUT_OF_ORDER = [(done, {"layer": layer}) for done, layer in OUT_OF_ORDER]
OUT_OF_ORDER += [(done, {"number": number}) for done, number in ((1, 0), (1, 2), (2, 0x42))]


@pytest.mark.sample(9)
@pytest.mark.parametrize(("done", "change"), OUT_OF_ORDER)
def test_weights_out_of_order(rig, done, change):
    """Whole layers have come before; neither another layer's weights nor a packet with another number are written."""
    before = [rig.weights(k, 1, ahead=9) for k in range(done)]
    rig.send(*before, cycles=None)
    packet = rig.weights(5, 1, ahead=9)
    rig.stamp(packet)
    head = replace(PacketHeader.of(*(int(w) for w in packet[:3])), **change)
    packet[:4] = head.words(0xB1)
    packet[3] ^= 1  # so that it is left as it is where items are made of it
    items = rig.items(packet)
    items[128 // rig.design.stream_bits - 1]["data"] ^= 1 << rig.design.stream_bits - 32
    bus = Bus(rig.bench)
    run(rig.bench, rig.source(items), bus)
    assert (rig.bench["error"], rig.bench["error_code"]) == (1, CODE["BAD_ORDER"])
    assert (rig.bench["error_address"], bus.words) == (int(packet[1]), [])
    rig.bench.reset()
    rig.send(rig.network(3))
    test_weights_are_there_once_they_are_whole(rig)


def test_a_network_without_streamed_layers_refuses_weights(rig):
    """Of designs that could take them."""
    rig.bench.reset()
    memory = rig.manifest.memory(0, "network")
    row = {"frame_words": [3], "frame_beats": [3], "streamed_layers": [0]}
    rig.send(load_packet(rig.manifest, 0, "network", 0, pack_fields(memory, row)), rig.weights(0, 1))
    assert (rig.bench["error"], rig.bench["error_code"]) == (1, CODE["BAD_ORDER"])


BAD = {"BAD_KIND": {"kind": 4}, "BAD_NPU": {"npu": 1}, "BAD_RANGE": {"address": 8, "length": 2}}
BAD |= {"BAD_HEADER": {}, "TRUNCATED": {}, "NOT_LOADED": {}}


@pytest.mark.parametrize("name", BAD)
def test_error(rig, name):
    if name == "NOT_LOADED":
        rig.bench.reset()
    packet = rig.weights(0, 2)
    packet[:4] = replace(PacketHeader.of(*(int(w) for w in packet[:3])), **BAD[name]).words(0xB1)
    packet[3] ^= name == "BAD_HEADER"
    items = rig.items(packet, at=128 // rig.design.stream_bits if name == "TRUNCATED" else None)
    run(rig.bench, rig.source([*items, *rig.items(rig.weights(0, 1))]), cycles=200)
    assert (rig.bench["error"], rig.bench["error_code"]) == (1, CODE[name])
    assert (rig.bench["restart"], rig.bench["error_header"]) == (1, int(packet[0]))
    rig.bench.reset()
    rig.send(rig.network(3))
    test_weights_are_there_once_they_are_whole(rig)


def test_range_of_every_row(rig):
    """The kernel memory's depth counts, whatever stands where a LOAD names its memory."""
    for ahead in range(0, 14):
        rig.bench.reset()
        rig.send(rig.network(3), rig.weights(0, 9, ahead=ahead))
        assert rig.bench["error"] == 0


def test_a_design_without_refuses():
    design = Design(name="d", npus=(Npu.of(**SMALL),))
    with Bench(loader(Library(32), design)) as bench:
        bench.set(start=1, words_ready=1, flag_ready_out=1)
        rig = Rig(bench=bench, design=design, kfp=8, manifest=Manifest.of(design, "0" * 64))
        rig.send(rig.network(3), rig.weights(0, 1))
        assert bench["error_code"] == CODE["BAD_KIND"]


# The sequencer


class Tokens(Agent):
    """Says that a layer's weights are there, after a while; counts layers begun and done."""

    def __init__(self, bench: Bench, rate: float, total: int):
        self.bench = bench
        self.random = random.Random(4)
        self.rate = rate
        self.given = 0
        self.begun, self.ended = 0, 0
        self.total = total
        self.held, self.held_after = 0, 0

    def drive(self) -> None:
        if self.given < self.total:
            self.given += self.random.random() < self.rate
        self.bench["weights_there"] = int(self.given > self.begun)

    def look(self) -> None:
        bench = self.bench
        self.held += bench["wait_weights"] if self.ended < self.total else 0
        self.held_after += bench["wait_weights"] if self.ended == self.total else 0
        assert not bench["wait_weights"] or self.given == self.begun
        if bench["weights_begun"]:
            assert self.given > self.begun
            self.begun += 1
        if bench["weights_done"]:
            self.ended += 1
        assert self.ended <= self.begun <= self.given

    @property
    def done(self) -> bool:
        return self.ended == self.total


@pytest.fixture(scope="module")
def conv():
    rig = SequencerRig(BIG.changed(stream_weights=True), pool=False)
    yield rig
    rig.bench.close()


@pytest.mark.sample(5)
@pytest.mark.parametrize("rate", [1, 0.01])
@pytest.mark.parametrize("name", ["chain", "conv_strides", "dense_33_31"])
@pytest.mark.parametrize("which", ["all", "first", "last", "none"])
def test_layers_wait_for_their_weights(conv, name, which, rate):
    """Beats are as without; a layer's first is held back, and no cycle is lost where weights are there in time."""
    network_plan = plan_of(name, "pull")
    rows = memory_rows(network_plan)
    count = len(rows["layers"])
    streamed = {"all": range(count), "first": range(1), "last": range(count - 1, count), "none": range(0)}[which]
    rows["layers"] = [{**row, "kernel_stream": int(i in streamed)} for i, row in enumerate(rows["layers"])]
    beats, sources, expected = conv.start(network_plan, rows=rows)
    tokens = Tokens(conv.bench, rate, FRAMES * len(streamed))
    run(conv.bench, beats, tokens, *sources, extra=0)
    check(beats.values, expected, pool=False)
    assert tokens.begun == tokens.ended == tokens.total
    assert beats.states.count("beat") == len(expected)
    assert beats.states.count("wait_weights") == tokens.held + tokens.held_after
    if rate == 1 or which == "none":
        assert tokens.held == 0
    elif which != "last":
        assert tokens.held > 0
