"""The processor's view of registers: which peripheral answers at an address."""

from dataclasses import dataclass
from typing import Protocol


class BusError(RuntimeError):
    """Nothing answers at an address. On a board the processor would hang or take an exception."""


class Peripheral(Protocol):
    """Something that has registers."""

    def read(self, offset: int) -> int:
        """The 32-bit register at a byte offset."""

    def write(self, offset: int, value: int) -> None:
        """Write the 32-bit register at a byte offset."""


class StoredRegisters:
    """Registers that keep what was written: those of the processor that pynq sets and reads back.

    Parameters
    ----------
    values
        First values, by byte offset; all others hold 0.
    """

    def __init__(self, values: dict[int, int] | None = None):
        self._values = dict(values or {})

    def read(self, offset: int) -> int:
        """The word that was written last."""
        return self._values.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """Keep a value."""
        self._values[offset] = value


@dataclass(frozen=True)
class Region:
    """A range of addresses, and who answers there."""

    name: str
    """For messages."""
    base: int
    size: int
    """base, size: first address, and length in bytes."""
    core: Peripheral
    """Whose registers they are."""

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.base + self.size


class Bus:
    """Decodes addresses to regions."""

    def __init__(self, regions: list[Region]):
        self.regions = regions

    def __contains__(self, address: int) -> bool:
        return any(address in region for region in self.regions)

    def find(self, address: int, what: str) -> tuple[Region, int]:
        """Find who answers to a 32-bit access.

        Parameters
        ----------
        address
            Byte address.
        what
            "read" or "write", for the message.

        Returns
        -------
        tuple
            The region, and the offset in it.

        Raises
        ------
        BusError
            If the address is no multiple of 4, or in no region.
        """
        if address % 4:
            raise BusError(f"{what} of 0x{address:X}: the address must be a multiple of 4")
        for region in self.regions:
            if address in region:
                return region, address - region.base
        known = ", ".join(f"{r.name} 0x{r.base:X}..0x{r.base + r.size - 1:X}" for r in self.regions)
        raise BusError(f"{what} of 0x{address:X}: nothing answers there ({known})")


def processor_bus(arch: str) -> Bus:
    """Clock and port registers of a processing system, which pynq reads and writes.

    The PLLs have plausible rates, because pynq computes clock frequencies with them.
    """
    if arch == "zynq":
        control = {0x100: 26 << 12, 0x104: 21 << 12, 0x108: 20 << 12, 0x120: 2 << 8}
        control |= {0x170 + 0x10 * i: 2 << 20 | 5 << 8 for i in range(4)}
        return Bus([Region("SLCR", 0xF800_0000, 0x1000, StoredRegisters(control))])
    low_power = {0x20: 90 << 8 | 1 << 16, 0x30: 45 << 8}  # IOPLL 1500 MHz, RPLL 1500 MHz
    low_power |= {0xC0 + 4 * i: 1 << 24 | 1 << 16 | 15 << 8 for i in range(4)}
    full_power = {0x20: 72 << 8 | 1 << 16, 0x2C: 64 << 8 | 1 << 16, 0x38: 90 << 8 | 1 << 16, 0x60: 1 << 8}
    regions = [
        Region("CRL_APB", 0xFF5E_0000, 0x1000, StoredRegisters(low_power)),
        Region("CRF_APB", 0xFD1A_0000, 0x1000, StoredRegisters(full_power)),
        Region("processor registers", 0xFD00_0000, 0x0300_0000, StoredRegisters()),
    ]
    return Bus(regions)
