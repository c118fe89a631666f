"""A pynq Device with an AXI DMA (PG021, simple mode) and a core. Only device-side things; pynq itself is the real one.

Nastier than most boards on purpose: it has a cache that only flush and invalidate pass; the run bit can't stop a
transfer; both DMA channels have FIFOs that keep words until the DMA is reset; a reset takes some time.
"""

import asyncio
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from pynq.buffer import PynqBuffer
from pynq.interrupt import _InterruptController
from pynq.pl_server.device import Device

DMA_BASE, CORE_BASE, MEMORY_BASE = 0x4040_0000, 0x43C0_0000, 0x1000_0000
PARAMETERS = {"c_include_sg": "0", "c_micro_dma": "0", "c_sg_length_width": "14"}
PARAMETERS |= {f"c_include_{way}": "1" for way in ("mm2s", "s2mm")}
PARAMETERS |= {f"c_m_axi_{way}_data_width": "32" for way in ("mm2s", "s2mm")}
PARAMETERS |= {f"c_{way}_burst_size": "16" for way in ("mm2s", "s2mm")}


class FakeDma:
    """Registers of the DMA. ``step`` moves a few words. ``broken`` : "send", "receive" or "reset" fails."""

    def __init__(self, device: "FakeDevice") -> None:
        self.device = device
        self.broken = ""
        self.resetting = self.resets = self.transfers = 0
        self.sizes: list[int] = []
        self.reset()

    def reset(self) -> None:
        self.regs = {0x04: 1, 0x34: 1}
        self.source: list[tuple[int, bool]] = []
        self.source_address = 0
        self.fifo: list[tuple[int, bool]] = []
        self.target: tuple[int, int] | None = None
        self.written = 0

    def read(self, offset: int) -> int:
        if offset in (0x00, 0x30) and self.resetting:
            self.resetting -= 0 if self.broken == "reset" else 1
            return 4
        return self.regs.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if offset in (0x04, 0x34):  # interrupts are cleared by writing 1, the rest is read-only
            self.regs[offset] &= ~(value & 0x7000)
            return
        self.regs[offset] = value
        if offset in (0x00, 0x30):
            if value & 4:
                self.resets += 1
                self.reset()
                self.resetting = 3
            elif value & 1:
                self.regs[offset + 4] &= ~1
        elif offset == 0x28 and not self.regs[0x04] & 1:
            address = self.regs[0x18] | self.regs[0x1C] << 32
            self.source_address = address
            words = np.frombuffer(self.device.view(address, value), "<u4").tolist()
            self.source = [(w, i == len(words) - 1) for i, w in enumerate(words)]
            self.sizes.append(value)
            self.regs[0x04] &= ~2
            if self.broken == "send":
                self.source = []
                self.regs[0x04] = 0x41
        elif offset == 0x58 and not self.regs[0x34] & 1:
            self.target = (self.regs[0x48] | self.regs[0x4C] << 32, value)
            self.written = 0
            self.regs[0x34] &= ~2
            if self.broken == "receive":
                self.target = None
                self.regs[0x34] = 0x21

    def step(self) -> None:
        core = self.device.core
        for _ in range(self.device.speed):
            if self.source and core.ready():
                core.give(*self.source.pop(0))
                if not self.source:
                    self.regs[0x04] |= 0x1002
            if core.out and len(self.fifo) < 4:
                self.fifo.append(core.take())
            if self.target and self.fifo:
                word, last = self.fifo.pop(0)
                address, length = self.target
                if self.written == length:
                    self.target = None
                    self.regs[0x34] = 0x11  # longer than the buffer
                    return
                self.device.view(address + self.written, 4)[:] = word.to_bytes(4, "little")
                self.written += 4
                if last:
                    self.regs[0x58] = self.written
                    self.target = None
                    self.regs[0x34] |= 0x1002


class FakeUio:
    """Where an interrupt line reaches the processor; pynq's Interrupt adds its events here.

    ``high`` tells the line's level, ``events`` counts those that it has ended.
    """

    def __init__(self, device: "FakeDevice", high: Callable[[], Any]) -> None:
        self.device = device
        self.high = high
        self.lost = False
        self.events = 0

    def add_event(self, event: Any, number: int) -> None:
        async def wait() -> None:
            while self.lost or not self.high():
                self.device.dma.step()
                await asyncio.sleep(0)
            self.events += 1
            event.set()

        self.task = asyncio.ensure_future(wait())


class FakeMemory:
    def __init__(self, device: "FakeDevice") -> None:
        self.device = device

    def allocate(self, shape: Any, dtype: Any, **_: Any) -> PynqBuffer:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        host = bytearray(size)
        address = self.device.top
        self.device.top += size + 4095 & ~4095
        buffer = PynqBuffer(shape, dtype, buffer=host, device=self.device, device_address=address, bo=(address, host))
        buffer.memory = self
        buffer.pointer = address
        buffer.return_to = self
        buffer.freed = True
        self.device.allocated[address] = size
        return buffer

    def return_pointer(self, address: int) -> None:
        dma = self.device.dma
        busy = [dma.source_address] * bool(dma.source) + ([dma.target[0]] if dma.target else [])
        assert not any(address <= b < address + self.device.allocated[address] for b in busy), "freed under a transfer"
        del self.device.allocated[address]


class FakeDevice(Device):
    """``core`` is the design; ``cores`` the ip_dict; ``speed`` words move at every register read."""

    _probe_priority_ = 9317

    @classmethod
    def _probe_(cls) -> list[Device]:
        return []

    def __init__(self, core: Any) -> None:
        super().__init__("fake")
        self.name, self.arch = "Fake", "armv7l"
        self.capabilities = {"REGISTER_RW": True}
        self.memory = bytearray(1 << 22)
        self.top = MEMORY_BASE
        self.speed = 16
        self.allocated: dict[int, int] = {}
        self.default_memory = FakeMemory(self)
        self.core = core
        self.dma = FakeDma(self)
        self.cores: dict[str, dict[str, Any]] = {}
        self.pins: dict[str, dict[str, Any]] = {}
        self.add("axi_dma_0", "xilinx.com:ip:axi_dma:7.1", DMA_BASE, dict(PARAMETERS))
        self.add("npu_0", "bitloom:bitloom:npu:0.2", CORE_BASE, {})

    def add(self, name: str, vlnv: str, base: int, parameters: dict[str, str]) -> None:
        core = {"type": vlnv, "fullpath": name, "phys_addr": base, "addr_range": 0x10000, "parameters": parameters}
        self.cores[name] = {**core, "interrupts": {}, "gpio": {}, "state": None}

    def connect_interrupt(self) -> FakeUio:
        def high() -> bool:
            return bool(self.dma.regs[0x34] & self.dma.regs.get(0x30, 0) & 0x1000)

        return self._connect(61, "axi_dma_0", "s2mm_introut", high)

    def connect_core_interrupt(self) -> FakeUio:
        return self._connect(62, "npu_0", "irq", lambda: self.core.irq_status & self.core.irq_enable)

    def _connect(self, number: int, core: str, pin: str, high: Callable[[], Any]) -> FakeUio:
        entry = {"controller": "", "index": 0, "raw_irq": number, "fullpath": f"{core}/{pin}"}
        self.cores[core]["interrupts"] = {pin: entry}
        self.pins[f"{core}/{pin}"] = entry
        _InterruptController._uio_devices[number] = uio = FakeUio(self, high)
        return uio

    def view(self, address: int, size: int) -> memoryview:
        begin = address - MEMORY_BASE
        return memoryview(self.memory)[begin : begin + size]

    def read_registers(self, address: int, length: int) -> bytes:
        self.dma.step()
        target, base = (self.core, CORE_BASE) if address >= CORE_BASE else (self.dma, DMA_BASE)
        value = target.read(address - base)
        return value.to_bytes(length, "little")

    def write_registers(self, address: int, data: Any) -> None:
        target, base = (self.core, CORE_BASE) if address >= CORE_BASE else (self.dma, DMA_BASE)
        target.write(address - base, int.from_bytes(bytes(data), "little"))

    def flush(self, bo: Any, offset: int, vaddr: int, nbytes: int) -> None:
        self.view(bo[0] + offset, nbytes)[:] = bo[1][offset : offset + nbytes]

    def invalidate(self, bo: Any, offset: int, vaddr: int, nbytes: int) -> None:
        bo[1][offset : offset + nbytes] = self.view(bo[0] + offset, nbytes)

    def get_bitfile_metadata(self, bitfile_name: str, partial: bool = False) -> Any:
        empty = ("mem_dict", "gpio_dict", "interrupt_controllers", "hierarchy_dict", "clock_dict")
        none: dict[str, Any] = {name: {} for name in empty}
        return types.SimpleNamespace(ip_dict=self.cores, interrupt_pins=self.pins, systemgraph=None, **none)

    def download(self, bitstream: Any, parser: Any = None) -> None:
        self.downloads = getattr(self, "downloads", 0) + 1
        super().post_download(bitstream, parser, self.name)
