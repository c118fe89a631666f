"""pynq's own driver of the AXI DMA, and our link above it, drive the DMA core as they drive AMD's."""

from types import SimpleNamespace

import numpy as np
import pytest
from pynq.lib.dma import DMA_TYPE_RX, DMA_TYPE_TX, _SDMAChannel

from bitloom.driver.errors import TransferError
from bitloom.driver.link import DmaLink
from bitloom.hls_gen.design.dma import LENGTH, MM2S, S2MM, Dma
from bitloom.hls_gen.rtl.dma.dma import dma_core
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.driver.fake_bench import raises

from ..bench import Bench
from .memory import DECERR, Pace
from .test_dma import Board, buffer_words, packet

DMA = Dma(stream_bits=32)
SLOW = Pace(stall=0.4, latency=13)


class Buffer(np.ndarray):
    """A buffer of ``pynq.allocate``: a flush writes it to the simulated memory, an invalidate reads it from there."""

    def __new__(cls, board: Board, address: int, words: int):
        buffer = np.zeros(words, "u4").view(cls)
        buffer.board = board
        buffer.physical_address = address
        return buffer

    def flush(self) -> None:
        self.board.memory.words |= {self.physical_address + 4 * k: int(word) for k, word in enumerate(self)}

    def invalidate(self) -> None:
        self[:] = buffer_words(self.board.memory, self.physical_address, self.size)

    def freebuffer(self) -> None:
        pass


@pytest.fixture(scope="module")
def built():
    with Bench(dma_core(Library(DMA.stream_bits), DMA)) as bench:
        yield DMA, bench


def channel(board: Board, kind: int) -> _SDMAChannel:
    return _SDMAChannel(board, (1 << DMA.length_bits) - 1, board.bytes, kind, dre=False)


def test_channels_of_pynq(built):
    board = Board(built, SLOW, stall=0.3)
    send, receive = channel(board, DMA_TYPE_TX), channel(board, DMA_TYPE_RX)
    for count in (1, 40, 333):
        source, target = Buffer(board, 0x10_0FF0, count), Buffer(board, 0x20_0FEC, count)
        source[:] = board.draw.sample(range(1 << 32), count)
        board.sink.words.clear()
        board.give([int(word) ^ 0xFFFFFFFF for word in source])
        receive.transfer(target)
        send.transfer(source)
        send.wait()
        receive.wait()
        assert board.sink.words == packet([int(word) for word in source])
        assert (target == ~source.view("u4")).all()
        assert send.transferred == receive.transferred == 4 * count


@pytest.mark.parametrize("trouble", ["no memory", "no packet"])
def test_link(built, monkeypatch, trouble):
    """Several sends and a receive that tlast ends; an error of memory; a reset in a transfer; and all goes on."""
    board = Board(built, SLOW, stall=0.3)
    addresses = iter(range(0x40_0FC0, 0x80_0000, 0x1_0000))
    monkeypatch.setattr(
        "bitloom.driver.link.pynq.allocate", lambda shape, *_, **__: Buffer(board, next(addresses), shape[0])
    )
    core = SimpleNamespace(mmio=board, buffer_max_size=(1 << DMA.length_bits) - 1)
    core.sendchannel, core.recvchannel = channel(board, DMA_TYPE_TX), channel(board, DMA_TYPE_RX)
    link = DmaLink(core, "dma", {}, DMA.stream_bits, None)

    def exchange() -> None:
        words = link.buffer("send", 120)
        words[:] = board.draw.sample(range(1 << 32), 120)
        link.buffer("receive", 90)
        board.sink.words.clear()
        data = [board.draw.getrandbits(32) for _ in range(70)]
        board.give(data)
        link.exchange("send", (50, 51, 120), "receive", 90)
        while not link.ended():
            pass
        link.close_receive()
        sent = [int(word) for word in words]
        assert board.sink.words == packet(sent[:50]) + packet(sent[50:51]) + packet(sent[51:])
        assert link.received_bytes == 4 * 70 == board.read(S2MM + LENGTH.offset)
        assert list(link.buffer("receive", 90)[:70]) == data

    board.reset()
    link.start()
    exchange()
    exchange()
    if trouble == "no memory":
        first = link._buffers["send"].physical_address
        board.memory.refuses = {first + 4 * 20: DECERR}
        link.send("send", 120)
        with raises(TransferError, "dma: the send must end without error, got decode error (no memory at the address)"):
            while not link.sent():
                pass
        board.memory.refuses = {}
    else:
        link.exchange("send", (120,), "receive", 90)  # nothing comes: the receive never ends
        board.until(lambda: bool(board.sink.words))
        assert link.busy
    board.agents = [board.memory]
    board.bench.set(s_axis_s2mm_tvalid=0, m_axis_mm2s_tready=0)
    link.reset()
    assert not link.busy
    board.reset()
    assert board.read(MM2S + LENGTH.offset) == 0
    link.start()
    exchange()
