"""The way to an inference engine's core: its errors, and whose program it holds."""

from typing import Any

from bitloom.hls_gen.design.manifest import VLNV, Manifest
from bitloom.hls_gen.design.packet_text import describe_header

from .errors import DeviceError, PacketError
from .link import Link
from .owner import Owner


class AcceleratorLink(Link):
    """One inference engine and its DMA. Parameters as of Link."""

    vlnv = VLNV

    def __init__(
        self, overlay: Any, manifest: Manifest, name: str, core: str | None, dma: str | None, timeout: float
    ) -> None:
        super().__init__(overlay, manifest, name, core, dma, timeout)
        self.manifest = manifest
        self.owner = Owner(overlay, self.registers, manifest, name)
        self.restart()

    def check_error(self) -> None:
        """PacketError if STATUS.ERROR is set."""
        if self.registers.field("STATUS", "ERROR"):
            names = ("ERROR_HEADER", "ERROR_ADDRESS", "ERROR_LENGTH")
            word0, address, length = (self.registers.read(name) for name in names)
            error = self.manifest.error(self.registers.read("ERROR_CODE"))
            shown = describe_header(self.manifest, word0, address, length)
            raise PacketError(self.name, error, (word0, address, length), shown)

    def taken(self) -> DeviceError | None:
        """What ``Owner.taken`` says."""
        return self.owner.taken()

    def check_owner(self) -> None:
        """Raise DeviceTaken where somebody else has loaded the device."""
        self.owner.check()

    def restart(self) -> None:
        """Abort everything; the core then waits for LOADs, with START set."""
        self.turn.check()
        self.owner.forget()
        super().restart()

    def begin(self) -> None:
        """Let frames enter."""
        self.registers.set("CONTROL", START=1)
