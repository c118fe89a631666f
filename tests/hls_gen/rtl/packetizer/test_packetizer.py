"""The packetizer: frames of a raw stream become the packets that the driver would send, with random stalls; frames that
are too short or too long; resets; packets of a host between frames."""

import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from bitloom.golden.network import Model
from bitloom.golden.packing import to_bits
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packetizer import (
    BEATS,
    CONTROL,
    NUMBER,
    REGISTERS,
    SIGNATURE,
    STATUS,
    TRANSFER_FRAMES,
    Packetizer,
    RawStream,
)
from bitloom.hls_gen.design.packets import frame_header
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.cores import core_verilog
from bitloom.hls_gen.rtl.packetizer.packetizer import TOP, packetizer
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.virtual.sim import lint
from tests.cases import cases, integer_cases, random_images

from ..bench import Bench, Sink, Source, World, steady

RUN, RESET, ERROR_IRQ = (CONTROL.field(name).at(1) for name in ("RUN", "RESET", "ERROR_IRQ"))
BUSY, SHORT, LONG = (STATUS.field(name).at(1) for name in ("BUSY", "SHORT", "LONG"))
PARAMETERS = 0x89ABCDEF
MODELS = {**dict(cases()), **dict(integer_cases())}
RASTER = CompileChoices(map_order="raster")


class Shape(NamedTuple):
    """A network, and the raw stream that it gets."""

    network: str
    stream_bits: int
    raw: RawStream


PIXELS, VIDEO = RawStream(marks="packet"), RawStream(marks="video")
SHAPES = {
    "bits, values that nobody reads": Shape(
        "conv_strides", 32, PIXELS
    ),  # groups of 20 beats and 3 words, a shorter last one
    "planes": Shape("signed_8_input", 64, VIDEO),  # 8 beats, 9 words; constants
    "a pixel a group": Shape("int_conv_1x1", 32, PIXELS),
    "several pixels a beat": Shape("unsigned_4_input", 32, RawStream(marks="video", beat_values=4)),
    "less than a pixel a beat": Shape("int_conv_33", 64, RawStream(marks="packet", beat_values=11)),
    "one beat a frame": Shape("int_dense_33", 32, PIXELS),
}


def by_tier(names: Iterable[str], *quick: str) -> list[Any]:
    """Parameters, of which those that are not ``quick`` belong to the slow tier."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in names]


@lru_cache
def compiled(network: str, stream_bits: int) -> tuple[Model, Design, Manifest, Program]:
    model = MODELS[network]
    design = size_memories(network, [model], small_npu(model), RASTER, stream_bits=stream_bits)
    manifest = Manifest.of(design, "0" * 64)
    return model, design, manifest, compile_model(model, manifest, RASTER)


def numbers(bits: np.ndarray, size: int) -> list[int]:
    """Numbers of ``size`` bits each, low bit first."""
    return [int("".join(map(str, row[::-1])), 2) for row in bits.reshape(-1, size).tolist()]


def stream_words(words: np.ndarray, stream_bits: int) -> list[int]:
    return [int(word) for word in np.ascontiguousarray(words).view(f"<u{stream_bits // 8}")]


@pytest.fixture(scope="module", params=by_tier(SHAPES, "planes", "less than a pixel a beat"))
def built(request):
    shape = SHAPES[request.param]
    model, _, manifest, program = compiled(shape.network, shape.stream_bits)
    sizes = Packetizer.of(program, shape.stream_bits, shape.raw)
    with Bench(packetizer(Library(shape.stream_bits), sizes)) as bench:
        yield model, manifest, program, sizes, bench


class Camera(World):
    """A packetizer after its reset, with streams at all sides."""

    def __init__(self, built, stall: float = 0.0, seed: int = 0):
        self.model, self.manifest, self.program, self.sizes, bench = built
        super().__init__(bench, [])
        self.stall = stall
        self.draw = random.Random(seed)
        self.images = random_images(self.model, 9, np.random.default_rng(seed))
        for name in ("s_axi_awvalid", "s_axi_wvalid", "s_axi_arvalid", "s_axi_bready", "s_axi_rready"):
            bench[name] = 0
        for name in ("s_axis_tvalid", "s_axis_raw_tvalid", "m_axis_tready"):
            bench[name] = 0
        bench.reset()
        self.sink = Sink(bench, "m_axis_t", ("data", "last"), stall=stall, seed=seed)
        self.agents = [self.sink]
        self.write(SIGNATURE.offset, PARAMETERS)

    def beats(self, frame: int) -> list[dict[str, int]]:
        """A frame of the raw stream; bits of lanes that are no value's are noise, and so are marks nobody looks at."""
        p = self.sizes
        image = self.images[frame]
        codes = numbers(to_bits(image.reshape(1, -1), self.model.network.input.encoding).reshape(1, -1), p.value_bits)
        spare = p.lane_bits - p.value_bits
        lanes = [code | self.draw.getrandbits(spare) << p.value_bits if spare else code for code in codes]
        beats = []
        for k in range(p.beats):
            part = lanes[k * p.beat_values : (k + 1) * p.beat_values]
            data = sum(lane << j * p.lane_bits for j, lane in enumerate(part))
            marks = {"last": int(k == p.beats - 1)}
            if p.marks == "video":
                marks = {"last": self.draw.getrandbits(1), "user": int(k == 0)}
            beats.append({"data": data, **marks})
        return beats

    def give(self, *parts: list[dict[str, int]]) -> Source:
        """Beats of the raw stream, part after part."""
        items = [beat for part in parts for beat in part]
        source = Source(self.bench, "s_axis_raw_t", items, self.stall, self.draw.getrandbits(30))
        self.agents = [agent for agent in self.agents if getattr(agent, "prefix", "") != "s_axis_raw_t"] + [source]
        return source

    def host(self, transfers: list[list[int]]) -> Source:
        """Transfers of a host."""
        items = [{"data": w, "last": int(k == len(t) - 1)} for t in transfers for k, w in enumerate(t)]
        source = Source(self.bench, "s_axis_t", items, self.stall, self.draw.getrandbits(30))
        self.agents.append(source)
        return source

    def packet(self, frame: int, number: int, last: bool = False, beats: int | None = None) -> list[tuple[int, int]]:
        """The packet that the driver would send, as words with tlast; beats from ``beats`` on are 0."""
        p = self.sizes
        head = frame_header(self.manifest, self.program.frame_words, last, signature=PARAMETERS, number=number)
        payload = self.program.pack_images(self.images[frame : frame + 1])[0]
        if beats is not None:
            source = self.program.frame_source
            missing = source >= beats * p.beat_values * p.value_bits
            payload = payload & ~np.packbits(missing, bitorder="little").view("<u4")
        words = stream_words(np.concatenate([head, payload]), p.stream_bits)
        return [(word, int(k == len(words) - 1)) for k, word in enumerate(words)]

    def control(self, value: int) -> None:
        self.write(CONTROL.offset, value)

    @property
    def status(self) -> int:
        return self.read(STATUS.offset)

    def settle(self, cycles: int = 200) -> None:
        for _ in range(cycles):
            self.step()


@pytest.mark.parametrize("stall", [0, 0.5])
def test_frames_are_packets(built, stall):
    camera = Camera(built, stall)
    camera.write(NUMBER.offset, 254)
    camera.write(TRANSFER_FRAMES.offset, 3)
    camera.give(*map(camera.beats, range(7)))
    camera.settle(30)
    assert camera.sink.words == []  # nothing before RUN, and nothing is lost meanwhile
    camera.control(RUN)
    expected = [word for k in range(7) for word in camera.packet(k, (254 + k) % 256, k % 3 == 2)]
    camera.until(lambda: len(camera.sink.words) >= len(expected))
    camera.settle()
    assert camera.sink.words == expected
    assert camera.read(NUMBER.offset) == 261
    assert camera.status == 0


def test_no_frame_ends_a_transfer_unless_asked(built):
    camera = Camera(built)
    camera.give(*map(camera.beats, range(3)))
    camera.control(RUN)
    camera.until(lambda: camera.read(NUMBER.offset) == 3)
    assert camera.sink.words == [word for k in range(3) for word in camera.packet(k, k)]


def test_rate_and_latency(built):
    camera = Camera(built)
    p = camera.sizes
    header = 128 // camera.sizes.stream_bits
    source = camera.give(*map(camera.beats, range(3)))
    camera.control(RUN)
    camera.until(lambda: source.done)
    camera.settle(30 + p.group_words)
    frames = [
        camera.sink.taken[k : k + header + p.payload_words]
        for k in range(0, len(camera.sink.taken), header + p.payload_words)
    ]
    for k, frame in enumerate(frames):
        taken = source.taken[k * p.beats : (k + 1) * p.beats]
        assert steady(frame[:header])
        assert taken[0] == frame[header - 1] + 1
        assert frame[header] == taken[min(p.group_beats, p.beats) - 1] + 2
        if p.group_beats >= p.group_words:
            assert steady(taken)
        elif p.groups > 1:
            assert steady(frame[header:])


def test_packets_of_a_host_pass_between_frames(built):
    camera = Camera(built, 0.4, seed=5)
    transfers = [[camera.draw.getrandbits(camera.sizes.stream_bits) for _ in range(n)] for n in (1, 5, 2, 40, 3)]
    camera.control(RUN)
    camera.give(*map(camera.beats, range(6)))
    camera.host(transfers)
    camera.until(lambda: all(agent.done for agent in camera.agents))
    camera.settle()
    left = {
        "frame": [camera.packet(k, k) for k in range(6)],
        "host": [[(w, int(k == len(t) - 1)) for k, w in enumerate(t)] for t in transfers],
    }
    words = camera.sink.words
    while words:
        kind = next(kind for kind, parts in left.items() if parts and words[: len(parts[0])] == parts[0])
        words = words[len(left[kind].pop(0)) :]
    assert left == {"frame": [], "host": []}


@pytest.mark.parametrize("stall", [0, 0.5])
def test_a_short_frame_is_filled_up(built, stall):
    camera = Camera(built, stall, seed=1)
    beats = camera.sizes.beats
    if beats == 1:
        pytest.skip("a frame of one beat is never too short")
    enough = camera.draw.randrange(1, beats)
    part = camera.beats(1)[:enough]
    if camera.sizes.marks == "packet":
        part[-1]["last"] = 1
    camera.give(camera.beats(0), part, camera.beats(2), camera.beats(3))
    camera.control(RUN | ERROR_IRQ)
    camera.until(lambda: bool(camera.bench["irq"]))
    camera.settle()
    assert camera.status == SHORT
    assert camera.read(CONTROL.offset) == ERROR_IRQ
    assert camera.read(NUMBER.offset) == 2  # the last frame was the short one
    camera.write(STATUS.offset, SHORT)
    assert not camera.bench["irq"]
    assert camera.status == 0
    camera.control(RUN)
    camera.settle(20 * (beats + camera.sizes.payload_words))
    packets = [camera.packet(0, 0), camera.packet(1, 1, beats=enough), camera.packet(2, 2), camera.packet(3, 3)]
    assert camera.sink.words == [word for packet in packets for word in packet]
    assert camera.status == 0


@pytest.mark.parametrize("stall", [0, 0.5])
def test_a_long_frame_is_told(built, stall):
    camera = Camera(built, stall, seed=2)
    long = camera.beats(1)
    extra = [{**beat, **({"user": 0} if "user" in beat else {"last": 0})} for beat in camera.beats(2)]
    if camera.sizes.marks == "packet":
        long[-1]["last"] = 0
        extra[-1]["last"] = 1
    camera.give(camera.beats(0), long, extra, camera.beats(3))
    camera.control(RUN | ERROR_IRQ)
    camera.until(lambda: bool(camera.bench["irq"]))
    camera.settle()
    assert camera.status == LONG
    assert camera.read(NUMBER.offset) == 2  # the last frame was the long one
    camera.write(STATUS.offset, LONG)
    camera.control(RUN)
    camera.settle(20 * (camera.sizes.beats + camera.sizes.payload_words))
    assert camera.sink.words == [*camera.packet(0, 0), *camera.packet(1, 1), *camera.packet(3, 2)]
    assert camera.status == 0


def test_a_video_is_joined_at_its_next_frame(built):
    camera = Camera(built, 0.3, seed=3)
    if camera.sizes.marks != "video":
        pytest.skip("tlast of a frame that nobody saw begin is no mark of a frame")
    camera.give(camera.beats(0)[1:], camera.beats(1))
    camera.control(RUN)
    camera.settle(20 * (camera.sizes.beats + camera.sizes.payload_words))
    assert camera.sink.words == camera.packet(1, 0)


def test_it_stops_behind_a_frame(built):
    camera = Camera(built, 0.2, seed=4)
    source = camera.give(*map(camera.beats, range(3)))
    camera.control(RUN)
    camera.until(lambda: len(camera.sink.words) > 1)
    camera.control(0)
    camera.settle(20 * (camera.sizes.beats + camera.sizes.payload_words))
    assert camera.sink.words == camera.packet(0, 0)
    assert len(source.taken) == camera.sizes.beats
    camera.control(RUN)
    camera.settle(40 * (camera.sizes.beats + camera.sizes.payload_words))
    assert camera.sink.words == [word for k in range(3) for word in camera.packet(k, k)]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_reset_in_a_frame(built, cut):
    """The frame is dropped, the next one is whole; a host's transfer that was cut off doesn't count any more."""
    camera = Camera(built, 0.2, seed=6)
    source = camera.give(camera.beats(0), camera.beats(1))
    host = camera.host([[7, 8]])
    camera.until(lambda: len(host.taken) == 1)
    camera.agents.remove(host)
    camera.bench["s_axis_tvalid"] = 0
    camera.control(RUN)
    camera.settle()
    assert len(camera.sink.words) == 1  # no frame comes into a transfer
    assert not source.taken
    camera.control(RESET | RUN)
    taken = min(cut, camera.sizes.beats - 1)
    camera.until(lambda: len(source.taken) >= taken and len(camera.sink.words) > 2)
    camera.agents.remove(camera.sink)
    camera.bench["m_axis_tready"] = 0  # a word that is offered goes with the reset
    camera.control(RESET)
    assert camera.status == 0
    assert not camera.bench["m_axis_tvalid"]
    assert camera.read(NUMBER.offset) == 0
    begun = len(source.taken) > 0
    camera.sink = Sink(camera.bench, "m_axis_t", ("data", "last"), stall=0.2)
    camera.agents.append(camera.sink)
    camera.control(RUN)
    camera.settle(20 * (2 * camera.sizes.beats + camera.sizes.payload_words))
    assert source.done
    whole = camera.packet(1, 0) if begun else [*camera.packet(0, 0), *camera.packet(1, 1)]
    assert camera.sink.words == whole


def test_registers(built):
    camera = Camera(built)
    assert camera.read(BEATS.offset) == camera.sizes.beats
    camera.write(BEATS.offset, 0)
    assert camera.read(BEATS.offset) == camera.sizes.beats
    for register, mask in (
        (SIGNATURE, 0xFFFFFFFF),
        (NUMBER, 0xFFFFFFFF),
        (TRANSFER_FRAMES, 0xFFFF),
        (CONTROL, RUN | ERROR_IRQ),
    ):
        camera.write(register.offset, 0xFFFFFFFF & ~RESET if register is CONTROL else 0xFFFFFFFF)
        assert camera.read(register.offset) == mask
    assert camera.read(max(r.offset for r in REGISTERS) + 4) == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SHAPES)
def test_lint(name):
    shape = SHAPES[name]
    modules = core_verilog(packetizer, Packetizer.of(compiled(*shape[:2])[3], shape.stream_bits, shape.raw))
    assert next(iter(modules)) == TOP
    assert lint("\n".join(modules.values()), top=TOP) == []
