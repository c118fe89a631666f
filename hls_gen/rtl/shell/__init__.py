"""What is around the engine: loader, registers, NPUs, the top module."""
