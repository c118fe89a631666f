"""Verilated models: build with g++ alone, drive streams and registers, check the protocol."""

from bitloom.golden.kernels.native import BuildError

from .model import ProtocolError, Simulation, SimulationTimeout
from .tools import find_verilator
from .verilator import lint

__all__ = ["BuildError", "ProtocolError", "Simulation", "SimulationTimeout", "find_verilator", "lint"]
