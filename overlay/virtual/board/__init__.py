"""A virtual PYNQ board in this process: pynq's own drivers run against the Verilated device.

device.py    what pynq sees: a Device, an allocator, an interrupt line
board.py     the board: DDR, processor registers, and what is loaded
programmable_logic.py   one loaded design: DMA, interrupt controller, simulated device
bus.py, dma.py, interrupts.py, memory.py   its parts
"""

from bitloom.driver import pynq_api as pynq_api  # raises in one line if pynq is missing; device.py would only fail

from .bus import BusError
from .device import VirtualDevice, activate
from .dma import DmaMisuseError
from .memory import Ddr, MemoryAccessError

__all__ = ["BusError", "Ddr", "DmaMisuseError", "MemoryAccessError", "VirtualDevice", "activate"]
