"""The way to the core: finding it in an overlay, buffers, transfers that can't hang, reset.

Reset, in this order: soft reset of the core (it gives nothing any more), reset of the DMA (nothing comes any more),
soft reset again (whatever half packet came in between is forgotten), start of the DMA. Every other order lets a
remnant of the old transfer reach the new one: a core that is reset first takes the middle of a packet for a header,
and a DMA that is reset first can take up result words of the old frame.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
import pynq
from numpy.typing import NDArray
from pynq.lib.dma import DMA

from .dma import StreamDma
from .errors import DesignMismatch, DigestMismatch, PacketError, Timeout, TransferError
from .manifest import Manifest
from .packets import describe_header
from .registers import Counters, Registers

Array = NDArray[Any]
IDENT = 0x424C4D31
"""What register IDENT must hold: "BLM1"."""
LOOKS = 8
"""Looks at the counters within a time-out."""


class Core(pynq.DefaultIP):  # type: ignore[misc]
    """The accelerator's core in an overlay. ``Link`` drives it; ``read`` and ``write`` are pynq's."""

    bindto = ("bitloom:bitloom:npu:0.1",)


class Link:
    """One core and its DMA. Parameters as Accelerator; ``name`` is used in messages."""

    def __init__(
        self, overlay: Any, manifest: Manifest, name: str, core: str | None, dma: str | None, timeout: float
    ) -> None:
        self.overlay, self.manifest, self.name, self.timeout = overlay, manifest, name, timeout
        if manifest.vlnv not in Core.bindto:
            raise DesignMismatch(f"{name}: the manifest's vlnv must be {Core.bindto[0]}, got {manifest.vlnv}")
        core = self._find(core, manifest.vlnv, f"core {manifest.vlnv}")
        dma = self._find(dma, "xilinx.com:ip:axi_dma", "AXI DMA", preferred="axi_dma_0")
        self.registers = Registers(self._driver(core), manifest)
        self._check_identity()
        driver = self._driver(dma)
        if not isinstance(driver, DMA):
            raise DesignMismatch(f"{name}: {dma} must have pynq's DMA driver, got {type(driver).__name__}")
        self.dma = StreamDma(driver, dma, overlay.ip_dict[dma]["parameters"], manifest.stream_bits)
        self._buffers: dict[str, Any] = {}
        self.clean = False
        """False while a transfer runs and after one failed: ``restart`` before the next."""
        self.restart()
        self.counters = Counters(self.registers)

    # Finding

    def _find(self, wanted: str | None, vlnv: str, what: str, preferred: str = "") -> str:
        cores = {key: str(entry.get("type")) for key, entry in self.overlay.ip_dict.items()}
        found = [key for key, kind in cores.items() if f"{kind}:".startswith(f"{vlnv}:") and wanted in (None, key)]
        if preferred in found:
            return preferred
        if len(found) != 1:
            listing = ", ".join(f"{key} ({kind})" for key, kind in cores.items())
            rule = "exactly one" if wanted is None else f"one named {wanted}:"
            raise DesignMismatch(f"{self.name}: the overlay must have {rule} {what}, got {listing or 'no cores'}")
        return str(found[0])

    def _driver(self, name: str) -> Any:
        return reduce(getattr, name.split("/"), self.overlay)

    def _check_identity(self) -> None:
        ident = self.registers.read("IDENT")
        if ident != IDENT:
            raise DesignMismatch(f"{self.name}: IDENT must be 0x{IDENT:08X}, got 0x{ident:08X}")
        version, wanted = self.registers.read("VERSION"), self.manifest.vlnv.split(":")[3]
        found = [str(version >> shift & mask) for shift, mask in ((16, 0xFFFF), (8, 0xFF), (0, 0xFF))]
        if found[: wanted.count(".") + 1] != wanted.split("."):
            raise DesignMismatch(f"{self.name}: VERSION must be that of the manifest, {wanted}, got {'.'.join(found)}")
        digest = "".join(f"{self.registers.read(f'DIGEST_{i}'):08x}" for i in range(4))
        if digest != self.manifest.digest[:32]:
            raise DigestMismatch(
                f"{self.name}: the hardware must have the manifest's digest {self.manifest.digest[:32]}, got {digest}",
                self.manifest.digest[:32], digest,
            )  # fmt: skip

    # Buffers

    def buffer(self, key: str, words: int) -> Array:
        """Host view of the buffer ``key``, at least ``words`` uint32 long. No transfer may be using it."""
        old = self._buffers.get(key)
        if old is None or old.size < words:
            if old is not None:
                old.freebuffer()
            self._buffers[key] = pynq.allocate((words,), "u4", target=self.overlay.device)
        return np.asarray(self._buffers[key])

    def close(self) -> None:
        """Free the buffers, aborting first what may still use them."""
        if self._buffers and not self.clean:
            self.dma.reset()
        for buffer in self._buffers.values():
            buffer.freebuffer()
        self._buffers = {}

    # Transfers

    @contextmanager
    def transferring(self) -> Iterator[None]:
        """Around transfers: whatever stops them half-way leaves ``clean`` False."""
        self.clean = False
        yield
        self.clean = True

    def send(self, key: str, words: int, what: str) -> None:
        """Send ``words`` words of a buffer and wait until the DMA has handed them over. Not counted."""
        self.counters.rebase()
        self.dma.send(self._buffers[key], 4 * words)
        self.wait(self.dma.sent, what)
        self.dma.finish_send()

    def start(self, send_key: str, send_words: int, receive_key: str, receive_words: int) -> None:
        """Start to receive, then to send."""
        self.counters.rebase()
        self.dma.receive(self._buffers[receive_key], 4 * receive_words)
        self.dma.send(self._buffers[send_key], 4 * send_words)

    def finish(self, words: int, what: str) -> None:
        """Wait for what ``start`` started. TransferError unless ``words`` words came."""
        self.wait(lambda: self.dma.received() and self.dma.sent(), what, count=True)
        self.dma.finish_send()
        got = self.dma.finish_receive()
        self.counters.update()
        self.check_error()
        if got != 4 * words:
            raise TransferError(f"{self.name}: {what}: results must be {4 * words} bytes, got {got}")

    def wait(self, done: Callable[[], bool], what: str, count: bool = False) -> None:
        """Poll ``done``, adding to the counters' totals if ``count``.

        PacketError if the core reports an error, Timeout if nothing moves for ``timeout`` seconds.
        """
        now = time.monotonic()
        look, end = now + self.timeout / LOOKS, now + self.timeout
        while not done():
            self.check_error()
            now = time.monotonic()
            if now > look:
                look = now + self.timeout / LOOKS
                if self.counters.update(count):
                    end = now + self.timeout
            if now > end:
                dump = self.registers.dump()
                message = f"{self.name}: {what}, got no progress for {self.timeout} s"
                raise Timeout(message, dump, self.registers.state(dump))

    def check_error(self) -> None:
        """PacketError if STATUS.ERROR is set."""
        if self.registers.field("STATUS", "ERROR"):
            names = ("ERROR_HEADER", "ERROR_ADDRESS", "ERROR_LENGTH")
            word0, address, length = (self.registers.read(name) for name in names)
            error = self.manifest.error(self.registers.read("ERROR_CODE"))
            shown = describe_header(self.manifest, word0, address, length)
            raise PacketError(self.name, error, (word0, address, length), shown)

    # Reset

    def restart(self) -> None:
        """Abort everything; the core is then as after power-up and waits for LOADs, with START set."""
        self.clean = False
        self._soft_reset()
        self.dma.reset()
        self._soft_reset()
        self.dma.start()
        self.registers.set("CONTROL", START=1)
        self.clean = True

    def _soft_reset(self) -> None:
        self.registers.set("CONTROL", SOFT_RESET=1)
        end = time.monotonic() + self.timeout
        while self.registers.field("CONTROL", "SOFT_RESET") or self.registers.field("STATUS", "ERROR"):
            if time.monotonic() > end:
                dump = self.registers.dump()
                message = f"{self.name}: a soft reset must end, got none for {self.timeout} s"
                raise Timeout(message, dump, self.registers.state(dump))
