"""Whose program a device holds: two programs, two processes or two clients may use one device, one after the other.

Whoever loads writes a number of its own to register OWNER, which the hardware sets to 0 at a reset and at every LOAD.
The number is looked at before frames are sent (somebody has loaded since) and after their results have come (somebody
loaded while they were computed); what happens between these looks shows in the second one. A frame says which
parameters it is for, and the device refuses it after others were loaded, so that not even a load in the moment between
a look and a frame gives a wrong result. A download by somebody else in this process is known from pynq, one by another
process from the register, which is 0 in a new design.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitloom.hls_gen.design.headers import Words
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.registers import IDENT, OWNER_BITS
from bitloom.hls_gen.design.signature import START, loads_signature

from .errors import DeviceTaken, TransferError
from .registers import Registers

_designs: dict[str, str] = {}
"""Digest -> name of the designs that this process has used, for messages."""
_programs: dict[int, str] = {}
"""Signature -> name of the programs that this process has loaded, for messages."""


class Owner:
    """The device as an accelerator left it: the parameters that it loaded last.

    Parameters
    ----------
    overlay
        ``pynq.Overlay`` of the device.
    registers
        Its registers.
    manifest
        Manifest of the hardware.
    name
        Beginning of messages.

    Attributes
    ----------
    signature
        Signature of the parameters that we have loaded; 0 before.
    """

    def __init__(self, overlay: Any, registers: Registers, manifest: Manifest, name: str) -> None:
        self._overlay = overlay
        self._registers = registers
        self._manifest = manifest
        self._name = name
        self._number = self._sent = 0
        self._program = ""
        self.signature = 0
        _designs[manifest.digest[:32]] = manifest.name

    def forget(self) -> None:
        """Note that we have reset the device: nobody's parameters are in it."""
        self._number = 0

    def count(self, packets: int) -> int:
        """Count packets that go with frames; returns how many were counted before, since ``claim``."""
        self._sent += packets
        return self._sent - packets

    def claim(self, program: str, parts: Sequence[Words]) -> None:
        """Write our number to the device, in which the parameters of ``program`` have just arrived.

        The signature is read after the write: a load that began before the write shows in the signature, and a load
        that begins later sets OWNER to 0.

        Parameters
        ----------
        program
            The program's name.
        parts
            LOAD packets as they were sent since the reset.

        Raises
        ------
        DeviceTaken
            Somebody else loads at the same time.
        TransferError
            Parameters have changed on the way.
        """
        signature = START
        for part in parts:
            signature = loads_signature(self._manifest, part, signature)
        _programs[signature] = program
        self.signature = signature
        self._sent = 0
        self._program = f"{program} (parameters 0x{signature:08X})"
        self._number = 1 + secrets.randbelow((1 << OWNER_BITS) - 1)
        self._registers.write("OWNER", self._number)
        value = self._registers.read("SIGNATURE")
        self.check()
        if value != signature:
            raise TransferError(
                f"{self._name}: parameters of {program} must arrive with signature 0x{signature:08X}, got 0x{value:08X}"
            )

    def check(self) -> None:
        """Raise DeviceTaken, with both programs or both designs, unless the device is as we left it."""
        if not self._overlay.is_loaded():
            other = Path(str(self._overlay.device.bitfile_name)).name
            self._refuse(f"design {self._manifest.name}", other, "download it again, and load the program")
        if self._registers.read("OWNER") == self._number:
            return
        wanted = self._manifest.digest[:32]
        ident = self._registers.read("IDENT")
        digest = self._registers.digest()
        if ident != IDENT or digest != wanted:
            design = _designs.get(digest, "another design") if ident == IDENT else "no design of bitloom"
            again = "download it again, and load the program"
            self._refuse(f"design {self._manifest.name} ({wanted})", f"{design} ({digest})", again)
        other = "none: somebody has reset it"
        if self._registers.field("STATUS", "LOADED"):
            signature = self._registers.read("SIGNATURE")
            name = _programs.get(signature, "another program")
            other = f"{name} (parameters 0x{signature:08X}), loaded by somebody else"
        self._refuse(f"program {self._program}" if self._number else "no program yet", other, "load the program again")

    def _refuse(self, wanted: str, other: str, remedy: str) -> None:
        raise DeviceTaken(f"{self._name}: the device must hold {wanted}, got {other}: {remedy}")
