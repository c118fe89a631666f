"""What is around the engine: stream program, registers, NPUs, the top module."""
