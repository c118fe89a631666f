"""A virtual PYNQ board in this process: pynq's own drivers run against the Verilated device."""

from .bus import BusError
from .device import VirtualDevice, activate
from .dma import DmaMisuseError
from .memory import Ddr, MemoryAccessError

__all__ = ["BusError", "Ddr", "DmaMisuseError", "MemoryAccessError", "VirtualDevice", "activate"]
