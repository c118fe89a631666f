"""The accelerator: images in, integers out. Public pynq API only, so the same code runs on a board and in simulation.

    with Accelerator("cnv.bit") as accelerator:          # cnv.manifest.json lies beside it
        accelerator.load(Program.load("cnv.npz"))
        classes = accelerator.classify(images)

After an error, or an interrupted call, the device is in an unknown state. The error leaves it so, to be looked at
(``registers.dump()``); the next ``predict`` or ``load`` resets it first.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.integers import integer
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program

from .accelerator_link import AcceleratorLink
from .device import active_device
from .errors import DeviceError
from .frames import Frames, loads
from .pynq_api import pynq
from .registers import Registers

Array = NDArray[Any]
Progress = Callable[[int, int], None]


class Accelerator:
    """A design on a device; for one thread at a time.

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

    Attributes
    ----------
    name, overlay, manifest
        Stem of the .bit file, the ``pynq.Overlay``, and what the hardware has.
    program
        The loaded program; None before ``load``.
    results
        Where results are as they came, after ``load(..., results=N)``: pynq's buffer, (N * program.result_words,)
        uint32, for others from ``physical_address`` on. Those of frame i begin at word i * program.result_words. Else
        None.

    Raises
    ------
    DeviceError
        There is no device: neither a board nor an active virtual one.
    ValueError, FileNotFoundError
        The manifest is none, or isn't there.
    DesignMismatch, DigestMismatch
        The overlay isn't what the manifest describes.
    """

    def __init__(
        self,
        overlay: Any,
        *,
        manifest: Manifest | str | Path | None = None,
        core: str | None = None,
        dma: str | None = None,
        device: Any = None,
        timeout: float = 10.0,
    ) -> None:
        if isinstance(overlay, (str, Path)):
            overlay = pynq.Overlay(str(overlay), device=device or active_device(overlay))
        path = Path(overlay.bitfile_name)
        if not isinstance(manifest, Manifest):
            manifest = Manifest.load(manifest or path.with_suffix(".manifest.json"))
        self.name, self.overlay, self.manifest = path.stem, overlay, manifest
        self.program: Program | None = None
        self.results: Any = None
        self._link = AcceleratorLink(overlay, manifest, self.name, core, dma, timeout)

    def __repr__(self) -> str:
        loaded = self.program.name if self.program else "no program"
        return f"<Accelerator {self.name}: {loaded}; {self.manifest.design.summary}>"

    @property
    def registers(self) -> Registers:
        """The core's registers by name."""
        return self._link.registers

    @property
    def core(self) -> Any:
        """pynq's driver of the core (link.Core), with ``register_map``, ``read`` and ``write``."""
        return self._link.core

    @property
    def has_interrupt(self) -> bool:
        """Whether calls wait for interrupts, of the DMA or of the core (`bitloom.driver.interrupts`).

        Else they look at the device now and then. ``predict`` and ``classify`` look anyhow where this thread's event
        loop runs already, as in Jupyter, and where it has none; coroutines that were begun in it go on meanwhile.
        """
        return self._link.has_interrupt

    def load(self, program: Program | str | Path, results: int = 0) -> None:
        """Send the parameters of ``program``, or of its file; frames are computed with them from now on.

        Parameters
        ----------
        program
            The program, or the path of its file (.program.npz).
        results
            Most frames of a call, whose results get one place until the next ``load``: the buffer ``results``. 0: they
            go to one of two buffers of the driver's own, transfer by transfer.

        Raises
        ------
        DigestMismatch
            The program was compiled for another design.
        ValueError
            The file is no program, a packet is longer than the DMA can send, or ``results`` is negative; else as
            ``predict``.
        """
        self._link.turn.check()
        results = integer(f"{self.name}: results", results)
        if results < 0:
            raise ValueError(f"{self.name}: results must be >= 0 frames, got {results}")
        program = program if isinstance(program, Program) else Program.load(program)
        parts = loads(program, self.manifest, self._link.dma.limit_bytes)
        self.program = self.results = None
        self._send(program, parts)
        if results:
            self.results = self._link.allocate("results", results * program.result_words)
        self.program = program

    def predict(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Compute the network's outputs, which equal golden's.

        Parameters
        ----------
        images
            (N, H, W, C) integers, each a value of the input's encoding. Later batches are packed while earlier ones are
            computed: what is changed in the array before the call has ended may still change what is computed.
        batch
            Frames a transfer; by default as many as frames.BATCH_BYTES hold. The next batch is packed meanwhile.
        progress
            Called with (frames done, N) after each batch.

        Returns
        -------
        array
            (N, H', W', C') int64.

        Raises
        ------
        ValueError
            The images don't suit the network; nothing was sent, unless they were changed during the call.
        DeviceTaken
            Somebody else has loaded the device since ``load``, or meanwhile; it stays theirs until ``load`` is called.
        PacketError, TransferError, Timeout
            The device is in an unknown state; the next call resets it first.
        """
        outputs = self._outputs(images)
        batches = self._batches(images, batch, progress, outputs)
        with self._link.transferring():
            for words, what in batches:
                self._link.finish(words, what)
        return outputs

    async def predict_async(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """As ``predict``, but other coroutines run while the device computes (``has_interrupt``: until when).

        On a board interrupts come in the event loop in which the overlay was made (``pynq.uio``); in another one the
        device is looked at. One call at a time uses the device: DeviceError from another one that begins meanwhile;
        ``close`` ends the one under way.
        """
        outputs = self._outputs(images)
        batches = self._batches(images, batch, progress, outputs)
        with self._link.transferring():
            for words, what in batches:
                await self._link.finish_async(words, what)
        return outputs

    def classify(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Class of each image, (N,): the number of the largest output, of equal ones the first.

        Of single bits it is the last one that is set, else 0.

        Parameters
        ----------
        images
            As ``predict`` takes them. If the program is of an imported network (`bitloom import`), images as its file
            takes them, such as (N, C, H, W) real numbers: the host quantises them, and makes scores of the outputs as
            the file does. Their largest one is the class.
        batch, progress
            As for ``predict``.

        Raises
        ------
        ValueError
            Also if an image or a score isn't finite. Else as ``predict``.
        """
        program = self._need_program()
        return program.classify(self.predict(program.to_input(images), batch, progress))

    def scores(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """What an imported network's file computes of images: (N, scores) float64, with its softmax if it has one.

        Parameters, images as the file takes them, and errors are those of ``classify``; ValueError also where the
        program isn't of an imported network.
        """
        program = self._need_program()
        if program.host is None:
            raise ValueError(f"{program.name}: scores are of imported networks, got a program without the host's part")
        return program.host.closed(self.predict(program.to_input(images), batch, progress))

    def counters(self) -> dict[str, int]:
        """Totals over all ``predict`` transfers since ``clear_counters``; names as the registers, in lower case."""
        return dict(self._link.counters.totals)

    def clear_counters(self) -> None:
        """Set all counters to 0, here and in the device."""
        self.registers.set("CONTROL", CLEAR_COUNTERS=1)
        self._link.counters.clear()

    @property
    def utilisation(self) -> tuple[float, ...]:
        """Per NPU: share of the transfers' cycles in which its array was fed, 0..1."""
        totals = self._link.counters.totals
        return tuple(totals[f"npu{i}_beats"] / max(1, totals["cycles"]) for i in range(len(self.manifest.npus)))

    def reset(self) -> None:
        """Abort everything in device and DMA and load the program again: the next frame is right."""
        if self.program is None:
            self._link.restart()
        else:
            self._send(self.program, loads(self.program, self.manifest, self._link.dma.limit_bytes))

    def close(self) -> None:
        """Free the buffers; the program must be loaded again after this."""
        self._link.close()
        self.program = self.results = None

    def __enter__(self) -> "Accelerator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _need_program(self) -> Program:
        if self.program is None:
            raise DeviceError(f"{self.name}: a program must be loaded before images, got none")
        return self.program

    def _outputs(self, images: Array) -> Array:
        """Room for the outputs of ``images``, which are checked here. Resets the device after an error."""
        program = self._need_program()
        program.check_images(images)
        room = len(images) if self.results is None else self.results.size // program.result_words
        if len(images) > room:
            raise ValueError(f"{program.name}: images must be at most {room}, as load was told, got {len(images)}")
        self._link.owner.check()
        if not self._link.clean:
            self.reset()
        return np.empty((len(images), *program.network_shape), np.int64)

    def _batches(
        self, images: Array, batch: int | None, progress: Progress | None, outputs: Array
    ) -> Iterator[tuple[int, str]]:
        """Compute ``outputs``. Yields (result words, what is done) whenever a transfer must be waited for."""
        program = self._need_program()
        frames = Frames(self.manifest, program, self._link.dma.limit_bytes // 4)
        size = frames.batch(self._link.dma.limit_bytes, batch)
        if len(images):
            self._fill(program, frames, 0, 0, images[:size])
            self._start(program, frames, 0, 0, len(images[:size]))
        for number, begin in enumerate(range(0, len(images), size)):
            now, after = images[begin : begin + size], images[begin + size : begin + 2 * size]
            this, other = number % 2, (number + 1) % 2
            if len(after):
                self._fill(program, frames, other, begin + size, after)
            words = len(now) * program.result_words
            yield words, f"{program.name}: {len(now)} frames must be computed"
            if len(after):
                self._start(program, frames, other, begin + size, len(after))
            key, first = self._place(program, this, begin)
            results = self._link.buffer(key, first + words)[first : first + words]
            outputs[begin : begin + len(now)] = program.unpack_results(results)
            if progress is not None:
                progress(begin + len(now), len(images))

    def _send(self, program: Program, parts: list[Array]) -> None:
        """Reset, send the parameters and see them arrive."""
        link = self._link
        link.restart()
        with link.transferring():
            total, before = 0, link.registers.read("WORDS_IN")
            for part in parts:
                link.buffer("send0", len(part))[: len(part)] = part
                link.send("send0", len(part), f"{program.name}: parameters must be taken")
                total += len(part) // self.manifest.stream_words
            end, registers = (before + total) & 0xFFFFFFFF, link.registers
            link.wait(
                lambda: registers.read("WORDS_IN") == end and registers.field("STATUS", "LOADED") == 1,
                f"{program.name}: {total} stream words must be taken and set LOADED",
            )
            link.check_error()
            link.owner.claim(program.name, parts)

    def _fill(self, program: Program, frames: Frames, number: int, begin: int, images: Array) -> None:
        """Write the blocks of images, those from ``begin`` of the call on, and make room for their results."""
        words = len(images) * frames.words
        key, first = self._place(program, number, begin)
        self._link.buffer(key, first + len(images) * program.result_words)
        out, owner = self._link.buffer(f"send{number}", words)[:words], self._link.owner
        frames.fill(out, images, owner.signature, owner.count(len(images) * frames.packets))

    def _start(self, program: Program, frames: Frames, number: int, begin: int, count: int) -> None:
        key, first = self._place(program, number, begin)
        self._link.start(f"send{number}", frames.transfers(count), key, count * program.result_words, first)

    def _place(self, program: Program, number: int, begin: int) -> tuple[str, int]:
        """Buffer of the results from image ``begin`` of the call on, and their first word in it."""
        return (f"receive{number}", 0) if self.results is None else ("results", begin * program.result_words)
