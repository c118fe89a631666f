"""A device: a core in an overlay, its DMA, and the calls that use them; base of Accelerator and TrainingMachine.

Reset, in this order: soft reset of the core (it gives nothing any more), reset of the DMA (nothing comes any more),
soft reset again (whatever half packet came in between is forgotten), start of the DMA. Every other order lets a
remnant of the old transfer reach the new one: a core that is reset first takes the middle of a packet for a header,
and a DMA that is reset first can take up result words of the old frame.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, TypeVar, cast

from bitloom.hls_gen.design.dma import VLNV as DMA_VLNV
from bitloom.hls_gen.design.manifest_parts import CoreManifest
from bitloom.hls_gen.design.registers import VERSION, VERSION_REGISTER

from .cores import active_device, driver_of, find_core
from .errors import DesignMismatch, DeviceError, DeviceTaken, DigestMismatch, TransferError
from .link import DmaLink
from .pynq_api import DMA, pynq
from .registers import Registers
from .waiting import Waiting

AnyManifest = TypeVar("AnyManifest", bound=CoreManifest)
D = TypeVar("D", bound="Device[Any]")


class Device(ABC, Generic[AnyManifest]):
    """A core of ours and its DMA, on a board or a virtual board; for one thread at a time.

    Attributes
    ----------
    name, overlay, manifest
        Stem of the .bit file, the ``pynq.Overlay``, and what the hardware has.
    core
        pynq's driver of the core (link.Core), with ``register_map``, ``read`` and ``write``.
    registers
        The core's registers by name.
    """

    _manifest_type: ClassVar[type[Any]]
    _vlnv: ClassVar[str]

    def __init__(
        self,
        overlay: Any,
        *,
        manifest: AnyManifest | str | Path | None = None,
        core: str | None = None,
        dma: str | None = None,
        device: Any = None,
        timeout: float = 10.0,
    ) -> None:
        """Find the core and its DMA, check both against the manifest, and reset them.

        Parameters
        ----------
        overlay
            ``pynq.Overlay``, or the path of a .bit file, which is then downloaded.
        manifest
            Manifest or its path; by default the file ``.manifest.json`` of the same stem beside the .bit file.
        core, dma
            Names in the overlay's ``ip_dict``, needed only if there are several (``axi_dma_0`` goes first).
        device
            ``pynq`` device that a path is downloaded to; by default the active one.
        timeout
            Seconds without any progress (words, frames, beats) after which a transfer is given up.

        Raises
        ------
        DeviceError
            There is no device: neither a board nor an active virtual board; or the overlay isn't loaded.
        ValueError, FileNotFoundError
            The manifest is none of this kind of device, or isn't there.
        DesignMismatch, DigestMismatch
            The overlay isn't what the manifest describes.
        """
        if isinstance(overlay, (str, Path)):
            overlay = pynq.Overlay(str(overlay), device=device or active_device(overlay))
        path = Path(overlay.bitfile_name)
        if not isinstance(manifest, self._manifest_type):
            manifest = self._manifest_type.load(manifest or path.with_suffix(".manifest.json"))
        self.name = path.stem
        self.overlay = overlay
        self.manifest = cast(AnyManifest, manifest)
        vlnv = self.manifest.vlnv
        if not overlay.is_loaded():
            raise DeviceError(f"{self.name}: the overlay must be loaded, got another one: call download()")
        if vlnv != self._vlnv:
            raise DesignMismatch(f"{self.name}: the manifest's vlnv must be {self._vlnv}, got {vlnv}")
        core = find_core(overlay, self.name, core, vlnv, f"core {vlnv}")
        vlnvs = ("xilinx.com:ip:axi_dma", DMA_VLNV.rpartition(":")[0])
        dma = find_core(overlay, self.name, dma, vlnvs, "AXI DMA", preferred="axi_dma_0")
        self.core = driver_of(overlay, core)
        self.registers = Registers(self.core, self.manifest)
        _check_identity(self.registers, self.manifest, self.name)
        driver = driver_of(overlay, dma)
        if not isinstance(driver, DMA):
            raise DesignMismatch(f"{self.name}: {dma} must have pynq's DMA driver, got {type(driver).__name__}")
        parameters = overlay.ip_dict[dma]["parameters"]
        self._link = DmaLink(driver, dma, parameters, self.manifest.stream_bits, overlay.device)
        self._waiting = Waiting(self.name, self.core, self.registers, self._link, timeout)
        self._clean = False  # while a transfer runs and after a failed one: restart before the next
        self._set_up()
        self._restart()

    @property
    def has_interrupt(self) -> bool:
        """Whether calls wait for interrupts, of the DMA or of the core (`bitloom.driver.waiting`).

        Without interrupts they look at the device now and then. So does a call that is no coroutine if this thread's
        event loop already runs, as in Jupyter, or if the thread has no loop.
        """
        return self._waiting.has_interrupt

    def reset(self) -> None:
        """Abort everything in device and DMA."""
        self._restart()

    def close(self) -> None:
        """Free the buffers. A call that is under way ends with an error, its transfers before."""
        calls = self._waiting.calls
        if calls.under_way:
            calls.end()
            with suppress(Exception):  # a device that doesn't answer has no transfer of ours
                self._halt(self._taken())
        self._link.free()

    def __enter__(self: D) -> D:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What differs between devices

    @abstractmethod
    def _set_up(self) -> None:
        """Set up what only this kind of device has; the core has been found, and not been reset yet."""

    @abstractmethod
    def _check_error(self) -> None:
        """Raise the core's error if STATUS.ERROR is set."""

    @abstractmethod
    def _check_owner(self) -> None:
        """Raise DeviceTaken where somebody else has taken the device."""

    def _forget(self) -> None:
        """Forget who has loaded the core; called before a reset."""

    def _begin(self) -> None:
        """Make the core ready after a reset."""

    # Transfers

    @contextmanager
    def _transferring(self) -> Iterator[None]:
        """Around transfers. Whatever stops them half-way leaves the device unclean and the DMA halted.

        The halted DMA makes it safe to free the buffers; the core stays as it is, to be looked at. If somebody else has
        taken the device, DeviceTaken is raised instead of the error, and an idle DMA is left alone.
        """
        calls = self._waiting.calls
        with calls.call():
            self._clean = False
            try:
                yield
            except BaseException as e:
                if calls.ended:  # all is halted, and the device may be in use again
                    raise
                taken = self._taken()
                self._halt(taken)
                if taken is not None and isinstance(e, Exception):
                    raise taken from e
                raise
            self._clean = True

    def _taken(self) -> DeviceTaken | None:
        """The error that ``_check_owner`` raises; None where it raises none, and where the device doesn't answer."""
        try:
            self._check_owner()
        except DeviceTaken as e:
            return e
        except Exception:  # a bus error or a lost connection, which another error tells of
            return None
        return None

    def _halt(self, taken: DeviceTaken | None) -> None:
        """Halt the DMA; if somebody else has taken the device, only while a transfer of ours runs."""
        with suppress(TransferError):  # the first error is the one to be told
            if taken is None or self._link.busy:
                self._link.reset()

    def _send(self, key: str, words: int, what: str) -> None:
        """Send ``words`` words of a buffer and wait until the DMA has handed them over. Not counted."""
        self._waiting.counters.rebase()
        self._link.send(key, words)
        self._wait(self._link.sent, what)

    def _exchange(self, send_key: str, ends: Sequence[int], receive_key: str, words: int, first: int = 0) -> None:
        """Start what ``_finish`` waits for, as ``DmaLink.exchange``."""
        self._waiting.prepare()
        self._link.exchange(send_key, ends, receive_key, words, first)

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        """Look until ``done`` is true. Errors as of ``Waiting.until``."""
        self._waiting.until(done, self._check_error, what)

    def _finish(self, words: int, what: str) -> None:
        """Wait for what ``_exchange`` started, by interrupts where this thread can.

        Errors as of ``Waiting.until``; TransferError unless ``words`` words came, DeviceTaken if the results are of
        somebody else's program.
        """
        self._waiting.results(self._check_error, what)
        self._check_results(words, what)

    async def _finish_async(self, words: int, what: str) -> None:
        """As ``_finish``; other coroutines run until an interrupt comes, or between looks if there is none."""
        await self._waiting.results_async(self._check_error, what)
        self._check_results(words, what)

    def _check_results(self, words: int, what: str) -> None:
        self._waiting.counters.update()
        self._check_error()
        received = self._link.received_bytes
        if received != 4 * words:
            raise TransferError(f"{self.name}: {what}: results must be {4 * words} bytes, got {received}")
        self._check_owner()

    # Reset

    def _restart(self) -> None:
        """Abort everything; the core is then as after power-up."""
        self._waiting.calls.check()
        self._forget()
        self._clean = False
        self._soft_reset()
        self._link.reset()
        self._soft_reset()
        if self.registers.field("STATUS", "ERROR"):
            self._waiting.give_up("ERROR must be 0 after a soft reset, got 1")
        self._link.start()
        self._begin()
        self._clean = True

    def _soft_reset(self) -> None:
        """The old transfer may still be coming in: STATUS.ERROR may be set again as soon as this returns."""
        self.registers.set("CONTROL", SOFT_RESET=1)
        timeout = self._waiting.timeout
        end = time.monotonic() + timeout
        while self.registers.field("CONTROL", "SOFT_RESET"):
            if time.monotonic() > end:
                self._waiting.give_up(f"a soft reset must end, got none for {timeout} s")


def _check_identity(registers: Registers, manifest: CoreManifest, name: str) -> None:
    """Raise DesignMismatch unless the core that answers is the manifest's."""
    ident = registers.read("IDENT")
    if ident != manifest.ident:
        raise DesignMismatch(f"{name}: IDENT must be 0x{manifest.ident:08X}, got 0x{ident:08X}")
    wanted = manifest.vlnv.split(":")[3]
    version = registers.read("VERSION")
    digits = [str(VERSION_REGISTER.field(part).of(version)) for part in VERSION]
    if digits[: wanted.count(".") + 1] != wanted.split("."):
        raise DesignMismatch(f"{name}: VERSION must be that of the manifest, {wanted}, got {'.'.join(digits)}")
    digest = registers.digest()
    if digest != manifest.digest[:32]:
        raise DigestMismatch(
            f"{name}: the hardware must have the manifest's digest {manifest.digest[:32]}, got {digest}",
            manifest.digest[:32],
            digest,
        )
