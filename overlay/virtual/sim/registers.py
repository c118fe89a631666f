"""The registers of a simulated design, reached through its s_axi as a processor does."""

import ctypes

from bitloom.hls_gen.design.registers import ADDRESS_BITS, CONTROL

from .errors import RegisterError
from .library import WriteShape
from .running import RunningModel

REGISTER_LIMIT = 10_000
"""Cycles in which a register access must be answered."""
RESPONSES = ("OKAY", "EXOKAY", "SLVERR", "DECERR")
"""Names of the bits of bresp and rresp (AXI, A3.4.4)."""
DEVICE, DMA = 0, 1
"""Ports through which registers are reached: the device's, and the DMA's in a model that has one."""
WHOLE_WORD = 0b1111
"""Strobes of a write to all four bytes of a register."""


class RegisterAccess(RunningModel):
    """Reads and writes of 32-bit registers by their byte offset, 0..0xFFF. The streams go on meanwhile."""

    def read_register(self, offset: int, *, response_delay: int = 0, port: int = DEVICE) -> int:
        """Read a register.

        Parameters
        ----------
        offset
            Byte offset, 0..0xFFF.
        response_delay
            Cycles for which the answer is left waiting.
        port
            DEVICE or DMA.

        Returns
        -------
        int
            The 32-bit value.

        Raises
        ------
        RegisterError
            If the answer is not OKAY.
        SimulationTimeout
            If there is no answer.
        """
        value, response = self.try_read(offset, response_delay=response_delay, port=port)
        if response != "OKAY":
            raise RegisterError(f"read of register 0x{offset:03X}: answered {response}")
        return value

    def write_register(self, offset: int, value: int, **shape: int) -> None:
        """Write a register.

        Parameters
        ----------
        offset
            Byte offset, 0..0xFFF.
        value
            Of which the low 32 bits are written.
        shape
            Strobes and delays as for ``try_write``.

        Raises
        ------
        RegisterError
            If the answer is not OKAY.
        SimulationTimeout
            If there is no answer.
        """
        response = self.try_write(offset, value, **shape)
        if response != "OKAY":
            raise RegisterError(f"write of register 0x{offset:03X}: answered {response}")

    def try_read(self, offset: int, *, response_delay: int = 0, port: int = DEVICE) -> tuple[int, str]:
        """Read a register, whatever the answer is.

        Returns
        -------
        tuple
            The value, and the answer: "OKAY", "SLVERR" or "DECERR".
        """
        data = ctypes.c_uint32()
        limit = REGISTER_LIMIT + response_delay
        code = self._call.read(self._model, port, _checked(offset), ctypes.byref(data), response_delay, limit)
        self._check(code)
        if code == -1:
            raise self.timeout(f"read of register 0x{offset:03X}: no answer for {limit} cycles", registers=False)
        return data.value, RESPONSES[code]

    def try_write(
        self,
        offset: int,
        value: int,
        *,
        strobes: int = WHOLE_WORD,
        address_delay: int = 0,
        data_delay: int = 0,
        response_delay: int = 0,
        port: int = DEVICE,
    ) -> str:
        """Write a register, whatever the answer is.

        Parameters
        ----------
        offset, value
            As for ``write_register``.
        strobes
            Bytes that are written, a bit each, the lowest byte's first.
        address_delay, data_delay, response_delay
            Cycles before awvalid, wvalid and bready rise. With them the address comes before the data, or the data
            before the address.
        port
            DEVICE or DMA.

        Returns
        -------
        str
            The answer: "OKAY", "SLVERR" or "DECERR".
        """
        # A reset takes back what the streams offer, which the protocol's rules forbid at any other time.
        resets = port == DEVICE and offset == CONTROL.offset and bool(CONTROL.field("SOFT_RESET").of(value))
        shape = WriteShape(strobes, address_delay, data_delay, response_delay, resets and strobes == WHOLE_WORD)
        limit = REGISTER_LIMIT + address_delay + data_delay + response_delay
        code = self._call.write(self._model, port, _checked(offset), value & 0xFFFFFFFF, ctypes.byref(shape), limit)
        self._check(code)
        if code == -1:
            raise self.timeout(f"write of register 0x{offset:03X}: no answer for {limit} cycles", registers=False)
        return RESPONSES[code]


def _checked(offset: int) -> int:
    """The offset itself; ValueError where the address bits can't hold it."""
    if not 0 <= offset < 1 << ADDRESS_BITS:
        raise ValueError(
            f"register: offset must be 0..0x{(1 << ADDRESS_BITS) - 1:X} ({ADDRESS_BITS} address bits), got {offset:#x}"
        )
    return offset
