"""Device, DMA and bridge as a Zynq-7000 has them: a processor's AXI3 port reaches all registers, and frames that lie in
memory give golden's results there."""

import numpy as np
import pytest

from bitloom.driver.frames import Frames, loads
from bitloom.golden.kernels import packed
from bitloom.hls_gen.design.dma import ADDRESS, CONTROL, LENGTH, MM2S, S2MM, STATUS, Dma
from bitloom.hls_gen.design.registers import CONTROL as DEVICE_CONTROL
from bitloom.hls_gen.design.registers import IDENT, register_map
from bitloom.hls_gen.rtl.dma.zynq import TOP, zynq, zynq_verilog
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.shell.top import top
from bitloom.overlay.virtual.sim import lint
from tests.cases import random_images

from ..bench import Bench, World
from ..packetizer.test_packetizer import compiled
from .memory import DECERR, OKAY, SLVERR, Memory, Pace
from .test_dma import BITS, RUN

BASES = {"dma": 0x4040_0000, "device": 0x43C0_0000}
UP, WRAPPING = 1, 2
"""Types of bursts."""


@pytest.fixture(scope="module", params=[32, pytest.param(64, marks=pytest.mark.slow)])
def built(request):
    model, design, manifest, program = compiled("signed_8_input", request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitloom.hls_gen.rtl.dma.system._device", lambda name, bits: top(design, "0" * 64))
        block = zynq(Library(request.param), Dma(stream_bits=request.param), "bitloom_top", BASES)
    with Bench(block) as bench:
        yield model, design, manifest, program, bench


class Board(World):
    """The processor at the AXI3 port, and memory."""

    def __init__(self, bench: Bench, word_bytes: int):
        super().__init__(bench, [])
        for name in ("awvalid", "wvalid", "arvalid", "bready", "rready"):
            bench[f"s_axi3_{name}"] = 0
        bench.reset()
        self.memory = Memory(bench, word_bytes, Pace(stall=0.2, latency=9))
        self.agents = [self.memory]

    def _ask(self, channel: str, address: int, count: int, burst: int) -> int:
        """Offer a burst until it is taken; its ID."""
        bench = self.bench
        name = f"s_axi3_{channel}"
        number = address * 5 % 4093
        ports = {"id": number, "addr": address, "len": count - 1, "burst": burst, "valid": 1}
        bench.set(**{f"{name}{port}": value for port, value in ports.items()})
        self.until(lambda: bool(bench[f"{name}ready"]))
        self.step()
        bench[f"{name}valid"] = 0
        return number

    def put(self, address: int, *words: int, burst: int = UP) -> int:
        """Write a burst; its answer."""
        bench = self.bench
        number = self._ask("aw", address, len(words), burst)
        for word in words:
            bench.set(s_axi3_wdata=word, s_axi3_wstrb=15, s_axi3_wvalid=1)
            self.until(lambda: bool(bench["s_axi3_wready"]))
            self.step()
            bench["s_axi3_wvalid"] = 0
        self.until(lambda: bool(bench["s_axi3_bvalid"]))
        answer = bench["s_axi3_bid"], bench["s_axi3_bresp"]
        bench["s_axi3_bready"] = 1
        self.step()
        bench["s_axi3_bready"] = 0
        assert answer[0] == number
        return answer[1]

    def get(self, address: int, count: int = 1, burst: int = UP) -> list[tuple[int, int]]:
        """Read a burst: each word and its answer."""
        bench = self.bench
        number = self._ask("ar", address, count, burst)
        words = []
        bench["s_axi3_rready"] = 1
        for k in range(count):
            self.until(lambda: bool(bench["s_axi3_rvalid"]))
            assert (bench["s_axi3_rid"], bench["s_axi3_rlast"]) == (number, int(k == count - 1))
            words.append((bench["s_axi3_rdata"], bench["s_axi3_rresp"]))
            self.step()
        bench["s_axi3_rready"] = 0
        return words

    def set(self, core: str, offset: int, value: int) -> None:
        assert self.put(BASES[core] + offset, value) == OKAY

    def ask(self, core: str, offset: int) -> int:
        ((value, answer),) = self.get(BASES[core] + offset)
        assert answer == OKAY
        return value

    def transfer(self, channel: int, address: int, words: int) -> None:
        """Begin a transfer of so many 32-bit words."""
        self.set("dma", channel + ADDRESS.offset, address)
        self.set("dma", channel + LENGTH.offset, 4 * words)

    def wait(self, channel: int) -> None:
        self.until(lambda: bool(self.ask("dma", channel + STATUS.offset) & BITS["IDLE"]))

    def send(self, words: np.ndarray, address: int) -> None:
        """Words in memory, sent by the DMA."""
        each = self.memory.bytes
        values = np.ascontiguousarray(words).view(f"<u{each}").tolist()
        self.memory.words |= {address + each * k: value for k, value in enumerate(values)}
        self.transfer(MM2S, address, len(words))
        self.wait(MM2S)


def test_registers_at_the_processor(built):
    _, design, _, _, bench = built
    offsets = {register.name: register.offset for register in register_map(design)}
    board = Board(bench, design.stream_bits // 8)
    assert board.ask("device", offsets["IDENT"]) == IDENT
    board.set("device", offsets["SCRATCH"], 0xDEADBEEF)
    board.set("dma", S2MM + ADDRESS.offset, 0x1234_5678)
    assert board.ask("device", offsets["SCRATCH"]) == 0xDEADBEEF
    assert board.ask("dma", S2MM + ADDRESS.offset) == 0x1234_5678
    geometry = design.stream_bits << 8 | len(design.npus)
    assert board.get(BASES["device"] + offsets["GEOMETRY"], 2) == [(geometry, OKAY), (0xDEADBEEF, OKAY)]
    assert board.put(BASES["device"] + offsets["GEOMETRY"], 1, 2) == OKAY
    assert board.ask("device", offsets["SCRATCH"]) == 2
    assert board.put(0x4000_0000, 7) == DECERR
    assert board.put(BASES["dma"] + 1, 7) == SLVERR
    assert board.put(BASES["device"] + offsets["SCRATCH"], 7, burst=WRAPPING) == SLVERR
    assert board.ask("device", offsets["SCRATCH"]) == 2
    assert [answer for _, answer in board.get(BASES["dma"] + 0xFFC, 2)] == [OKAY, DECERR]
    assert [answer for _, answer in board.get(BASES["dma"], 2, WRAPPING)] == [SLVERR, SLVERR]


def test_frames_from_memory(built):
    model, design, manifest, program, bench = built
    board = Board(bench, design.stream_bits // 8)
    for channel in (MM2S, S2MM):
        board.set("dma", channel + CONTROL.offset, RUN)
    for part in loads(program, manifest, 1 << 14):
        board.send(part, 0x10_0000)
    offsets = {register.name: register.offset for register in register_map(design)}
    board.set("device", offsets["CONTROL"], DEVICE_CONTROL.field("START").at(1))
    images = random_images(model, 3, np.random.default_rng(0))
    frames = Frames(manifest, program, 1 << 20)
    blocks = np.empty(len(images) * frames.words, np.uint32)
    frames.fill(blocks, images, board.ask("device", offsets["SIGNATURE"]), 0)
    words = len(images) * program.result_words
    board.transfer(S2MM, 0x20_0FF8, words)
    board.send(blocks, 0x30_0000)
    board.wait(S2MM)
    assert bench["irq"] == bench["mm2s_introut"] == 0  # none is enabled
    each = board.memory.bytes
    results = [board.memory.word(0x20_0FF8 + each * k) for k in range(words * 4 // each)]
    results = np.array(results, f"<u{each}").view("<u4")
    np.testing.assert_array_equal(program.unpack_results(results), packed.forward(model, images))


@pytest.mark.sample(1)
@pytest.mark.parametrize("stream_bits", [32, 64])
def test_lint(stream_bits):
    _, design, _, _ = compiled("signed_8_input", stream_bits)
    modules = zynq_verilog(Dma(stream_bits=stream_bits), "bitloom_top", tuple(BASES.items()))
    assert next(iter(modules)) == TOP
    device = top(design, "0" * 64).modules()
    text = "\n".join([*modules.values(), *(text for name, text in device.items() if name not in modules)])
    assert lint(text, top=TOP) == []
