"""The accelerator: images in, integers out. Public pynq API only, so the same code runs on a board and in simulation.

    with Accelerator("cnv.bit") as accelerator:          # cnv.manifest.json lies beside it
        accelerator.load(Program.load("cnv.npz"))
        classes = accelerator.classify(images)

After an error, or an interrupted call, the device is in an unknown state. The error leaves it so, to be looked at
(``registers.dump()``); the next ``predict`` or ``load`` resets it first.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import integer
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import VLNV, Manifest
from bitloom.hls_gen.design.packet_text import describe_header
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.program import Program

from .device import Device
from .errors import DeviceError, PacketError
from .frames import Frames, loads
from .host_maps import HostMaps, round_frames
from .owner import Owner
from .predictor import Predictor, Progress


class Accelerator(Predictor, Device[Manifest]):
    """An inference engine on a device; for one thread at a time. What every Device and every Predictor has is
    here, too.

    Attributes
    ----------
    program
        The loaded program, or the network in partitions; None before ``load``.
    results
        After ``load(..., results=N)``: pynq's buffer with the results as the device gave them, (N *
        program.result_words,) uint32, in memory from ``physical_address`` on. The results of frame i begin at word
        i * program.result_words. Else None.
    """

    _manifest_type = Manifest
    _vlnv = VLNV

    def _set_up(self) -> None:
        self.program: CompiledNetwork[Program] | None = None
        self._on_device: Program | None = None
        self.results: Any = None
        self._owner = Owner(self.overlay, self.registers, self.manifest, self.name)

    def __repr__(self) -> str:
        loaded = self.program.name if self.program else "no program"
        return f"<Accelerator {self.name}: {loaded}; {self.manifest.design.summary}>"

    def load(self, program: CompiledNetwork[Program] | str | Path, results: int = 0) -> None:
        """Send the parameters of ``program``, or of its file; frames are computed with them from now on. Of a network
        in partitions, the parameters of each partition are sent when its turn comes.

        Parameters
        ----------
        program
            The program, or the path of its file (.program.npz).
        results
            The most frames of a call, if all results of a call shall lie in one buffer, ``results``, until the next
            ``load``. 0: results go to the driver's two buffers in turn, transfer by transfer.

        Raises
        ------
        DigestMismatch
            The program was compiled for another design.
        ValueError
            The file is no program, a packet is longer than the DMA can send, or ``results`` is negative; else as
            ``predict``.
        """
        self._waiting.calls.check()
        results = integer(f"{self.name}: results", results)
        if results < 0:
            raise ValueError(f"{self.name}: results must be >= 0 frames, got {results}")
        program = program if isinstance(program, CompiledNetwork) else read_program(program)
        first = program.programs[0]
        if results and program is not first:
            raise ValueError(f"{program.name}: results of a network in partitions must be 0 frames, got {results}")
        for each in program.programs:
            loads(each, self.manifest, self._link.limit_bytes)
        self.program = self._on_device = self.results = None
        self._send_parameters(first)
        if results:
            self.results = self._link.allocate("results", results * first.result_words)
        self.program = program

    def predict(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """Compute the network's outputs, which equal golden's.

        Parameters
        ----------
        images
            (N, H, W, C) integers, each a value of the input's encoding. Later batches are packed while earlier ones are
            computed: what is changed in the array before the call has ended may still change what is computed.
        batch
            Frames a transfer; by default as many as frames.BATCH_BYTES hold. The next batch is packed meanwhile. Of a
            network in partitions: frames that go through one before the next one is loaded.
        progress
            Called with (frames done, N) after each batch; of a network in partitions after each program, too, before
            the round's frames are done.

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
        for batches in self._turns(images, batch, progress, outputs):
            with self._transferring():
                for words, what in batches:
                    self._finish(words, what)
        return outputs

    async def predict_async(self, images: Array, batch: int | None = None, progress: Progress | None = None) -> Array:
        """As ``predict``, but other coroutines run while the device computes (``has_interrupt``: until when).

        On a board interrupts come in the event loop in which the overlay was made (``pynq.uio``); in another one the
        device is looked at. One call at a time uses the device: a call that begins while another one is under way
        raises DeviceError; ``close`` ends the call under way.
        """
        outputs = self._outputs(images)
        for batches in self._turns(images, batch, progress, outputs):
            with self._transferring():
                for words, what in batches:
                    await self._finish_async(words, what)
        return outputs

    def counters(self) -> dict[str, int]:
        """Totals over all ``predict`` transfers since ``clear_counters``; names as the registers, in lower case."""
        return dict(self._waiting.counters.totals)

    def clear_counters(self) -> None:
        """Set all counters to 0, here and in the device."""
        self.registers.set("CONTROL", CLEAR_COUNTERS=1)
        self._waiting.counters.clear()

    @property
    def utilisation(self) -> tuple[float, ...]:
        """Per NPU: share of the transfers' cycles in which its array was fed, 0..1."""
        totals = self._waiting.counters.totals
        return tuple(totals[f"npu{i}_beats"] / max(1, totals["cycles"]) for i in range(len(self.manifest.npus)))

    def reset(self) -> None:
        """Abort everything in device and DMA and load the program again: the next frame is right."""
        if self._on_device is None:
            super().reset()
        else:
            self._send_parameters(self._on_device)

    def close(self) -> None:
        """Free the buffers; the program must be loaded again after this."""
        super().close()
        self.program = self._on_device = self.results = None

    # What differs between devices

    def _check_error(self) -> None:
        """PacketError if STATUS.ERROR is set."""
        if self.registers.field("STATUS", "ERROR"):
            names = ("ERROR_HEADER", "ERROR_ADDRESS", "ERROR_LENGTH")
            word0, address, length = (self.registers.read(name) for name in names)
            error = self.manifest.error(self.registers.read("ERROR_CODE"))
            shown = describe_header(self.manifest, word0, address, length)
            raise PacketError(self.name, error, (word0, address, length), shown)

    def _check_owner(self) -> None:
        self._owner.check()

    def _forget(self) -> None:
        self._owner.forget()

    def _begin(self) -> None:
        """Let frames enter; the core then waits for LOADs."""
        self.registers.set("CONTROL", START=1)

    # Frames

    def _need_program(self) -> CompiledNetwork[Program]:
        if self.program is None:
            raise DeviceError(f"{self.name}: a program must be loaded before images, got none")
        return self.program

    def _outputs(self, images: Array) -> Array:
        """Room for the outputs of ``images``, which are checked here. Resets the device after an error."""
        program = self._need_program()
        program.check_images(images)
        room = len(images) if self.results is None else self.results.size // program.programs[0].result_words
        if len(images) > room:
            raise ValueError(f"{program.name}: images must be at most {room}, as load was told, got {len(images)}")
        self._owner.check()
        if not self._clean:
            self.reset()
        return np.empty((len(images), *program.network_shape), np.int64)

    def _turns(
        self, images: Array, batch: int | None, progress: Progress | None, outputs: Array
    ) -> Iterator[Iterator[tuple[int, str]]]:
        """Compute ``outputs``. Yields the batches of each program that takes its turn, with the program on the device.

        All frames of a round go through a program before the next one takes its turn.
        """
        network = self._need_program()
        turns = network.turns
        alone = len(turns) == 1
        count = max(1, len(images)) if alone else self._round(network, batch)
        for begin in range(0, max(1, len(images)), count):
            maps = HostMaps(turns, images[begin : begin + count], outputs[begin : begin + count])
            for turn in turns:
                program = turn.program
                if program is not self._on_device:
                    self._owner.check()
                    self._send_parameters(program)
                batching = (batch, progress) if alone else (None, None)
                yield self._batches(program, maps.images(turn), *batching, maps.outputs(turn))
                maps.done(turn)
                if progress is not None and not alone:
                    progress(min(begin + count, len(images)) if turn is turns[-1] else begin, len(images))

    def _round(self, network: CompiledNetwork[Program], batch: int | None) -> int:
        """Frames that go through a network's partitions together: a batch, or as many as a round has by default."""
        if batch is not None:
            wanted = integer(f"{network.name}: batch", batch)
            network.require(wanted >= 1, "batch must be >= 1 frames", wanted)
            return wanted
        return round_frames(network)

    def _batches(
        self, program: Program, images: Array, batch: int | None, progress: Progress | None, outputs: Array
    ) -> Iterator[tuple[int, str]]:
        """Compute ``outputs`` by a program. Yields (result words, what is done) whenever a transfer must be waited
        for."""
        frames = Frames(self.manifest, program, self._link.limit_bytes // 4)
        size = frames.batch(self._link.limit_bytes, batch)
        if len(images):
            self._fill(program, frames, 0, 0, images[:size])
            self._start(program, frames, 0, 0, len(images[:size]))
        for number, begin in enumerate(range(0, len(images), size)):
            now = images[begin : begin + size]
            after = images[begin + size : begin + 2 * size]
            this = number % 2
            other = 1 - this
            if len(after):
                self._fill(program, frames, other, begin + size, after)
            words = len(now) * program.result_words
            yield words, f"{program.name}: {len(now)} frames must be computed"
            if len(after):
                self._start(program, frames, other, begin + size, len(after))
            key, first = self._place(program, this, begin)
            results = self._link.buffer(key, first + words)[first : first + words]
            program.unpack_results(results, outputs[begin : begin + len(now)])
            if progress is not None:
                progress(begin + len(now), len(images))

    def _send_parameters(self, program: Program) -> None:
        """Reset, send the parameters and see them arrive."""
        registers = self.registers
        parts = loads(program, self.manifest, self._link.limit_bytes)
        self._restart()
        with self._transferring():
            total = 0
            before = registers.read("WORDS_IN")
            for part in parts:
                self._link.buffer("send0", len(part))[: len(part)] = part
                self._send("send0", len(part), f"{program.name}: parameters must be taken")
                total += len(part) // self.manifest.stream_words
            end = (before + total) & 0xFFFFFFFF
            self._wait(
                lambda: registers.read("WORDS_IN") == end and registers.field("STATUS", "LOADED") == 1,
                f"{program.name}: {total} stream words must be taken and set LOADED",
            )
            self._check_error()
            self._owner.claim(program.name, parts)
        self._on_device = program

    def _fill(self, program: Program, frames: Frames, number: int, begin: int, images: Array) -> None:
        """Write the blocks of images, those from ``begin`` of the call on, and make room for their results."""
        words = len(images) * frames.words
        key, first = self._place(program, number, begin)
        self._link.buffer(key, first + len(images) * program.result_words)
        blocks = self._link.buffer(f"send{number}", words)[:words]
        frames.fill(blocks, images, self._owner.signature, self._owner.count(len(images) * frames.packets))

    def _start(self, program: Program, frames: Frames, number: int, begin: int, count: int) -> None:
        key, first = self._place(program, number, begin)
        self._exchange(f"send{number}", frames.transfers(count), key, count * program.result_words, first)

    def _place(self, program: Program, number: int, begin: int) -> tuple[str, int]:
        """Buffer of the results from image ``begin`` of the call on, and their first word in it."""
        return (f"receive{number}", 0) if self.results is None else ("results", begin * program.result_words)
