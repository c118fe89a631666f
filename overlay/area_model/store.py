"""A memory of a design, and the memories that packets fill, by the same rules as hls_gen/ makes them; what a memory
takes of a device says memory.py."""

from collections.abc import Iterator
from typing import NamedTuple

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.array import kernel_ram_style
from bitloom.hls_gen.design.memories.memory_map import memory_rows, operand_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources

from .memory import mapped

KERNELS = "kernels"
"""Name of the memory that has the kernels."""
SUMS = "sums"
"""Name of the accumulators in the PEs."""


class Store(NamedTuple):
    """Equal memories side by side."""

    name: str
    """Name of the rows or words that they hold, such as KERNELS."""
    width: int
    depth: int
    """width, depth: bits of a row, and rows."""
    latency: int
    """Cycles of a read: 0 or 1."""
    times: int = 1
    """How many there are."""
    style: str = "auto"
    """Kind of RAM that synthesis makes of it, as in `bitloom.hls_gen.rtl.primitives.memory.ram`."""
    registered: bool = False
    """Whether what an asynchronous read gives goes into a register at once: where modules are flattened, Yosys makes
    block RAM of both, if that costs less."""

    @classmethod
    def of_fifo(cls, name: str, width: int, depth: int) -> "Store":
        """The memory of a FIFO, or of buffers: up to LUT_RAM_WORDS words are read at once."""
        return cls(name, width, depth, int(depth > timing.LUT_RAM_WORDS))

    def mapped(self) -> Resources:
        """Cells that one of the stores takes, as synthesis maps it."""
        if self.registered and (memory := mapped(self.width, self.depth, 1, self.style)).block:
            return memory.resources
        return mapped(self.width, self.depth, self.latency, self.style).resources


def loaded_stores(npu: Npu, stream_bits: int) -> Iterator[Store]:
    """The memories of an NPU that packets fill, each cut into banks of a stream word."""
    styles = {KERNELS: kernel_ram_style(npu, npu.array.kernel_ram)}
    if npu.pool_weights:
        styles["pool_scales"] = npu.pool_weights.scale_ram
    for name, rows in memory_rows(npu).items():
        if name == "network":
            continue
        full, rest = divmod(operand_bits(npu) if name == KERNELS else rows.width, stream_bits)
        latency = 0 if rows.read_at_once else 1
        style = styles.get(name, "auto")
        if full:
            yield Store(name, stream_bits, rows.depth, latency, full * rows.copies, style, rows.registered)
        if rest:
            yield Store(name, rest, rows.depth, latency, rows.copies, style, rows.registered)
