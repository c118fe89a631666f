"""Verilated models: build with g++ alone, drive streams and registers, check the protocol."""

from .model import ProtocolError, Simulation, SimulationTimeout
from .verilator import BuildError, find_verilator, lint

__all__ = ["BuildError", "ProtocolError", "Simulation", "SimulationTimeout", "find_verilator", "lint"]
