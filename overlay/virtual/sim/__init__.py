"""Verilated models: built with g++ alone, with streams and registers to drive, and the protocols checked."""

from bitloom.golden.kernels.native import BuildError

from .errors import ProtocolError, SimulationTimeout
from .model import Simulation
from .verilator import lint
from .verilator_install import find_verilator

__all__ = ["BuildError", "ProtocolError", "Simulation", "SimulationTimeout", "find_verilator", "lint"]
