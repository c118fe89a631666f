"""AXI interrupt controller (Xilinx PG099) with level inputs, as pynq's own driver code uses it."""

from collections.abc import Callable

ISR = 0x00
IPR = 0x04
IER = 0x08
IAR = 0x0C
SIE = 0x10
CIE = 0x14
IVR = 0x18
MER = 0x1C


class InterruptController:
    """The controller. A pending bit stays until it is acknowledged while its input is low.

    Parameters
    ----------
    lines
        Gives the inputs as a bit mask whenever it is called.
    """

    def __init__(self, lines: Callable[[], int]):
        self._lines = lines
        self._latched = self._enabled = self._master = 0

    @property
    def pending(self) -> int:
        """Inputs that are latched and enabled, as a bit mask."""
        self._latched |= self._lines()
        return self._latched & self._enabled

    @property
    def output(self) -> bool:
        """The interrupt to the processor: both master enable bits are set and something is pending."""
        return self._master & 3 == 3 and self.pending != 0

    def read(self, offset: int) -> int:
        """Read the register at an offset; 0 where there is none."""
        pending = self.pending
        first = (pending & -pending).bit_length() - 1 & 0xFFFFFFFF
        known = {ISR: self._latched, IPR: pending, IER: self._enabled, IVR: first, MER: self._master}
        return known.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        """Write the register at an offset; nothing happens where there is none."""
        if offset == ISR:
            self._latched |= value
        elif offset == IAR:
            self._latched &= ~value
        elif offset == IER:
            self._enabled = value
        elif offset == SIE:
            self._enabled |= value
        elif offset == CIE:
            self._enabled &= ~value
        elif offset == MER:
            self._master = value
