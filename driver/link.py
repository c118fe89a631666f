"""The way to a core: finding it in an overlay, buffers, transfers that can't hang, reset.

Cores of inference engines and of training machines are reached in the same way; what differs between them is in
accelerator_link.py and training_link.py.

Reset, in this order: soft reset of the core (it gives nothing any more), reset of the DMA (nothing comes any more),
soft reset again (whatever half packet came in between is forgotten), start of the DMA. Every other order lets a
remnant of the old transfer reach the new one: a core that is reset first takes the middle of a packet for a header,
and a DMA that is reset first can take up result words of the old frame.
"""

import time
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bitloom.hls_gen.design.manifest import VLNV, Manifest
from bitloom.hls_gen.design.training_manifest import VLNV as TRAINING_VLNV
from bitloom.hls_gen.design.training_manifest import TrainingManifest

from .cores import check_identity, driver_of, find_core
from .dma import StreamDma
from .errors import DesignMismatch, DeviceError, Timeout, TransferError
from .interrupts import LOOKS_FIRST, CoreInterrupt, idle_loop, run_in, wait_for_results
from .pynq_api import DMA, pynq
from .registers import Counters, Registers
from .turn import Turn
from .watch import Watch

Array = NDArray[Any]


class Core(pynq.DefaultIP):  # type: ignore[misc]
    """A core of ours in an overlay, by which pynq knows it. Links drive it; ``read`` and ``write`` are pynq's."""

    bindto = (VLNV, TRAINING_VLNV)


class Link:
    """One core and its DMA, to be reset by `restart` before the first transfer.

    Parameters
    ----------
    overlay, core, dma, timeout
        As of Accelerator.
    manifest
        What the hardware must be.
    name
        What messages begin with.

    Attributes
    ----------
    clean
        False while a transfer runs and after one failed: ``restart`` before the next.
    turn
        Which call may use the device.
    heard_in
        Event loop in which an interrupt has come; None before.
    """

    vlnv = ""
    """VLNV of the cores that this kind of link drives."""

    def __init__(
        self,
        overlay: Any,
        manifest: Manifest | TrainingManifest,
        name: str,
        core: str | None,
        dma: str | None,
        timeout: float,
    ) -> None:
        self.overlay, self.name, self.timeout = overlay, name, timeout
        if not overlay.is_loaded():
            raise DeviceError(f"{name}: the overlay must be loaded, got another one: call download()")
        if manifest.vlnv != self.vlnv:
            raise DesignMismatch(f"{name}: the manifest's vlnv must be {self.vlnv}, got {manifest.vlnv}")
        core = find_core(overlay, name, core, manifest.vlnv, f"core {manifest.vlnv}")
        dma = find_core(overlay, name, dma, "xilinx.com:ip:axi_dma", "AXI DMA", preferred="axi_dma_0")
        self.core = driver_of(overlay, core)
        self.registers = Registers(self.core, manifest)
        check_identity(self.registers, manifest, name)
        self.irq = CoreInterrupt(self.core, self.registers)
        driver = driver_of(overlay, dma)
        if not isinstance(driver, DMA):
            raise DesignMismatch(f"{name}: {dma} must have pynq's DMA driver, got {type(driver).__name__}")
        self.dma = StreamDma(driver, dma, overlay.ip_dict[dma]["parameters"], manifest.stream_bits)
        self._buffers: dict[str, Any] = {}
        self._parts: deque[tuple[Any, int, int]] = deque()
        self.clean = False
        self.heard_in: AbstractEventLoop | None = None
        self.turn = Turn(name)
        self.counters = Counters(self.registers)

    # What differs between cores

    def check_error(self) -> None:
        """Raise what the core has to say if STATUS.ERROR is set."""
        raise NotImplementedError

    def taken(self) -> DeviceError | None:
        """What is to be told where somebody else has taken the device; None where nobody has, or nobody can know."""
        return None

    def check_owner(self) -> None:
        """Raise DeviceTaken where somebody else has taken the device."""

    def begin(self) -> None:
        """What the core needs after a reset."""

    # Buffers

    def buffer(self, key: str, words: int) -> Array:
        """Host view of the buffer ``key``, at least ``words`` uint32 long. No transfer may be using it.

        A view is dead once the buffer has grown or ``close`` was called: copy what is to stay.
        """
        old = self._buffers.get(key)
        if old is None or old.size < words:
            self.allocate(key, words)
        return np.asarray(self._buffers[key])

    def allocate(self, key: str, words: int) -> Any:
        """Make the buffer ``key`` anew, ``words`` uint32 long, by pynq. No transfer may be using the old one."""
        old = self._buffers.pop(key, None)
        if old is not None:
            old.freebuffer()
        made = self._buffers[key] = pynq.allocate((words,), "u4", target=self.overlay.device)
        return made

    def close(self) -> None:
        """Free the buffers. Explicitly, because pynq's DMA channel keeps a reference to the last one after a fault.

        A call that is under way ends with an error, its transfers before.
        """
        if self.turn.under_way:
            self.turn.end()
            with suppress(Exception):  # a device that doesn't answer has no transfer of ours
                self._halt(self.taken())
        buffers, self._buffers = self._buffers, {}
        for buffer in buffers.values():
            buffer.freebuffer()

    # Transfers

    @contextmanager
    def transferring(self) -> Iterator[None]:
        """Around transfers. Whatever stops them half-way leaves ``clean`` False and the DMA halted.

        The halted DMA makes it safe to free the buffers; the core stays as it is, to be looked at. Where somebody else
        has taken the device this is what is told, and a DMA that is idle is left alone.
        """
        with self.turn.of_one():
            self.clean = False
            try:
                yield
            except BaseException as e:
                if self.turn.ended:  # all is halted, and the device may be in use again
                    raise
                taken = self.taken()
                self._halt(taken)
                if taken is not None and isinstance(e, Exception):
                    raise taken from e
                raise
            self.clean = True

    def _halt(self, taken: DeviceError | None) -> None:
        """Halt the DMA; where somebody else has taken the device, only with a transfer of ours."""
        with suppress(TransferError):  # the first error is the one to be told
            if taken is None or self.dma.busy:
                self.dma.reset()

    def send(self, key: str, words: int, what: str) -> None:
        """Send ``words`` words of a buffer and wait until the DMA has handed them over. Not counted."""
        self.counters.rebase()
        self.dma.send(self._buffers[key], 4 * words)
        self.wait(self.dma.sent, what)

    def start(self, send_key: str, ends: Sequence[int], receive_key: str, receive_words: int, first: int = 0) -> None:
        """Start to receive, from word ``first`` of its buffer on, then to send.

        ``ends`` are the words of the send buffer at which its transfers end, in order.
        """
        self.counters.rebase()
        self.irq.forget()
        self.dma.receive(self._buffers[receive_key], 4 * receive_words, 4 * first)
        buffer = self._buffers[send_key]
        self._parts = deque((buffer, 4 * begin, 4 * (end - begin)) for begin, end in zip((0, *ends), ends))
        self._send_part()

    def _send_part(self) -> None:
        """Start the next transfer of those that ``start`` was given."""
        buffer, first, count = self._parts.popleft()
        self.dma.send(buffer, count, first)

    def finish(self, words: int, what: str) -> None:
        """Wait for what ``start`` started, by interrupts where this thread can. TransferError unless ``words`` came."""
        loop = idle_loop() if self.has_interrupt and not self._ends_soon(what) else None
        if loop is None:
            self.wait(self.ended, what, count=True)
            self.dma.finish_receive()
        else:
            run_in(loop, wait_for_results(self, what))
        self._close(words, what)

    def _ends_soon(self, what: str) -> bool:
        """Whether all has ended after LOOKS_FIRST looks."""
        watch = Watch(self, what, count=True)
        for _ in range(LOOKS_FIRST):
            if self.ended():
                return True
            watch.look()
        return False

    async def finish_async(self, words: int, what: str) -> None:
        """As ``finish``; other coroutines run until an interrupt comes, or between looks if there is none."""
        await wait_for_results(self, what)
        self._close(words, what)

    def wait(self, done: Callable[[], bool], what: str, count: bool = False) -> None:
        """Poll ``done`` until it is true.

        Parameters
        ----------
        done
            Whether what is waited for has happened.
        what
            What is waited for, for messages.
        count
            Whether the counters' totals take what is counted meanwhile.

        Raises
        ------
        DeviceError
            The core reports an error.
        Timeout
            Nothing moves for ``timeout`` seconds.
        """
        watch = Watch(self, what, count)
        while not done():
            watch.look()

    @property
    def has_interrupt(self) -> bool:
        """Whether the end of a receive can be awaited, by the DMA's interrupt or by the core's."""
        return self.dma.has_interrupt or self.irq.wired

    @property
    def sends_more(self) -> bool:
        """Whether transfers of those that ``start`` was given have not begun yet."""
        return bool(self._parts)

    def ended(self) -> bool:
        """True once nothing is sent or received any more. Looks at both, to see an error of either; sends on."""
        self.turn.check_ended()
        received, sent = self.dma.received(), self.dma.sent()
        if sent and self._parts:
            self._send_part()
            return False
        return received and sent

    def _close(self, words: int, what: str) -> None:
        self.counters.update()
        self.check_error()
        if self.dma.received_bytes != 4 * words:
            got = self.dma.received_bytes
            raise TransferError(f"{self.name}: {what}: results must be {4 * words} bytes, got {got}")
        self.check_owner()

    # Reset

    def restart(self) -> None:
        """Abort everything; the core is then as after power-up, and waits for what comes first."""
        self.clean = False
        self._soft_reset()
        self.dma.reset()
        self._soft_reset()
        if self.registers.field("STATUS", "ERROR"):
            self.give_up("ERROR must be 0 after a soft reset, got 1")
        self.dma.start()
        self.begin()
        self.clean = True

    def _soft_reset(self) -> None:
        """The old transfer may still be coming in: STATUS.ERROR may be set again as soon as this returns."""
        self.registers.set("CONTROL", SOFT_RESET=1)
        end = time.monotonic() + self.timeout
        while self.registers.field("CONTROL", "SOFT_RESET"):
            if time.monotonic() > end:
                self.give_up(f"a soft reset must end, got none for {self.timeout} s")

    def give_up(self, message: str) -> NoReturn:
        """Raise Timeout with all registers."""
        dump = self.registers.dump()
        raise Timeout(f"{self.name}: {message}", dump, self.registers.state(dump))
