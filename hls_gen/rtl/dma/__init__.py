"""The DMA: memory to stream and stream to memory, as a core of its own beside a device."""
