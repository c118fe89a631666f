"""The generated top at its pins: requests of all shapes on s_axi beside frames, tlast anywhere, resets at any cycle.

No harness and no virtual board in between: agents drive the five channels of AXI4-Lite and both streams apart from each
other. Every request is answered, in order; no register takes half a word; a result without an error is right.
"""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.headers import TRUNCATED
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.shell.top import top
from tests.cases import random_images
from tests.hls_gen.rtl.bench import Bench, Sink, Source, run
from tests.hls_gen.rtl.requests import Requests, some_reads, some_writes

from .test_packet_faults import FRAMES, KINDS, packets_of, three_layers

pytestmark = pytest.mark.slow
MOST_CYCLES = 64
"""Cycles in which an access is answered: a round of counters, and few more."""


@dataclass
class Device:
    """The running top, its manifest, the words of a load and of each frame, and what must come out of it."""

    bench: Bench
    manifest: Manifest
    packets: list[np.ndarray]
    expected: list[tuple[int, int]]

    def offset(self, name: str) -> int:
        """Byte offset of a register."""
        return self.manifest.register(name).offset

    def reset(self) -> None:
        """rst, with every valid and ready low."""
        names = ("s_axi_awvalid", "s_axi_wvalid", "s_axi_arvalid", "s_axi_bready", "s_axi_rready")
        self.bench.set(**dict.fromkeys((*names, "s_axis_tvalid", "m_axis_tready"), 0))
        self.bench.reset()

    def start(self) -> None:
        """Reset, and START."""
        self.reset()
        self.access("CONTROL", 1)

    def words(self, lasts: set[int] = frozenset()) -> list[dict[str, int]]:
        """The stream as its source gives it: tlast at the places in ``lasts``, and at its end."""
        data = np.concatenate(self.packets)
        per = self.manifest.stream_words
        whole = [sum(int(w) << 32 * k for k, w in enumerate(data[i : i + per])) for i in range(0, len(data), per)]
        return [{"data": word, "last": int(i in lasts or i == len(whole) - 1)} for i, word in enumerate(whole)]

    def ends(self) -> list[int]:
        """The place of each packet's last word."""
        return (np.cumsum([len(packet) for packet in self.packets]) // self.manifest.stream_words - 1).tolist()

    def access(self, name: str, value: int | None = None) -> int:
        """A plain read of a register, or a write; 0 of a write."""
        offset = self.offset(name)
        writes, reads = ([], [offset]) if value is None else ([(offset, value, 15)], [])
        requests = Requests(self.bench, writes, reads)
        run(self.bench, *requests.agents, extra=1)
        return requests.shown.words[0][0] if reads else 0

    def some(self, draw: random.Random, writes: int, reads: int) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Random writes, none of which starts, stops or resets the device, and reads."""
        scratch = self.offset("SCRATCH")
        spared = {self.offset(name) for name in ("CONTROL", "OWNER")}
        return some_writes(draw, writes, scratch, spared), some_reads(draw, reads, scratch)

    def right(self) -> None:
        """After a reset: START, the stream, its results and no error."""
        self.start()
        out = Sink(self.bench, "m_axis_t", ["data", "last"], len(self.expected))
        run(self.bench, Source(self.bench, "s_axis_t", self.words()), out)
        assert out.words == self.expected
        assert self.access("ERROR_CODE") == 0


@pytest.fixture(scope="module", params=KINDS)
def device(request):
    model, design = three_layers(*KINDS[request.param])
    manifest = Manifest.from_dict(generate(design).manifest)
    program = compile_model(model, manifest)
    images = random_images(model, FRAMES, np.random.default_rng(6))
    loads, frames = packets_of(manifest, program, images)
    with Bench(top(design, manifest.digest)) as bench:
        device = Device(bench, manifest, loads + frames, [])
        device.start()
        count = FRAMES * program.result_words // manifest.stream_words
        out = Sink(bench, "m_axis_t", ["data", "last"], count)
        run(bench, Source(bench, "s_axis_t", device.words()), out)
        words = np.array([w >> 32 * k & 0xFFFFFFFF for w, _ in out.words for k in range(manifest.stream_words)], "u4")
        np.testing.assert_array_equal(program.unpack_results(words), model.forward(images))
        device.expected = out.words
        yield device


@pytest.mark.parametrize("seed", range(12))
def test_requests_beside_frames(device, seed):
    """All five channels, at their own pace, while frames come and go with pauses; results are as without."""
    draw = random.Random(seed)
    bench = device.bench
    device.start()
    device.access("SCRATCH", 0x600D600D)
    requests = Requests(bench, *device.some(draw, 80, 80), draw)
    lasts = {end for end in device.ends() if draw.random() < 0.5}
    source = Source(bench, "s_axis_t", device.words(lasts), draw.choice([0, 0.3, 0.9]), seed)
    out = Sink(bench, "m_axis_t", ["data", "last"], len(device.expected), draw.choice([0, 0.3, 0.9]), seed)
    run(bench, *requests.agents, source, out)
    assert out.words == device.expected
    requests.check(device.offset("SCRATCH"), 0x600D600D, MOST_CYCLES)
    assert device.access("ERROR_CODE") == 0


@pytest.mark.parametrize("seed", range(25))
def test_tlast_anywhere(device, seed):
    """A tlast within a packet ends in TRUNCATED, and no word that comes before is wrong; registers answer meanwhile."""
    draw = random.Random(100 + seed)
    bench = device.bench
    device.start()
    words = device.words({draw.randrange(len(device.words())) for _ in range(draw.choice([1, 1, 3]))})
    wrong = {i for i, word in enumerate(words) if word["last"]} - set(device.ends())
    requests = Requests(bench, *device.some(draw, 20, 40), draw)
    source = Source(bench, "s_axis_t", words, draw.choice([0, 0.5]), seed)
    out = Sink(bench, "m_axis_t", ["data", "last"], None, draw.choice([0, 0.5]), seed)
    run(bench, *requests.agents, source, out, extra=3000)
    assert out.words == device.expected[: len(out.words)]
    assert device.access("ERROR_CODE") == (TRUNCATED if wrong else 0)
    assert wrong or len(out.words) == len(device.expected)
    device.right()


@pytest.mark.parametrize("seed", range(15))
def test_rst_at_any_cycle(device, seed):
    """In the midst of requests and frames: what came before is right, and all is right again."""
    draw = random.Random(200 + seed)
    bench = device.bench
    device.start()
    requests = Requests(bench, *device.some(draw, 30, 30), draw)
    source = Source(bench, "s_axis_t", device.words(), draw.choice([0, 0.5]), seed)
    out = Sink(bench, "m_axis_t", ["data", "last"], None, draw.choice([0, 0.5]), seed)
    run(bench, *requests.agents, source, out, cycles=draw.randrange(1, 2500))
    assert out.words == device.expected[: len(out.words)]
    device.right()


@pytest.mark.parametrize("seed", range(15))
def test_soft_reset_at_any_cycle(device, seed):
    """By a write whose halves are apart: all requests are answered, all of the stream is taken, all is right again."""
    draw = random.Random(300 + seed)
    bench = device.bench
    device.start()
    device.access("SCRATCH", 7)
    writes, reads = device.some(draw, 30, 30)
    writes.insert(draw.randrange(len(writes)), (device.offset("CONTROL"), 3, 15))
    requests = Requests(bench, writes, reads, draw)
    source = Source(bench, "s_axis_t", device.words(), draw.choice([0, 0.5]), seed)
    bench["m_axis_tready"] = 1  # no sink: a reset takes back what m_axis offers
    run(bench, *requests.agents, source)
    requests.check(device.offset("SCRATCH"), 7, MOST_CYCLES)
    device.right()
