"""Xilinx' AXI DMA in simple mode, through ``pynq.lib.dma``: start, look, finish, reset; nothing here waits for ever.

What pynq leaves to us, and what is safe on a board (pynq/lib/dma.py 3.0 to 4.0; Xilinx PG021):

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
from collections.abc import Callable
from functools import partial
from typing import Any

from .errors import DesignMismatch, TransferError
from .interrupts import renew, wired

SEND, RECEIVE = 0x00, 0x30
"""Offsets of the two channels' registers (PG021, table 2-7)."""
CONTROL, STATUS, ADDRESS, LENGTH = 0x00, 0x04, 0x18, 0x28
RUN, RESET = 1 << 0, 1 << 2
HALTED, IDLE, INTERRUPT = 1 << 0, 1 << 1, 1 << 12
ERRORS = {
    1 << 4: "internal error (length 0, or a longer packet than the receive buffer)",
    1 << 5: "slave error (memory refused the access)",
    1 << 6: "decode error (no memory at the address)",
}


class StreamDma:
    """The two channels of one DMA.

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

    Raises
    ------
    DesignMismatch
        The DMA has no simple mode, lacks a channel, or is of another width.
    """

    def __init__(self, dma: Any, name: str, parameters: dict[str, Any], stream_bits: int) -> None:
        for key, what in (("c_include_sg", "scatter-gather"), ("c_micro_dma", "micro mode")):
            if int(parameters.get(key, 0)):
                raise DesignMismatch(f"{name}: the DMA must be in simple mode, got {what} ({key} = 1)")
        for key in ("c_m_axis_mm2s_tdata_width", "c_s_axis_s2mm_tdata_width"):
            if int(parameters.get(key, stream_bits)) != stream_bits:
                raise DesignMismatch(f"{name}: {key} must be {stream_bits}, got {parameters[key]}")
        if dma.sendchannel is None or dma.recvchannel is None:
            raise DesignMismatch(f"{name}: the DMA must have a send and a receive channel, got one of them")
        self._dma, self.name = dma, name
        word = stream_bits // 8
        self.limit_bytes: int = dma.buffer_max_size // word * word
        """Longest transfer, in whole stream words."""
        self._target: Any = None  # of the receive under way
        self._started: dict[int, int] = {}  # channel -> low half of the address that its latest transfer began with
        self.received_bytes = 0
        """Length of the receive that was closed last."""

    def send(self, buffer: Any, nbytes: int, first: int = 0) -> None:
        """Start to send ``nbytes`` bytes of a pynq buffer from byte ``first`` on. TransferError if pynq refuses."""
        self._started[SEND] = buffer.physical_address + first & 0xFFFFFFFF
        self._transfer(self._dma.sendchannel, buffer, nbytes, first)

    def receive(self, buffer: Any, nbytes: int, first: int = 0) -> None:
        """Start to receive at most ``nbytes`` bytes into a pynq buffer from byte ``first`` on; tlast ends it sooner."""
        self._dma.mmio.write(RECEIVE + STATUS, INTERRUPT)  # a transfer that was polled has left it pending
        self._started[RECEIVE] = buffer.physical_address + first & 0xFFFFFFFF
        self._transfer(self._dma.recvchannel, buffer, nbytes, first)
        self._target = buffer

    def sent(self) -> bool:
        """True once the send has ended. TransferError if it failed."""
        return self._idle(SEND, "send")

    def received(self) -> bool:
        """True once the receive has ended. TransferError if it failed."""
        return self._idle(RECEIVE, "receive")

    @property
    def busy(self) -> bool:
        """Whether a transfer of ours may be running: a channel has the address of one, and has not ended it."""
        return any(
            self._read(offset + ADDRESS) == address and not self._read(offset + STATUS) & (HALTED | IDLE)
            for offset, address in self._started.items()
        )

    def finish_receive(self) -> None:
        """Close a receive for which ``received`` was True, make its data visible and keep its length."""
        self._target.invalidate()
        self.received_bytes = self._read(RECEIVE + LENGTH)

    @property
    def has_interrupt(self) -> bool:
        """Whether the end of a receive can be awaited."""
        return wired(getattr(self._dma, "s2mm_introut", None))

    async def wait_receive(self) -> None:
        """Wait for the interrupt at the end of a receive, which ``finish_receive`` closes; needs ``has_interrupt``.

        May wait for ever: it is to be cancelled.
        """
        renew(self._dma.s2mm_introut)
        await self._dma.recvchannel.wait_async()

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

    def _transfer(self, channel: Any, buffer: Any, nbytes: int, first: int = 0) -> None:
        try:
            channel.transfer(buffer, first, nbytes)
        except (RuntimeError, ValueError) as e:
            raise TransferError(f"{self.name}: a transfer of {nbytes} bytes must start, got: {e}") from e

    def _runs(self, offset: int) -> bool:
        return not self._read(offset + STATUS) & HALTED

    def _idle(self, offset: int, what: str) -> bool:
        status = self._read(offset + STATUS)
        for bit, meaning in ERRORS.items():
            if status & bit:
                raise TransferError(f"{self.name}: the {what} must end without error, got {meaning}")
        return bool(status & IDLE)

    def _until(self, done: Callable[[], bool], what: str, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not done():
            if time.monotonic() > end:
                status = ", ".join(f"0x{self._read(c + STATUS):08X}" for c in (SEND, RECEIVE))
                raise TransferError(f"{self.name}: the DMA must {what} within {timeout} s, got status {status}")

    def _read(self, offset: int) -> int:
        return int(self._dma.mmio.read(offset))
