"""DDR of a virtual board: bytes at physical addresses, handed out in pages.

It is apart from what Python sees (flush and invalidate copy), as a processor's cache is on a board.
"""

import numpy as np

PAGE = 4096


class MemoryAccessError(RuntimeError):
    """An access inside the DDR that no single buffer holds: on a board it would overwrite something else."""


class Ddr:
    """``size`` bytes from physical address ``base``. Untouched pages cost nothing."""

    def __init__(self, base: int = 0x1000_0000, size: int = 256 << 20):
        self.base, self.size = base, size
        self._bytes = np.zeros(size, np.uint8)
        self._free = [(base, size)]  # (address, bytes), by address, never two that touch
        self._buffers: dict[int, int] = {}  # address -> bytes asked for

    def allocate(self, nbytes: int) -> int:
        """Address of a new buffer, at a page; the first gap that is big enough. Its content is what was there."""
        need = _pages(nbytes)
        for i, (address, room) in enumerate(self._free):
            if room >= need:
                self._free[i : i + 1] = [(address + need, room - need)] if room > need else []
                self._buffers[address] = nbytes
                return address
        raise MemoryError(f"DDR: no {nbytes} bytes in a row are free of {self.size}")

    def free(self, address: int) -> None:
        """Give a buffer back."""
        room = _pages(self._buffers.pop(address))
        gaps = sorted([*self._free, (address, room)])
        joined = [gaps[0]]
        for start, length in gaps[1:]:
            before, extent = joined[-1]
            if before + extent == start:
                joined[-1] = (before, extent + length)
            else:
                joined.append((start, length))
        self._free = joined

    @property
    def used(self) -> int:
        """Bytes in buffers, whole pages."""
        return self.size - sum(room for _, room in self._free)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether all of it is DDR."""
        return self.base <= address and address + nbytes <= self.base + self.size

    def view(self, address: int, nbytes: int) -> np.ndarray:
        """The bytes themselves."""
        if not self.holds(address, nbytes):
            raise MemoryAccessError(
                f"DDR: 0x{address:X} + {nbytes} bytes is outside of 0x{self.base:X}..0x{self.base + self.size - 1:X}"
            )
        return self._bytes[address - self.base : address - self.base + nbytes]

    def buffer(self, address: int, nbytes: int, who: str) -> np.ndarray:
        """The bytes of an access by ``who``, which must lie inside one buffer. Raises MemoryAccessError."""
        for start, length in self._buffers.items():
            if start <= address and address + nbytes <= start + length:
                return self.view(address, nbytes)
        raise MemoryAccessError(f"{who}: 0x{address:X} + {nbytes} bytes is not inside one allocated buffer")


class CachedBuffer:
    """``nbytes`` of the DDR as the processor sees them: ``host`` is a copy until flush or invalidate.

    cached : False: ``host`` is the DDR itself. Raises MemoryError where there is no room.
    """

    def __init__(self, ddr: Ddr, nbytes: int, cached: bool = True):
        self._ddr, self.nbytes = ddr, nbytes
        self.address = ddr.allocate(nbytes)
        view = ddr.view(self.address, nbytes)
        self.host = view.copy() if cached else view

    def flush(self, offset: int, nbytes: int) -> None:
        """Host copy to DDR."""
        self._ddr.view(self.address + offset, nbytes)[:] = self.host[offset : offset + nbytes]

    def invalidate(self, offset: int, nbytes: int) -> None:
        """DDR to host copy."""
        self.host[offset : offset + nbytes] = self._ddr.view(self.address + offset, nbytes)

    def free(self) -> None:
        """Give the memory back; nothing else may be called afterwards."""
        self._ddr.free(self.address)


def _pages(nbytes: int) -> int:
    return max(1, -(-nbytes // PAGE)) * PAGE
