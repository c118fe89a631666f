"""The DMA core: transfers at any address and length, random stalls, errors, resets in the middle, interrupts."""

import random
import re

import pytest

from bitloom.hls_gen.design.dma import (
    ADDRESS,
    ADDRESS_MSB,
    BURST_BEATS,
    CONTROL,
    LENGTH,
    MM2S,
    RESET_CONTROL,
    S2MM,
    STATUS,
    Dma,
)
from bitloom.hls_gen.rtl.cores import core_verilog
from bitloom.hls_gen.rtl.dma.dma import TOP, dma_core
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.virtual.sim import lint

from ..bench import Bench, Each, Sink, Source, World, steady
from .memory import DECERR, SLVERR, Memory, Pace

SIZES = {"32": Dma(stream_bits=32, length_bits=14), "64": Dma(stream_bits=64, address_bits=40)}
RUN, RESET, DONE_IRQ, ERROR_IRQ = (CONTROL.field(name).at(1) for name in ("RUN", "RESET", "DONE_IRQ", "ERROR_IRQ"))
BITS = {field.name: field.at(1) for field in STATUS.fields}
PACES = {
    "fast": Pace(),
    "slow": Pace(stall=0.5, latency=17),
    "patient": Pace(stall=0.2, latency=5, patient=True),
    "at_once": Pace(latency=1),
}


@pytest.fixture(scope="module", params=SIZES)
def built(request):
    dma = SIZES[request.param]
    with Bench(dma_core(Library(dma.stream_bits), dma)) as bench:
        yield dma, bench


class Board(World):
    """A DMA after its reset, with memory and streams."""

    def __init__(self, built, pace: Pace, seed: int = 0, stall: float = 0.0):
        self.dma, bench = built
        super().__init__(bench, [])
        self.bytes = self.dma.stream_bits // 8
        self.draw = random.Random(seed)
        self.stall = stall
        for name in ("s_axi_awvalid", "s_axi_wvalid", "s_axi_arvalid", "s_axi_bready", "s_axi_rready"):
            bench[name] = 0
        bench["s_axis_s2mm_tvalid"] = 0
        bench.reset()
        self.memory = Memory(bench, self.bytes, pace, seed)
        self.sink = Sink(bench, "m_axis_mm2s_t", ("data", "last"), stall=stall, seed=seed)
        self.source: Source | None = None
        self.agents = [self.memory, self.sink]

    def start(self, channel: int, interrupts: int = 0) -> None:
        self.write(channel + CONTROL.offset, RUN | interrupts)

    def transfer(self, channel: int, address: int, length: int) -> None:
        self.write(channel + ADDRESS.offset, address & 0xFFFFFFFF)
        self.write(channel + ADDRESS_MSB.offset, address >> 32)
        self.write(channel + LENGTH.offset, length)

    def give(self, words: list[int], last: bool = True) -> None:
        """A packet at the stream to memory."""
        items = [{"data": word, "last": int(last and k == len(words) - 1)} for k, word in enumerate(words)]
        self.source = Source(self.bench, "s_axis_s2mm_t", items, self.stall, self.draw.getrandbits(30))
        self.agents = [self.memory, self.sink, self.source]

    def status(self, channel: int) -> int:
        return self.read(channel + STATUS.offset)

    def wait(self, channel: int) -> int:
        """STATUS once the transfer has ended."""
        self.until(lambda: bool(self.status(channel) & (BITS["IDLE"] | BITS["HALTED"])))
        return self.status(channel)

    def reset(self) -> None:
        self.write(self.draw.choice([MM2S, S2MM]) + CONTROL.offset, RESET)
        self.agents = [self.memory]  # words that are offered go with the reset, on both streams
        self.bench.set(s_axis_s2mm_tvalid=0, m_axis_mm2s_tready=0)
        self.until(lambda: not self.read(MM2S + CONTROL.offset) & RESET)
        self.sink = Sink(self.bench, "m_axis_mm2s_t", ("data", "last"), stall=self.stall)
        self.agents = [self.memory, self.sink]

    def random_buffer(self, most_words: int) -> tuple[int, int]:
        """Byte address and words of a buffer, often at a boundary of 4 KB."""
        words = self.draw.choice([1, 2, 15, 16, 17, self.draw.randint(1, most_words)])
        page = self.draw.randrange(1 << (self.dma.address_bits - 12)) << 12
        edge = self.draw.choice([0, -self.bytes, -self.draw.randrange(64) * self.bytes, self.bytes])
        return (page + edge) % (1 << self.dma.address_bits - 1), words


def buffer_words(memory: Memory, address: int, words: int) -> list[int]:
    return [memory.word(address + k * memory.bytes) for k in range(words)]


def packet(words: list[int]) -> list[tuple[int, int]]:
    return [(word, int(k == len(words) - 1)) for k, word in enumerate(words)]


def done(status: int) -> bool:
    return status == BITS["IDLE"] | BITS["DONE_IRQ"]


def test_lint(built):
    dma, _ = built
    modules = core_verilog(dma_core, dma)
    assert next(iter(modules)) == TOP
    assert lint("\n".join(modules.values()), top=TOP) == []


def test_registers_after_reset(built):
    board = Board(built, Pace())
    for channel in (MM2S, S2MM):
        assert board.read(channel + CONTROL.offset) == RESET_CONTROL == 0x0001_0002
        assert board.status(channel) == BITS["HALTED"]
        assert [board.read(channel + r.offset) for r in (ADDRESS, ADDRESS_MSB, LENGTH)] == [0, 0, 0]
    for offset in (0x08, 0x10, 0x20, 0x2C, 0x38, 0x60, 0xFFC):
        board.write(offset, 0xFFFFFFFF)
        assert board.read(offset) == 0


def test_registers_give_back_what_was_written(built):
    board = Board(built, Pace())
    for channel in (MM2S, S2MM):
        board.write(channel + ADDRESS.offset, 0xFEDCBA98)
        board.write(channel + ADDRESS_MSB.offset, 0x1234_5678)
        board.write(channel + CONTROL.offset, RUN | DONE_IRQ | ERROR_IRQ)
        assert board.read(channel + ADDRESS.offset) == 0xFEDCBA98
        high_bits = board.dma.address_bits - 32
        assert board.read(channel + ADDRESS_MSB.offset) == 0x1234_5678 & (1 << high_bits) - 1
        assert board.read(channel + CONTROL.offset) == RUN | DONE_IRQ | ERROR_IRQ | RESET_CONTROL
        assert board.status(channel) == 0  # runs, and no transfer has ended
        board.write(channel + CONTROL.offset, 0)
        assert board.status(channel) == BITS["HALTED"]


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("stall", [0, 0.6])
def test_memory_to_stream(built, pace, stall):
    board = Board(built, PACES[pace], stall=stall, seed=len(pace))
    board.start(MM2S)
    for _ in range(8):
        address, words = board.random_buffer(150)
        board.sink.words.clear()
        board.transfer(MM2S, address, words * board.bytes)
        assert done(board.wait(MM2S))
        assert board.sink.words == packet(buffer_words(board.memory, address, words))
        assert board.read(MM2S + LENGTH.offset) == words * board.bytes
        assert board.memory.quiet
        board.write(MM2S + STATUS.offset, DONE_IRQ)
        assert board.status(MM2S) == BITS["IDLE"]


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("stall", [0, 0.6])
def test_stream_to_memory(built, pace, stall):
    """Packets as long as the buffer, and shorter ones; no other word changes."""
    board = Board(built, PACES[pace], stall=stall, seed=len(pace))
    board.start(S2MM)
    for _ in range(8):
        address, room = board.random_buffer(150)
        data = [
            board.draw.getrandbits(board.dma.stream_bits) for _ in range(board.draw.choice([room, 1, room // 2 + 1]))
        ]
        data = data[:room]
        board.memory.words.clear()
        board.give(data)
        board.transfer(S2MM, address, room * board.bytes)
        assert done(board.wait(S2MM))
        assert board.memory.words == {address + k * board.bytes: word for k, word in enumerate(data)}
        assert board.read(S2MM + LENGTH.offset) == len(data) * board.bytes
        board.write(S2MM + STATUS.offset, DONE_IRQ)


def test_nothing_is_taken_before_a_transfer(built):
    board = Board(built, Pace())
    board.give([5, 6])
    board.start(S2MM)
    for _ in range(50):
        board.step()
    assert board.source.taken == []


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_at_once(built, seed):
    board = Board(built, PACES["slow"], seed=seed, stall=0.3)
    for channel in (MM2S, S2MM):
        board.start(channel)
    reads, writes = 0x1_0040, 0x2_0FF8
    data = [board.draw.getrandbits(board.dma.stream_bits) for _ in range(333)]
    board.give(data)
    board.transfer(S2MM, writes, 333 * board.bytes)
    board.transfer(MM2S, reads, 222 * board.bytes)
    assert done(board.wait(MM2S))
    assert done(board.wait(S2MM))
    assert board.sink.words == packet(buffer_words(board.memory, reads, 222))
    assert buffer_words(board.memory, writes, 333) == data


def test_rate(built):
    """A word a cycle each way at a memory with a latency of 40 cycles, all bursts but the ends of 16 beats."""
    board = Board(built, Pace(latency=40))
    for channel in (MM2S, S2MM):
        board.start(channel)
    board.transfer(MM2S, 0x1000, 500 * board.bytes)
    assert done(board.wait(MM2S))
    assert steady(board.sink.taken)
    board.give(list(range(500)))
    board.transfer(S2MM, 0x1000, 500 * board.bytes)
    assert done(board.wait(S2MM))
    assert steady(board.source.taken)
    assert [beats for _, _, beats in board.memory.bursts] == 2 * [*[BURST_BEATS] * 31, 4]


TIMED = (
    "s_axi_wvalid",
    *("m_axi_mm2s_arvalid", "m_axi_mm2s_rvalid", "m_axis_mm2s_tvalid"),
    *("m_axi_s2mm_awvalid", "m_axi_s2mm_wvalid"),
)


def test_latency(built):
    """From a write of LENGTH to a burst 6 cycles, from a word of memory to the stream 2, from the last word of a burst
    at the stream to memory 2."""
    board = Board(built, Pace(latency=20))
    seen: dict[str, int] = {}

    def look() -> None:
        for name in TIMED:
            if board.bench[name]:
                seen.setdefault(name, board.bench.cycle)

    for channel in (MM2S, S2MM):
        board.start(channel)
    board.write(MM2S + ADDRESS.offset, 0x1000)
    board.agents.append(Each(look))
    board.write(MM2S + LENGTH.offset, 4 * board.bytes)
    assert done(board.wait(MM2S))
    assert seen["m_axi_mm2s_arvalid"] - seen["s_axi_wvalid"] == 6
    assert seen["m_axis_mm2s_tvalid"] - seen["m_axi_mm2s_rvalid"] == 2
    board.give([1, 2, 3])
    board.agents.append(Each(look))
    board.transfer(S2MM, 0x1000, 4 * board.bytes)
    assert done(board.wait(S2MM))
    assert {seen[name] - board.source.taken[-1] for name in ("m_axi_s2mm_awvalid", "m_axi_s2mm_wvalid")} == {2}


def failure(status: int) -> str:
    """The error in STATUS of a channel that has halted for it."""
    named = [name for name in ("INTERNAL", "SLAVE", "DECODE") if status & BITS[name]]
    assert status == BITS["HALTED"] | BITS["ERROR_IRQ"] | sum(BITS[name] for name in named)
    return " ".join(named)


@pytest.mark.parametrize("channel", [MM2S, S2MM])
@pytest.mark.parametrize(("address", "length"), [(0x1000, 0), (0x1001, 8), (0x1002, 16), (0x1000, 9), (0x1003, 3)])
def test_a_buffer_of_no_whole_words(built, channel, address, length):
    board = Board(built, Pace())
    board.start(channel)
    board.transfer(channel, address, length)
    assert failure(board.wait(channel)) == "INTERNAL"
    board.start(channel)  # only a reset helps
    board.transfer(channel, 0x1000, 8)
    assert failure(board.wait(channel)) == "INTERNAL"
    assert board.memory.bursts == []
    board.reset()
    assert board.status(channel) == BITS["HALTED"]


@pytest.mark.sample(8)
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize(("answer", "name"), [(SLVERR, "SLAVE"), (DECERR, "DECODE")])
def test_memory_refuses_a_read(built, pace, answer, name):
    board = Board(built, PACES[pace], stall=0.2)
    board.start(MM2S)
    at = 37
    board.memory.refuses = {
        0x1000 + at * board.bytes: answer,
        0x1000 + (at + 1) * board.bytes: SLVERR + DECERR - answer,
    }
    board.transfer(MM2S, 0x1000, 100 * board.bytes)
    assert failure(board.wait(MM2S)) == name
    for _ in range(200):
        board.step()
    assert board.sink.words == [(word, 0) for word in buffer_words(board.memory, 0x1000, at)]
    assert board.memory.quiet
    works_after_reset(board)


@pytest.mark.sample(8)
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize(("answer", "name"), [(SLVERR, "SLAVE"), (DECERR, "DECODE")])
def test_memory_refuses_a_write(built, pace, answer, name):
    board = Board(built, PACES[pace], stall=0.2)
    board.start(S2MM)
    board.memory.refuses = {0x1000 + 37 * board.bytes: answer}
    board.give(list(range(1, 301)))
    board.transfer(S2MM, 0x1000, 300 * board.bytes)
    assert failure(board.wait(S2MM)) == name
    bursts = len(board.memory.bursts)
    for _ in range(200):
        board.step()
    assert len(board.memory.bursts) == bursts
    assert board.memory.quiet
    assert not board.source.done
    works_after_reset(board)


def test_a_packet_longer_than_its_buffer(built):
    board = Board(built, PACES["slow"])
    board.start(S2MM)
    board.give(list(range(1, 60)))
    board.transfer(S2MM, 0x0FF8, 40 * board.bytes)
    assert failure(board.wait(S2MM)) == "INTERNAL"
    assert board.memory.words == {0x0FF8 + k * board.bytes: k + 1 for k in range(40)}
    works_after_reset(board)


def works_after_reset(board: Board) -> None:
    """Both channels, from halted and without errors to a transfer each."""
    board.memory.refuses = {}
    board.reset()
    assert board.memory.quiet
    for channel in (MM2S, S2MM):
        assert board.read(channel + CONTROL.offset) == RESET_CONTROL
        assert board.status(channel) == BITS["HALTED"]
        board.start(channel)
    data = [board.draw.getrandbits(board.dma.stream_bits) for _ in range(50)]
    board.give(data)
    board.transfer(MM2S, 0x3F00, 70 * board.bytes)
    board.transfer(S2MM, 0x7F00, 50 * board.bytes)
    assert done(board.wait(MM2S))
    assert done(board.wait(S2MM))
    assert board.sink.words == packet(buffer_words(board.memory, 0x3F00, 70))
    assert buffer_words(board.memory, 0x7F00, 50) == data


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(12))
def test_reset_in_the_middle(built, seed):
    """At any moment: bursts that are under way end by the rules, none begins, and everything works anew."""
    draw = random.Random(seed)
    pace = Pace(stall=draw.choice([0, 0.3, 0.8]), latency=draw.choice([1, 9, 60]), patient=bool(draw.getrandbits(1)))
    board = Board(built, pace, seed=seed, stall=draw.choice([0, 0.5, 0.9]))
    for channel in (MM2S, S2MM):
        board.start(channel)
    board.give(list(range(1000)))
    board.transfer(MM2S, 0x1F80, 1000 * board.bytes)
    board.transfer(S2MM, 0x5F80, 1000 * board.bytes)
    for _ in range(draw.randrange(200)):
        board.step()
    works_after_reset(board)


def test_reset_while_the_sink_takes_nothing(built):
    board = Board(built, Pace(), stall=1.0)
    board.start(MM2S)
    board.transfer(MM2S, 0x1000, 1000 * board.bytes)
    for _ in range(300):
        board.step()
    assert board.bench["m_axis_mm2s_tvalid"]
    board.stall = 0
    works_after_reset(board)


def test_reset_waits_for_what_is_under_way(built):
    board = Board(built, Pace(latency=500))
    board.start(MM2S)
    board.transfer(MM2S, 0x1000, 64 * board.bytes)
    board.until(lambda: bool(board.memory.reads))
    board.write(S2MM + CONTROL.offset, RESET)
    assert board.read(MM2S + CONTROL.offset) & board.read(S2MM + CONTROL.offset) & RESET
    assert board.until(lambda: not board.read(S2MM + CONTROL.offset) & RESET) > 400
    assert board.memory.quiet


@pytest.mark.parametrize("channel", [MM2S, S2MM])
def test_a_channel_halts_at_the_end_of_its_transfer(built, channel):
    board = Board(built, PACES["slow"])
    board.start(channel)
    board.give(list(range(100)))
    board.transfer(channel, 0x1000, 100 * board.bytes)
    board.write(channel + CONTROL.offset, 0)
    assert board.status(channel) == 0
    assert board.wait(channel) == BITS["HALTED"] | BITS["DONE_IRQ"]
    board.transfer(channel, 0x1000, 100 * board.bytes)  # halted: nothing begins
    assert board.wait(channel) == BITS["HALTED"] | BITS["DONE_IRQ"]
    board.start(channel)
    assert board.status(channel) == BITS["DONE_IRQ"]


@pytest.mark.parametrize(("channel", "port"), [(MM2S, "mm2s_introut"), (S2MM, "s2mm_introut")])
def test_interrupts(built, channel, port):
    board = Board(built, Pace())
    line = lambda: board.bench[port]  # noqa: E731
    board.start(channel, DONE_IRQ | ERROR_IRQ)
    for _ in range(2):
        board.give([1, 2, 3])
        board.transfer(channel, 0x1000, 3 * board.bytes)
        board.until(lambda: bool(line()))
        assert done(board.status(channel))
        board.write(channel + STATUS.offset, ERROR_IRQ)
        assert line()
        board.write(channel + STATUS.offset, DONE_IRQ)
        assert not line()
    board.start(channel, ERROR_IRQ)
    board.give([1, 2, 3])
    board.transfer(channel, 0x1000, 3 * board.bytes)
    assert done(board.wait(channel))
    assert not line()  # not enabled
    board.transfer(channel, 0x1000, 1)
    board.until(lambda: bool(line()))
    board.write(channel + STATUS.offset, ERROR_IRQ | DONE_IRQ)
    assert not line()
    assert board.status(channel) == BITS["HALTED"] | BITS["INTERNAL"]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"stream_bits": 128}, "dma: stream_bits must be 32 or 64, got 128"),
        ({"stream_bits": 32, "address_bits": 31}, "dma: address_bits must be 32..64, got 31"),
        ({"stream_bits": 32, "length_bits": 27}, "dma: length_bits must be 8..26, got 27"),
        ({"stream_bits": 32, "length_bits": 7.0}, "dma: length_bits must be 8..26, got 7.0"),
    ],
)
def test_bad_sizes(sizes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Dma(**sizes)
