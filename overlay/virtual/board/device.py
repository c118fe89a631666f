"""A pynq device that is simulated in this process.

``pynq.Overlay(path)``, ``pynq.allocate`` and pynq's DMA driver run on it unchanged.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pynq.ps
from pynq.buffer import PynqBuffer
from pynq.interrupt import _InterruptController
from pynq.pl_server.device import Device
from pynqmetadata.frontends import Metadata
from pynqmetadata.views.runtime import RuntimeMetadataParser

from bitloom.golden.reading.file import reason
from bitloom.overlay.platform.processors import PROCESSORS
from bitloom.overlay.virtual.simulation_overlay import OverlayError, read_simulation_overlay

from .board import NAME, NothingLoadedError, VirtualBoard, hwh_arch
from .bus import BusError
from .memory import CachedBuffer


class VirtualMemory:
    """The DDR as pynq's allocator."""

    def __init__(self, device: "VirtualDevice"):
        self.device = device
        self.size = device.ddr.size
        self.base_address = device.ddr.base
        self.idx = 0

    def allocate(self, shape: Any, dtype: Any = "u4", cacheable: bool = True, **_: Any) -> PynqBuffer:
        """A buffer, as ``pynq.allocate`` makes it.

        Parameters
        ----------
        shape, dtype
            As for ``numpy.empty``.
        cacheable
            If False, the buffer is the DDR itself and needs no flush.
        """
        dtype = np.dtype(dtype)
        memory = CachedBuffer(self.device.ddr, int(np.prod(shape)) * dtype.itemsize, cacheable)
        options = {"device": self.device, "device_address": memory.address, "bo": memory, "coherent": not cacheable}
        buffer = PynqBuffer(shape, dtype, buffer=memory.host.data, **options)
        buffer.memory = self
        buffer.pointer = memory
        buffer.return_to = self
        buffer.freed = True  # freebuffer() calls return_pointer() once, and must not unmap the host memory
        return buffer

    def return_pointer(self, memory: CachedBuffer) -> None:
        """Called by pynq when a buffer was freed."""
        memory.free()


class InterruptLine:
    """Stands for /dev/uio: whoever waits for the processor's interrupt makes simulated time pass.

    pynq has one table of these lines for all devices. So the board is the one whose interrupt controller waits.
    """

    def add_event(self, controller: _InterruptController, number: int) -> None:
        """Call ``controller.set()`` once the interrupt is high; never, if the board is closed before."""
        loop = asyncio.get_running_loop()
        device = controller.mmio.device

        def look() -> None:
            with suppress(NothingLoadedError):
                if device.advance_to_interrupt():
                    controller.set()
                else:
                    loop.call_later(0 if device.busy else 0.001, look)

        loop.call_soon(look)


class VirtualDevice(VirtualBoard, Device):
    """A board whose programmable logic is simulated; make it with ``activate``.

    Parameters
    ----------
    tag
        Name under which pynq knows the device.
    """

    def __init__(self, tag: str = "virtual"):
        VirtualBoard.__init__(self)
        Device.__init__(self, tag)
        self.name = NAME
        self.capabilities = {"REGISTER_RW": True}
        self.default_memory = VirtualMemory(self)

    def read_registers(self, address: int, length: int) -> bytes:
        """Read ``length`` bytes of registers, in steps of 32 bits."""
        return b"".join(self.read(address + offset).to_bytes(4, "little") for offset in range(0, length, 4))

    def write_registers(self, address: int, data: bytes) -> None:
        """Write registers; BusError unless the data are whole words of 32 bits."""
        data = bytes(data)
        if len(data) % 4:
            raise BusError(f"write of 0x{address:X}: registers are 32 bits, got {len(data)} bytes")
        for offset in range(0, len(data), 4):
            self.write(address + offset, int.from_bytes(data[offset : offset + 4], "little"))

    def get_memory(self, description: Any) -> VirtualMemory:
        """The memory behind an entry of ``mem_dict``: there is only one."""
        return self.default_memory

    def flush(self, bo: CachedBuffer, offset: int, vaddr: int, nbytes: int) -> None:
        """Copy from what the processor sees of a buffer to the DDR."""
        bo.flush(offset, nbytes)

    def invalidate(self, bo: CachedBuffer, offset: int, vaddr: int, nbytes: int) -> None:
        """Copy from the DDR to what the processor sees of a buffer."""
        bo.invalidate(offset, nbytes)

    def get_bitfile_metadata(self, bitfile_name: str, partial: bool = False) -> RuntimeMetadataParser:
        """Metadata of the .hwh beside a bitstream; the device gets the processor that the .hwh names.

        Raises
        ------
        OverlayError
            As ``VirtualBoard.load``. The .hwh is parsed only after it is known to belong to the bitstream.
        """
        read_simulation_overlay(bitfile_name)
        hwh = Path(bitfile_name).with_suffix(".hwh")
        arch = hwh_arch(hwh)
        try:
            parser = RuntimeMetadataParser(Metadata(input=hwh))
        except Exception as e:  # pynq's parser expects what Vivado writes, and raises anything where it isn't
            raise OverlayError(f"{hwh.name}: pynq must be able to read it, got: {reason(e)}") from None
        parser.mem_dict["PSDDR"] = {
            **{"raw_type": 0, "used": 1, "base_address": self.ddr.base, "size": self.ddr.size, "type": "DDR4"},
            **{"streaming": False, "idx": 0, "tag": "PSDDR"},
        }
        parser.refresh_hierarchy_dict()
        self.become(arch)
        return parser

    def become(self, arch: str) -> None:
        """Take over a processor: "zynq" or "zynqmp".

        pynq's clock object belongs to one processor, so it must go with the old one.
        """
        super().become(arch)
        if not hasattr(pynq.ps.Clocks, "device"):  # before 4.0 pynq asks this computer what the device's processor is
            pynq.ps.CPU_ARCH = PROCESSORS[arch].machine
        reset_clocks()

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Load the model that belongs to a bitstream; called by ``pynq.Overlay``."""
        parser = parser or self.get_bitfile_metadata(bitstream.bitfile_name)
        self.load(bitstream.bitfile_name)
        for controller in parser.interrupt_controllers.values():
            _InterruptController._uio_devices[controller["raw_irq"]] = InterruptLine()
        self.post_download(bitstream, parser, self.name)

    def gen_cache(self, bitstream: Any, parser: Any = None) -> None:
        """Nothing is cached."""

    def shutdown(self) -> None:
        """Nothing has to be shut down before the next bitstream."""


def reset_clocks() -> None:
    """Forget pynq's process-wide clock object; the next use makes one for the device that is active then."""
    clocks = pynq.ps.Clocks
    if "_real_instance" in vars(clocks):
        del clocks._real_instance
    if hasattr(clocks, "device"):
        clocks.device = None


def activate(tag: str = "virtual") -> VirtualDevice:
    """Make a virtual board and let pynq use it: from now on ``pynq.Overlay`` loads simulation overlays on it.

    Parameters
    ----------
    tag
        Name under which pynq knows the board.

    Returns
    -------
    VirtualDevice
        The board. ``close`` it to end the simulation.

    Examples
    --------
        board = activate()
        with Accelerator(build.bit) as accelerator:
            ...
        board.close()
    """
    device = VirtualDevice(tag)
    Device.active_device = device
    reset_clocks()
    return device
