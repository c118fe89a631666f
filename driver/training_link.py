"""The way to a training machine's core: its errors, and whether it is still loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.hls_gen.design.training_manifest import VLNV, TrainingManifest

from .errors import DeviceError, DeviceTaken, MachineStopped
from .link import Link


class TrainingLink(Link):
    """One training machine and its DMA. Parameters as of Link.

    Attributes
    ----------
    program
        Instructions that are in the machine or on their way to it, for messages.
    """

    vlnv = VLNV

    def __init__(
        self, overlay: Any, manifest: TrainingManifest, name: str, core: str | None, dma: str | None, timeout: float
    ) -> None:
        super().__init__(overlay, manifest, name, core, dma, timeout)
        self.manifest = manifest
        self.program: Sequence[Instruction] = ()
        self.restart()

    def check_error(self) -> None:
        """MachineStopped if STATUS.ERROR is set."""
        if self.registers.field("STATUS", "ERROR"):
            error, place = (self.registers.read(name) for name in ("ERROR_CODE", "ERROR_PLACE"))
            shown = str(self.program[place]) if place < len(self.program) else "none of the program"
            raise MachineStopped(self.name, self.manifest.error(error), place, shown)

    def check_owner(self) -> None:
        """DeviceTaken where another design has been loaded since."""
        if not self.overlay.is_loaded() or self.registers.digest() != self.manifest.digest[:32]:
            other = Path(str(self.overlay.device.bitfile_name)).name
            raise DeviceTaken(f"{self.name}: the device must hold {self.manifest.name}, got {other}: download it again")

    def taken(self) -> DeviceError | None:
        """What ``check_owner`` would raise; None also where the device doesn't answer."""
        try:
            self.check_owner()
        except DeviceTaken as e:
            return e
        except Exception:  # a bus error or a lost connection, which another error tells of
            return None
        return None
