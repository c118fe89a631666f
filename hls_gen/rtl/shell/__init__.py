"""The modules around the engine: loader, registers, NPUs, the top module."""
