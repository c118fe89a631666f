"""The stream to a core and back: a DMA, and the buffers that it sends from and receives into.

The DMA is Xilinx' AXI DMA in simple mode, through ``pynq.lib.dma``: start, look, finish, reset; nothing here waits for
ever. What pynq leaves to us, and what is safe on a board (pynq/lib/dma.py 3.0 to 4.0; Xilinx PG021):

* ``channel.wait()`` spins until the channel is idle: for ever where somebody else resets the DMA a moment before. It is
  not called; what it does after that, to invalidate the receive buffer and to read the number of bytes, is done here.
* ``channel.stop()`` clears the run bit and spins until the channel halts, which it does only at the end of the
  transfer under way: with a stuck device, never. It is not called.
* The only abort is bit 2 of a control register. It resets both channels, finishes what is outstanding on the memory
  bus, forgets transfers and errors, and clears itself. Both channels then are halted.
* ``channel.start()`` spins until the channel runs, so the run bit is set and seen here first; ``start`` is then called
  for pynq's own book-keeping (first transfer, interrupt enable).
* A buffer must not be freed before its transfer has ended or the DMA was reset: the DMA writes by physical address.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitloom.hls_gen.design import dma
from bitloom.hls_gen.design.manifest import VLNV
from bitloom.hls_gen.design.training_manifest import VLNV as TRAINING_VLNV

from .errors import DesignMismatch, TransferError
from .pynq_api import pynq
from .raw_stream import PacketizerCore as PacketizerCore  # pynq asks this module for drivers of our cores

SEND, RECEIVE = dma.MM2S, dma.S2MM
CONTROL, STATUS, ADDRESS, LENGTH = (r.offset for r in (dma.CONTROL, dma.STATUS, dma.ADDRESS, dma.LENGTH))
RUN, RESET = (dma.CONTROL.field(name).at(1) for name in ("RUN", "RESET"))
HALTED, IDLE, INTERRUPT = (dma.STATUS.field(name).at(1) for name in ("HALTED", "IDLE", "DONE_IRQ"))
ERRORS = {
    dma.STATUS.field("INTERNAL").at(1): "internal error (length 0, or a longer packet than the receive buffer)",
    dma.STATUS.field("SLAVE").at(1): "slave error (memory refused the access)",
    dma.STATUS.field("DECODE").at(1): "decode error (no memory at the address)",
}


class Core(pynq.DefaultIP):  # type: ignore[misc]
    """pynq's driver of a core of ours. Devices use its ``read`` and ``write``, which are pynq's."""

    bindto = (VLNV, TRAINING_VLNV)


class DmaLink:
    """The two channels of one DMA, and buffers for them, each with a name.

    Parameters
    ----------
    dma
        ``pynq.lib.dma.DMA``.
    name
        Name of the DMA, for messages.
    parameters
        Entry ``parameters`` of the DMA in the overlay's ``ip_dict``.
    stream_bits
        Width in bits of the streams that the design has.
    device
        ``pynq`` device in whose memory the buffers lie.

    Attributes
    ----------
    limit_bytes
        Longest transfer, in whole stream words.
    received_bytes
        Length of the receive that was closed last.

    Raises
    ------
    DesignMismatch
        The DMA has no simple mode, lacks a channel, or is of another width.
    """

    def __init__(self, dma: Any, name: str, parameters: dict[str, Any], stream_bits: int, device: Any) -> None:
        for key, what in (("c_include_sg", "scatter-gather"), ("c_micro_dma", "micro mode")):
            if int(parameters.get(key, 0)):
                raise DesignMismatch(f"{name}: the DMA must be in simple mode, got {what} ({key} = 1)")
        for key in ("c_m_axis_mm2s_tdata_width", "c_s_axis_s2mm_tdata_width"):
            if int(parameters.get(key, stream_bits)) != stream_bits:
                raise DesignMismatch(f"{name}: {key} must be {stream_bits}, got {parameters[key]}")
        if dma.sendchannel is None or dma.recvchannel is None:
            raise DesignMismatch(f"{name}: the DMA must have a send and a receive channel, got one of them")
        self._dma = dma
        self._name = name
        self._device = device
        word_bytes = stream_bits // 8
        self.limit_bytes: int = dma.buffer_max_size // word_bytes * word_bytes
        self.received_bytes = 0
        self._buffers: dict[str, Any] = {}
        self._target: Any = None  # buffer of the receive under way
        self._parts: deque[tuple[Any, int, int]] = deque()  # (buffer, bytes, first byte) of sends that have not begun
        self._started: dict[int, int] = {}  # channel -> low half of the address that its latest transfer began with

    # Buffers

    def buffer(self, key: str, words: int) -> NDArray[Any]:
        """Host view of the buffer ``key``, at least ``words`` uint32 long. No transfer may be using it.

        A view is dead once the buffer has grown or ``free`` was called: copy what is to stay.
        """
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < words:
            self.allocate(key, words)
        return np.asarray(self._buffers[key])

    def allocate(self, key: str, words: int) -> Any:
        """Make the buffer ``key`` anew, ``words`` uint32 long, by pynq. No transfer may be using the old one."""
        old = self._buffers.pop(key, None)
        if old is not None:
            old.freebuffer()
        buffer = self._buffers[key] = pynq.allocate((words,), "u4", target=self._device)
        return buffer

    def free(self) -> None:
        """Free the buffers. Explicitly, because pynq's DMA channel keeps a reference to the last one after a fault."""
        buffers = self._buffers
        self._buffers = {}
        for buffer in buffers.values():
            buffer.freebuffer()

    # Transfers

    def send(self, key: str, words: int) -> None:
        """Start to send ``words`` words of a buffer. TransferError if pynq refuses."""
        self._send(self._buffers[key], 4 * words, 0)

    def exchange(self, send_key: str, ends: Sequence[int], receive_key: str, words: int, first: int = 0) -> None:
        """Start to receive, then to send. TransferError if pynq refuses.

        Parameters
        ----------
        send_key
            Buffer that is sent.
        ends
            Words of that buffer at which its transfers end, in order: (5, 9) sends words 0 to 4, then 5 to 8.
        receive_key
            Buffer of what is received.
        words, first
            At most so many words are received, from word ``first`` of that buffer on; tlast ends it sooner.
        """
        self._dma.mmio.write(RECEIVE + STATUS, INTERRUPT)  # a transfer that was polled has left it pending
        target = self._buffers[receive_key]
        self._transfer(RECEIVE, self._dma.recvchannel, target, 4 * words, 4 * first)
        self._target = target
        buffer = self._buffers[send_key]
        self._parts = deque((buffer, 4 * (end - begin), 4 * begin) for begin, end in zip((0, *ends), ends))
        self._send(*self._parts.popleft())

    @property
    def sends_more(self) -> bool:
        """Whether sends that ``exchange`` was given have not begun yet."""
        return bool(self._parts)

    def sent(self) -> bool:
        """True once the send has ended. TransferError if it failed."""
        return self._idle(SEND, "send")

    def received(self) -> bool:
        """True once the receive has ended. TransferError if it failed."""
        return self._idle(RECEIVE, "receive")

    def ended(self) -> bool:
        """True once all sends and the receive have ended. Looks at both channels, and begins the next send."""
        received = self.received()
        sent = self.sent()
        if sent and self._parts:
            self._send(*self._parts.popleft())
            return False
        return received and sent

    def close_receive(self) -> None:
        """Close a receive for which ``received`` was True: make its data visible and keep its length."""
        self._target.invalidate()
        self.received_bytes = self._read(RECEIVE + LENGTH)

    @property
    def busy(self) -> bool:
        """Whether a transfer of ours may be running: a channel holds our address and has not ended the transfer."""
        return any(
            self._read(offset + ADDRESS) == address and not self._read(offset + STATUS) & (HALTED | IDLE)
            for offset, address in self._started.items()
        )

    @property
    def interrupt(self) -> Any:
        """pynq's interrupt at the end of a receive; None where the overlay has none."""
        return getattr(self._dma, "s2mm_introut", None)

    async def wait_received(self) -> None:
        """Wait for the interrupt at the end of a receive, which ``close_receive`` closes.

        May wait for ever: it is to be cancelled.
        """
        await self._dma.recvchannel.wait_async()

    # Reset

    def reset(self, timeout: float = 1.0) -> None:
        """Abort both channels: halted, empty, no errors. TransferError if the DMA doesn't answer in time."""
        self._dma.mmio.write(CONTROL, RESET)
        self._until(lambda: not any(self._read(c + CONTROL) & RESET for c in (SEND, RECEIVE)), "end its reset", timeout)

    def start(self, timeout: float = 1.0) -> None:
        """Let both channels run after ``reset``. TransferError if one doesn't in time."""
        for offset, channel in ((SEND, self._dma.sendchannel), (RECEIVE, self._dma.recvchannel)):
            self._dma.mmio.write(offset + CONTROL, RUN)
            self._until(partial(self._runs, offset), "run after its reset", timeout)
            channel.start()

    def _send(self, buffer: Any, nbytes: int, first: int) -> None:
        self._transfer(SEND, self._dma.sendchannel, buffer, nbytes, first)

    def _transfer(self, offset: int, channel: Any, buffer: Any, nbytes: int, first: int) -> None:
        """Start a transfer of ``nbytes`` bytes from byte ``first`` of a buffer on."""
        self._started[offset] = buffer.physical_address + first & 0xFFFFFFFF
        try:
            channel.transfer(buffer, first, nbytes)
        except (RuntimeError, ValueError) as e:
            raise TransferError(f"{self._name}: a transfer of {nbytes} bytes must start, got: {e}") from e

    def _runs(self, offset: int) -> bool:
        return not self._read(offset + STATUS) & HALTED

    def _idle(self, offset: int, what: str) -> bool:
        status = self._read(offset + STATUS)
        for bit, meaning in ERRORS.items():
            if status & bit:
                raise TransferError(f"{self._name}: the {what} must end without error, got {meaning}")
        return bool(status & IDLE)

    def _until(self, done: Callable[[], bool], what: str, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not done():
            if time.monotonic() > end:
                status = ", ".join(f"0x{self._read(c + STATUS):08X}" for c in (SEND, RECEIVE))
                raise TransferError(f"{self._name}: the DMA must {what} within {timeout} s, got status {status}")

    def _read(self, offset: int) -> int:
        return int(self._dma.mmio.read(offset))
