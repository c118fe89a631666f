"""The virtual board: simulated hardware, behind pynq's own drivers."""
