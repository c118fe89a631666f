"""DDR of a virtual board: bytes at physical addresses, handed out in pages.

What Python sees of a buffer is a copy of its own until flush or invalidate, as it is behind a processor's cache.
"""

import numpy as np

PAGE = 4096
"""Bytes of a page."""


class MemoryAccessError(RuntimeError):
    """An access that lies in no single buffer. On a board it would read or overwrite something else."""


class Ddr:
    """The memory. Pages that nobody touched cost nothing.

    Attributes
    ----------
    content
        (size,) uint8, all bytes.
    """

    base = 0x1000_0000
    """First physical address."""
    size = 256 << 20
    """Bytes."""

    def __init__(self) -> None:
        self.content = np.zeros(self.size, np.uint8)
        self._free = [(self.base, self.size)]  # (address, bytes), by address, never two that touch
        self._buffers: dict[int, int] = {}  # address -> bytes asked for

    def allocate(self, nbytes: int) -> int:
        """Take the first gap that is large enough for a new buffer.

        Parameters
        ----------
        nbytes
            Size of the buffer, which is rounded up to whole pages.

        Returns
        -------
        int
            Physical address, at the beginning of a page. The content is whatever was there.

        Raises
        ------
        MemoryError
            If no gap is large enough.
        """
        need = _pages(nbytes)
        for i, (address, room) in enumerate(self._free):
            if room >= need:
                self._free[i : i + 1] = [(address + need, room - need)] if room > need else []
                self._buffers[address] = nbytes
                return address
        raise MemoryError(f"DDR: no {nbytes} bytes in a row are free of {self.size}")

    def free(self, address: int) -> None:
        """Give the buffer at that address back."""
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
        """Bytes of all buffers, in whole pages."""
        return self.size - sum(room for _, room in self._free)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether all of these bytes lie in the DDR."""
        return self.base <= address and address + nbytes <= self.base + self.size

    def view(self, address: int, nbytes: int) -> np.ndarray:
        """The bytes themselves, (nbytes,) uint8.

        Raises
        ------
        MemoryAccessError
            If they lie outside of the DDR.
        """
        if not self.holds(address, nbytes):
            raise MemoryAccessError(
                f"DDR: 0x{address:X} + {nbytes} bytes is outside of 0x{self.base:X}..0x{self.base + self.size - 1:X}"
            )
        return self.content[address - self.base : address - self.base + nbytes]

    def buffer(self, address: int, nbytes: int, who: str) -> np.ndarray:
        """The bytes of an access, (nbytes,) uint8, which must lie inside one allocated buffer.

        Parameters
        ----------
        address, nbytes
            The range.
        who
            Who accesses it, for the message.

        Raises
        ------
        MemoryAccessError
            If no single buffer holds it.
        """
        for start, length in self._buffers.items():
            if start <= address and address + nbytes <= start + length:
                return self.view(address, nbytes)
        raise MemoryAccessError(f"{who}: 0x{address:X} + {nbytes} bytes is not inside one allocated buffer")


class CachedBuffer:
    """A buffer in the DDR as the processor sees it.

    Parameters
    ----------
    ddr
        Where to allocate; MemoryError if there is no room.
    nbytes
        Size.
    cached
        Whether ``host`` is a copy until flush or invalidate; if not, it is the DDR itself.

    Attributes
    ----------
    address
        Physical address.
    host
        (nbytes,) uint8, what the processor sees.
    """

    def __init__(self, ddr: Ddr, nbytes: int, cached: bool = True):
        self._ddr = ddr
        self.nbytes = nbytes
        self.address = ddr.allocate(nbytes)
        view = ddr.view(self.address, nbytes)
        self.host = view.copy() if cached else view

    def flush(self, offset: int, nbytes: int) -> None:
        """Copy from what the processor sees to the DDR."""
        self._ddr.view(self.address + offset, nbytes)[:] = self.host[offset : offset + nbytes]

    def invalidate(self, offset: int, nbytes: int) -> None:
        """Copy from the DDR to what the processor sees."""
        self.host[offset : offset + nbytes] = self._ddr.view(self.address + offset, nbytes)

    def free(self) -> None:
        """Give the memory back; nothing else may be called afterwards."""
        self._ddr.free(self.address)


def _pages(nbytes: int) -> int:
    """Bytes of the whole pages that hold ``nbytes``; at least one page."""
    return max(1, -(-nbytes // PAGE)) * PAGE
