"""A pynq device that is simulated in this process: ``pynq.Overlay(path)``, ``allocate`` and DMA run on it unchanged."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pynq.ps
from pynq.buffer import PynqBuffer
from pynq.interrupt import _InterruptController
from pynq.pl_server.device import Device
from pynqmetadata.frontends import Metadata
from pynqmetadata.views.runtime import RuntimeMetadataParser

from ..bitstream import read_simulation_overlay
from ..block_design import PROCESSORS
from ..sim import Simulation
from .board import Board
from .bus import Bus, BusError, processor_registers
from .memory import Ddr

NO_BITSTREAM = "no bitstream is loaded"


class VirtualMemory:
    """The DDR as pynq's allocator."""

    def __init__(self, device: "VirtualDevice"):
        self.device = device
        self.size, self.base_address, self.idx = device.ddr.size, device.ddr.base, 0

    def allocate(self, shape: Any, dtype: Any = "u4", cacheable: bool = True, **_: Any) -> PynqBuffer:
        """A buffer. With ``cacheable=False`` it is the DDR itself and needs no flush."""
        dtype = np.dtype(dtype)
        nbytes = int(np.prod(shape)) * dtype.itemsize
        address = self.device.ddr.allocate(nbytes)
        ddr = self.device.ddr.view(address, nbytes)
        host = ddr.copy() if cacheable else ddr
        options = {"device": self.device, "device_address": address, "bo": (address, host), "coherent": not cacheable}
        buffer = PynqBuffer(shape, dtype, buffer=host.data, **options)
        buffer.memory, buffer.pointer, buffer.return_to = self, address, self
        buffer.freed = True  # freebuffer() calls return_pointer() once, and must not unmap the host memory
        return buffer

    def return_pointer(self, address: int) -> None:
        """A buffer was freed."""
        self.device.ddr.free(address)


class InterruptLine:
    """Stands for /dev/uio: whoever waits for the processor's interrupt makes simulated time pass."""

    def __init__(self, device: "VirtualDevice"):
        self._device = device
        self._tasks: set[asyncio.Task[None]] = set()

    def add_event(self, event: Any, number: int) -> None:
        """Call ``event.set()`` once the interrupt is high."""

        async def wait() -> None:
            while not self._device.advance_to_interrupt():
                await asyncio.sleep(0 if self._device.busy else 0.001)
            event.set()

        task = asyncio.ensure_future(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class VirtualDevice(Device):
    """A board whose programmable logic is simulated.

    ddr : its memory. The architecture is that of the overlay loaded last.

    Knobs, which hold for what is loaded and what will be: ``stall``, ``timeout_cycles``, ``waveform`` (a path: the next
    download builds with tracing and writes a VCD file). ``prepare`` is called with the Simulation after each download.
    """

    def __init__(self, tag: str = "virtual", *, ddr: Ddr | None = None):
        super().__init__(tag)
        self.name = "Virtual"
        self.arch = PROCESSORS["zynqmp"].machine
        self.capabilities = {"REGISTER_RW": True}
        self.ddr = ddr or Ddr()
        self.default_memory = VirtualMemory(self)
        self.board: Board | None = None
        self.waveform: Path | str | None = None
        self.prepare: Callable[[Simulation], None] | None = None
        self._timeout_cycles = 2_000_000
        self._stalls: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._processor = self._processor_bus()

    # Knobs

    @property
    def simulation(self) -> Simulation:
        """The running model. Raises BusError before the first download."""
        return self._loaded().simulation

    @property
    def timeout_cycles(self) -> int:
        """Cycles without progress after which polling raises SimulationTimeout."""
        return self._timeout_cycles

    @timeout_cycles.setter
    def timeout_cycles(self, cycles: int) -> None:
        self._timeout_cycles = cycles
        if self.board:
            self.board.simulation.timeout_cycles = cycles

    def stall(self, *, source: float = 0.0, sink: float = 0.0, seed: int = 0) -> None:
        """Random pauses on both streams, as of a busy memory: probabilities for each cycle."""
        self._stalls = {"source": source, "sink": sink, "seed": seed}
        if self.board:
            self.board.simulation.stall(**self._stalls)

    def close(self) -> None:
        """End the simulation. Buffers live on."""
        with self._lock:
            if self.board:
                self.board.close()
            self.board = None

    # What pynq calls

    def read_registers(self, address: int, length: int) -> bytes:
        """Bytes of 32-bit registers."""
        with self._lock:
            values = [self._read(address + offset) for offset in range(0, length, 4)]
        return b"".join(value.to_bytes(4, "little") for value in values)

    def write_registers(self, address: int, data: bytes) -> None:
        """Write 32-bit registers."""
        data = bytes(data)
        if len(data) % 4:
            raise BusError(f"write of 0x{address:X}: registers are 32 bits, got {len(data)} bytes")
        with self._lock:
            for offset in range(0, len(data), 4):
                self._write(address + offset, int.from_bytes(data[offset : offset + 4], "little"))

    def get_memory(self, description: Any) -> VirtualMemory:
        """The memory behind an entry of ``mem_dict``."""
        return self.default_memory

    def flush(self, bo: tuple[int, np.ndarray], offset: int, vaddr: int, nbytes: int) -> None:
        """Host copy to DDR."""
        address, host = bo
        self.ddr.view(address + offset, nbytes)[:] = host[offset : offset + nbytes]

    def invalidate(self, bo: tuple[int, np.ndarray], offset: int, vaddr: int, nbytes: int) -> None:
        """DDR to host copy."""
        address, host = bo
        host[offset : offset + nbytes] = self.ddr.view(address + offset, nbytes)

    def get_bitfile_metadata(self, bitfile_name: str, partial: bool = False) -> RuntimeMetadataParser:
        """What the .hwh beside a bitstream says; the device takes over its architecture."""
        parser = RuntimeMetadataParser(Metadata(input=Path(bitfile_name).with_suffix(".hwh")))
        parser.mem_dict["PSDDR"] = {
            **{"raw_type": 0, "used": 1, "base_address": self.ddr.base, "size": self.ddr.size, "type": "DDR4"},
            **{"streaming": False, "idx": 0, "tag": "PSDDR"},
        }
        parser.refresh_hierarchy_dict()
        self._become(_arch(parser))
        return parser

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Load the model that belongs to a bitstream: build it where the cache has none, and reset it."""
        parser = parser or self.get_bitfile_metadata(bitstream.bitfile_name)
        files = read_simulation_overlay(bitstream.bitfile_name)
        simulation = Simulation.build(
            files.verilog,
            stream_bits=files.manifest["stream_bits"],
            trace=self.waveform is not None,
            top=files.manifest.get("top", "bitloom_top"),
            registers=files.manifest["registers"],
            timeout_cycles=self._timeout_cycles,
        )
        with self._lock:
            self.close()
            self.board = Board(simulation, files.manifest, self.ddr, _arch(parser))
            if self._stalls:
                simulation.stall(**self._stalls)
            if self.waveform is not None:
                simulation.open_waveform(self.waveform)
            if self.prepare:
                self.prepare(simulation)
            for controller in parser.interrupt_controllers.values():
                _InterruptController._uio_devices[controller["raw_irq"]] = InterruptLine(self)
        super().post_download(bitstream, parser, self.name)

    def gen_cache(self, bitstream: Any, parser: Any = None) -> None:
        """Nothing is cached."""

    def shutdown(self) -> None:
        """Nothing has to be shut down before the next bitstream."""

    # Inside

    def advance_to_interrupt(self) -> bool:
        """Let time pass; whether the processor's interrupt is high."""
        with self._lock:
            return self._loaded().advance_to_interrupt()

    @property
    def busy(self) -> bool:
        """Whether a DMA transfer is running."""
        return self.board is not None and self.board.busy

    def _loaded(self) -> Board:
        if not self.board:
            raise BusError(f"{self.name} device: {NO_BITSTREAM}")
        return self.board

    def _processor_bus(self) -> Bus:
        arch = next(arch for arch, ps in PROCESSORS.items() if ps.machine == self.arch)
        return Bus(processor_registers(arch))

    def _become(self, arch: str) -> None:
        """Take over an architecture. pynq's clock object belongs to one processor, so it must go with the old one."""
        self.arch = PROCESSORS[arch].machine
        self._processor = self._processor_bus()
        reset_clocks()

    def _read(self, address: int) -> int:
        if address not in self._processor:
            return self._loaded().read(address)
        region, offset = self._processor.find(address, "read")
        return region.core.read(offset)

    def _write(self, address: int, value: int) -> None:
        if address not in self._processor:
            self._loaded().write(address, value)
            return
        region, offset = self._processor.find(address, "write")
        region.core.write(offset, value)


def _arch(parser: Any) -> str:
    """ "zynq" or "zynqmp", by the processing system in the metadata."""
    return next(arch for arch, ps in PROCESSORS.items() if ps.module == parser.family_ps)


def reset_clocks() -> None:
    """Forget pynq's process-wide clock object; the next use makes one for the device that is active then."""
    clocks = pynq.ps.Clocks
    if "_real_instance" in vars(clocks):
        del clocks._real_instance
    if hasattr(clocks, "device"):
        clocks.device = None


def activate(tag: str = "virtual", *, ddr: Ddr | None = None) -> VirtualDevice:
    """Make a virtual board and let pynq use it: from now on ``pynq.Overlay(simulation .bit)`` runs on it."""
    device = VirtualDevice(tag, ddr=ddr)
    Device.active_device = device
    reset_clocks()
    return device
