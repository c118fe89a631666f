"""The virtual board: simulated hardware behind pynq's own drivers, in this process or behind a port."""
