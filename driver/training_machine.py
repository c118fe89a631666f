"""The training machine: programs and data in, words out. Public pynq API only, as in accelerator.py.

    with TrainingMachine("training.bit") as machine:     # training.manifest.json lies beside it
        states = machine.train(training, states, inputs, targets)

After an error the machine is in an unknown state, which the next ``run`` resets first. A run sends its program and all
of its data, so what others left in the machine does no harm.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bitloom.golden.discrete.machine.instruction import Instruction, shown_instruction
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import Training
from bitloom.golden.discrete.machine.words import LayerState, read_states, result_words
from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.training_manifest import VLNV, TrainingManifest
from bitloom.hls_gen.design.training_packets import program_packet, run_packet

from .device import Device
from .errors import DeviceTaken, MachineStopped


class TrainingMachine(Device[TrainingManifest]):
    """A training machine on a device; for one thread at a time. What every Device has is here, too.

    Attributes
    ----------
    cycles : int
        How long the last run took, from its header to END; wraps at 2^32.
    """

    _manifest_type = TrainingManifest
    _vlnv = VLNV

    def _set_up(self) -> None:
        self.cycles = 0
        self._program: Sequence[Instruction] = ()  # in the machine, or on the way to it

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
        parts = (program_packet(program), run_packet(data))
        link = self._link
        for what, count in (("program", parts[0].size), ("run", parts[1].size), ("result", words)):
            if not 1 <= 4 * count <= link.limit_bytes:
                raise ValueError(
                    f"{self.name}: a {what} must be 1..{link.limit_bytes // 4} words, which fit a "
                    f"DMA transfer (c_sg_length_width), got {count}"
                )
        self._check_owner()
        if not self._clean:
            self._restart()
        self._program = program
        both = np.concatenate(parts)
        link.buffer("send", both.size)[: both.size] = both
        received = link.buffer("receive", words)[:words]
        cycles, runs = (self.registers.read(name) for name in ("CYCLES", "RUNS"))
        with self._transferring():
            self._exchange("send", (parts[0].size, both.size), "receive", words)
            self._finish(words, f"a program of {len(program)} instructions must give {words} words")
            self._wait(lambda: self.registers.read("RUNS") != runs, "the program must end after its last word")
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
            Before the training.
        inputs : (N, inputs) words, or codes if the inputs are discrete
        targets : (N, outputs) words
            N is 1 to 65,535, a multiple of the batch.

        Returns
        -------
        list of LayerState
            After the training, equal to the interpreter's bit for bit.

        Raises
        ------
        ValueError
            The machine's caches are too small for the training, the last batch is not whole, or as of `run`; else
            errors as of `run`.
        """
        machine = self.manifest.machine
        program, data = ProgramWriter(machine, training).run(states, inputs, targets)
        return read_states(training, machine.form, self.run(program, data, result_words(training)))

    # What differs between devices

    def _check_error(self) -> None:
        """MachineStopped if STATUS.ERROR is set."""
        if self.registers.field("STATUS", "ERROR"):
            error, place = (self.registers.read(name) for name in ("ERROR_CODE", "ERROR_PLACE"))
            raise MachineStopped(self.name, self.manifest.error(error), place, shown_instruction(self._program, place))

    def _check_owner(self) -> None:
        """DeviceTaken where another design has been loaded since."""
        if not self.overlay.is_loaded() or self.registers.digest() != self.manifest.digest[:32]:
            other = Path(str(self.overlay.device.bitfile_name)).name
            raise DeviceTaken(f"{self.name}: the device must hold {self.manifest.name}, got {other}: download it again")
