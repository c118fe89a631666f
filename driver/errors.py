"""Errors of a device. Every message is one line: the thing, the rule, the value.

Wrong files and wrong images are ValueErrors, as in golden; these here need a device to happen.
"""

from collections.abc import Mapping

from bitloom.hls_gen.design.headers import ErrorCode

from .state import explain


class DeviceError(Exception):
    """Base of everything that an accelerator raises."""


class DesignMismatch(DeviceError):
    """The overlay isn't what the manifest or the program describes: no such core, another IDENT, VERSION or DMA."""


class DigestMismatch(DesignMismatch):
    """Hardware, manifest and program come from different builds. ``expected`` and ``actual`` are the digests."""

    def __init__(self, message: str, expected: str, actual: str) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class PacketError(DeviceError):
    """The device refused a packet.

    Attributes
    ----------
    code, name, rule
        Row of the manifest's table of error codes.
    header
        Words 0 to 2 of the packet at fault, as the device kept them.
    """

    def __init__(self, thing: str, error: ErrorCode, header: tuple[int, int, int], description: str) -> None:
        super().__init__(f"{thing}: {error.name}: the device needs that {error.rule}, got {description}")
        self.code = error.code
        self.name = error.name
        self.rule = error.rule
        self.header = header


class MachineStopped(DeviceError):
    """A training machine stopped because a rule was broken, by its program or by a packet.

    Parameters
    ----------
    thing
        Beginning of the message.
    error
        Row of the manifest's table of rules.
    place
        Address of the instruction at fault.
    shown
        That instruction in words.

    Attributes
    ----------
    code, name, rule
        Of ``error``.
    place
        As above.
    """

    def __init__(self, thing: str, error: ErrorCode, place: int, shown: str) -> None:
        super().__init__(
            f"{thing}: {error.name}: the machine needs that {error.rule}, got instruction {place}: {shown}"
        )
        self.code = error.code
        self.name = error.name
        self.rule = error.rule
        self.place = place


class TransferError(DeviceError):
    """The DMA reported an error, or moved another number of bytes than was due."""


class DeviceTaken(DeviceError):
    """Somebody else has loaded another program or another design since; the results are not ours.

    The device is left to the other user until ``load`` or ``reset`` is called.
    """


class Timeout(DeviceError):
    """Nothing moved for the allowed time.

    The message names STATUS, STATE and a circle of waits between NPUs (driver/state.py); ``report`` lists all.

    Attributes
    ----------
    registers
        Name -> value of every register that can be read, at the moment of the error.
    state
        "npu0.field" -> value, the fields of the STATE registers.
    """

    def __init__(self, message: str, registers: Mapping[str, int], state: Mapping[str, int]) -> None:
        status = f"STATUS 0x{registers['STATUS']:08X}" if "STATUS" in registers else "no STATUS"
        where = ", ".join(f"{name} {value}" for name, value in state.items())
        parts = [part for part in (status, explain(state), where) if part]
        super().__init__(f"{message} ({'; '.join(parts)})")
        self.registers, self.state = dict(registers), dict(state)

    def report(self) -> str:
        """The message and one line per register."""
        width = max((len(name) for name in self.registers), default=0)
        return "\n".join([str(self), *(f"  {n:{width}}  0x{v:08X}  {v}" for n, v in self.registers.items())])
