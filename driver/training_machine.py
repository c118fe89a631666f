"""The training machine: programs and data in, words out. Public pynq API only, as in accelerator.py.

    with TrainingMachine("training.bit") as machine:     # training.manifest.json lies beside it
        states = machine.train(training, states, inputs, targets)

After an error the machine is in an unknown state, which the next ``run`` resets first. A run sends its program and all
of its data, so what others left in the machine does no harm.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import Training
from bitloom.golden.discrete.machine.words import LayerState, first_words, read_weights, result_words, sample_words
from bitloom.hls_gen.design.training_manifest import TrainingManifest
from bitloom.hls_gen.design.training_packets import program_packet, run_packet

from .device import active_device
from .pynq_api import pynq
from .registers import Registers
from .training_link import TrainingLink

Array = NDArray[Any]


class TrainingMachine:
    """A training machine on a device; for one thread at a time.

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
        Seconds without any progress (words, beats) after which a run is given up.

    Attributes
    ----------
    name, overlay, manifest
        Stem of the .bit file, the ``pynq.Overlay``, and what the hardware has.
    cycles : int
        How long the last run took, from its header to END; wraps at 2^32.

    Raises
    ------
    ValueError, FileNotFoundError
        The manifest is none of a training machine, or isn't there.
    DesignMismatch, DigestMismatch
        The overlay isn't what the manifest describes.
    """

    def __init__(
        self,
        overlay: Any,
        *,
        manifest: TrainingManifest | str | Path | None = None,
        core: str | None = None,
        dma: str | None = None,
        device: Any = None,
        timeout: float = 10.0,
    ) -> None:
        if isinstance(overlay, (str, Path)):
            overlay = pynq.Overlay(str(overlay), device=device or active_device(overlay))
        path = Path(overlay.bitfile_name)
        if not isinstance(manifest, TrainingManifest):
            manifest = TrainingManifest.load(manifest or path.with_suffix(".manifest.json"))
        self.name, self.overlay, self.manifest, self.cycles = path.stem, overlay, manifest, 0
        self._link = TrainingLink(overlay, manifest, self.name, core, dma, timeout)

    @property
    def registers(self) -> Registers:
        """The core's registers by name."""
        return self._link.registers

    def run(self, program: Sequence[Instruction], data: Array, words: int) -> Array:
        """Load a program and run it to END.

        Parameters
        ----------
        program : sequence of Instruction
            It gives all its words as one transfer.
        data : (n,) integers
            32-bit words that IO takes, all of them.
        words : int
            Words that IO gives, 1 or more.

        Returns
        -------
        (words,) uint32

        Raises
        ------
        ValueError
            A transfer is longer than the DMA can make it, or ``words`` is less than 1; nothing was sent.
        MachineStopped
            A rule was broken.
        DeviceTaken
            Another design has been loaded since.
        TransferError, Timeout
            Other words came than were expected, or none.
        """
        parts, link = (program_packet(program), run_packet(data)), self._link
        for what, count in (("program", parts[0].size), ("run", parts[1].size), ("result", words)):
            if not 1 <= 4 * count <= link.dma.limit_bytes:
                raise ValueError(f"{self.name}: a {what} must be 1..{link.dma.limit_bytes // 4} words, which fit a "
                                 f"DMA transfer (c_sg_length_width), got {count}")  # fmt: skip
        link.check_owner()
        if not link.clean:
            link.restart()
        link.program = program
        both = np.concatenate(parts)
        link.buffer("send", both.size)[: both.size] = both
        received = link.buffer("receive", words)[:words]
        cycles, runs = (self.registers.read(name) for name in ("CYCLES", "RUNS"))
        with link.transferring():
            link.start("send", (parts[0].size, both.size), "receive", words)
            link.finish(words, f"a program of {len(program)} instructions must give {words} words")
            link.wait(lambda: self.registers.read("RUNS") != runs, "the program must end after its last word")
        self.cycles = (self.registers.read("CYCLES") - cycles) & 0xFFFFFFFF
        return received.copy()

    def train(
        self, training: Training, states: Sequence[LayerState], inputs: Array, targets: Array
    ) -> list[LayerState]:
        """Train with samples, one after another.

        Parameters
        ----------
        training : Training
        states : sequence of LayerState
            Weights and biases before.
        inputs : (N, inputs) words, or codes if the inputs are discrete
        targets : (N, outputs) words
            N is 1 to 65,535.

        Returns
        -------
        list of LayerState
            Weights and biases after it, as of the interpreter bit for bit.

        Raises
        ------
        ValueError
            The machine's caches are too small for the training, or as of `run`; else errors as of `run`.
        """
        form = self.manifest.machine.form
        program = ProgramWriter(self.manifest.machine, training).program(len(inputs))
        data = np.concatenate([first_words(training, form, states), sample_words(training, form, inputs, targets)])
        return read_weights(training, form, self.run(program, data, result_words(training)))

    def reset(self) -> None:
        """Abort everything in machine and DMA."""
        self._link.restart()

    def close(self) -> None:
        """Free the buffers."""
        self._link.close()

    def __enter__(self) -> "TrainingMachine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
