"""A packetizer on the board: frames of a camera or of another raw stream go to the device without a host.

    overlay.load("digits-cnn.program.npz")
    overlay.packetizer_0.run(overlay.accelerator.registers.read("SIGNATURE"), transfer_frames=100)

pynq makes the driver of every packetizer in an overlay.
"""

import time

from bitloom.hls_gen.design.packetizer import (
    BEATS,
    CONTROL,
    NUMBER,
    SIGNATURE,
    STATUS,
    TRANSFER_FRAMES,
    VLNV,
)

from .errors import DeviceError
from .pynq_api import pynq

WRONG = {"SHORT": "fewer", "LONG": "more"}
"""Errors of STATUS: how many beats a frame had."""


class PacketizerCore(pynq.DefaultIP):  # type: ignore[misc]
    """pynq's driver of a packetizer (``overlay.packetizer_0``)."""

    bindto = (VLNV,)

    def run(self, signature: int, transfer_frames: int = 0) -> None:
        """Let frames of the raw stream go to the network that the device has loaded; errors are cleared.

        Frames count from 0. A host may send frames of its own after the next ``load``.

        Parameters
        ----------
        signature
            Signature of the loaded parameters: the device's register SIGNATURE.
        transfer_frames
            Frames whose results a receive of the DMA takes, 1..65535; 0: results never end a receive.

        Raises
        ------
        ValueError
            ``transfer_frames`` is out of range; nothing was written.
        """
        most = TRANSFER_FRAMES.field("FRAMES").of(-1)
        if not 0 <= transfer_frames <= most:
            raise ValueError(f"packetizer: transfer_frames must be 0..{most}, got {transfer_frames}")
        self.write(STATUS.offset, sum(STATUS.field(name).at(1) for name in WRONG))
        self.write(SIGNATURE.offset, signature)
        self.write(NUMBER.offset, 0)
        self.write(TRANSFER_FRAMES.offset, transfer_frames)
        self.write(CONTROL.offset, CONTROL.field("RUN").at(1))

    def check(self) -> None:
        """Raise DeviceError if a frame had too few beats, or too many: the packetizer has stopped behind it."""
        status = self.read(STATUS.offset)
        for name, beats in WRONG.items():
            if STATUS.field(name).of(status):
                number = self.read(NUMBER.offset) - 1
                raise DeviceError(
                    f"packetizer: frame {number} must have {self.read(BEATS.offset)} beats, got {beats}: call run again"
                )

    def stop(self, timeout: float = 1.0) -> int:
        """Stop behind the frame under way.

        Parameters
        ----------
        timeout
            Seconds in which that frame must end.

        Returns
        -------
        int
            Frames that were made since ``run``.

        Raises
        ------
        DeviceError
            The frame doesn't end: the raw stream has stopped in it, or the device takes no words. See ``reset``.
        """
        self.write(CONTROL.offset, 0)
        end = time.monotonic() + timeout
        while STATUS.field("BUSY").of(self.read(STATUS.offset)):
            if time.monotonic() > end:
                raise DeviceError(f"packetizer: the frame under way must end within {timeout} s, got none")
        return int(self.read(NUMBER.offset))

    def reset(self) -> None:
        """Drop the frame under way, and clear errors. Afterwards the device behind it needs a reset and its
        program."""
        self.write(CONTROL.offset, CONTROL.field("RESET").at(1))
