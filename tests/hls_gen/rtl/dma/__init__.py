"""The DMA, at a memory that keeps its master to the rules of AXI4."""
