"""The memories of a design, by the same rules as hls_gen/ makes them; what they take of a device: memory.py."""

from collections.abc import Iterator
from dataclasses import dataclass

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.memories.memory_map import memory_map, operand_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.registers import COUNTER_BITS, counter_names
from bitloom.hls_gen.design.widths import COUNT_BITS, bits_for
from bitloom.overlay.area.netlist import Resources

from .memory import mapped

KERNELS = "kernels"
"""Name of the memory that has the kernels."""
SUMS = "sums"
"""Name of the accumulators in the PEs."""


@dataclass(frozen=True)
class Store:
    """Equal memories side by side.

    Attributes
    ----------
    name
        What they hold.
    width, depth
        Bits of a row, and rows.
    latency
        Cycles of a read: 0 or 1.
    times
        How many there are.
    style
        The attribute ram_style.
    registered
        Whether what an asynchronous read gives goes into a register at once: where modules are flattened, Yosys makes
        block RAM of both, if that costs less.
    """

    name: str
    width: int
    depth: int
    latency: int
    times: int = 1
    style: str = "auto"
    registered: bool = False

    def mapped(self) -> Resources:
        """What one of them takes of the device."""
        if self.registered and (made := mapped(self.width, self.depth, 1, self.style)).block:
            return made.resources
        return mapped(self.width, self.depth, self.latency, self.style).resources


def npu_stores(npu: Npu, stream_bits: int) -> Iterator[Store]:
    """The memories of an NPU."""
    for m in memory_map(npu):
        if m.name == "network":
            continue
        full, rest = divmod(operand_bits(npu) if m.name == KERNELS else m.width, stream_bits)
        latency = 0 if m.read_at_once else 1
        style = npu.array.kernel_ram if m.name == KERNELS else "auto"
        registered = m.name == "reciprocals" and not npu.depthwise  # the divider's first register
        if full:
            yield Store(m.name, stream_bits, m.depth, latency, full, style, registered)
        if rest:
            yield Store(m.name, rest, m.depth, latency, 1, style, registered)
    if not npu.array.one_memory:  # else they lie in the kernel memory
        yield Store("tuples", npu.array.word_bits, npu.sequencer.tuple_words, 1)
    if npu.array.accumulators > 1:
        w = 1 if npu.array.accumulate == "or" else npu.array.acc_bits
        yield Store(SUMS, w, npu.array.accumulators, 0, 2 * npu.array.kgp, registered=True)
        if npu.engine == "binary":
            yield Store("offsets", npu.array.acc_bits, npu.array.accumulators, 0, registered=True)
    if npu.pool_unit:
        yield Store("pool_tuples", npu.pool_word_bits, present(npu.pool_unit).words, 1)
        integer = npu.engine == "integer"
        w = present(npu.pool_unit).pfp * npu.pool_sum_bits if integer else present(npu.pool_unit).pfp
        leaves = npu.pool_word_bits + npu.pool_side_bits
        if npu.depthwise:
            w = present(npu.pool_unit).pfp * npu.array.acc_bits
            leaves = w + npu.pool_side_bits + COUNT_BITS
        yield Store("pool_queue", w, 1 << present(npu.pool_unit).index_bits, 0)
        yield Store("pool_fifo", leaves, timing.pool_fifo_words(npu), 0)
    if "loop" in npu.ports.inlets:
        yield Store(
            "map_store", npu.array.word_bits, npu.stores.map_words, int(npu.stores.map_words > timing.LUT_RAM_WORDS)
        )
    if npu.has_skip:
        width = npu.skip_word_bits + npu.forks_maps  # a word of a map has a mark
        yield Store(
            "skip_store",
            width,
            present(npu.stores.skip).words,
            int(present(npu.stores.skip).words > timing.LUT_RAM_WORDS),
        )
    if npu.former_sizes and npu.former_sizes.column > 1:
        width = (present(npu.former_sizes).column - 1) * npu.former_lane_bits
        yield Store(
            "line_memory",
            width,
            present(npu.former_sizes).line,
            int(present(npu.former_sizes).line > timing.LUT_RAM_WORDS),
        )
    if "ring" in npu.ports.inlets:
        depth = 2 << bits_for(npu.ports.buffer_words - 1)
        yield Store("buffers", npu.array.word_bits, depth, int(depth > timing.LUT_RAM_WORDS))
    if "host" in npu.ports.outlets:
        yield Store("map_held", npu.array.word_bits + 1, timing.MAP_HELD, 0)


def stores(design: Design) -> Iterator[Store]:
    """The memories of a design."""
    for npu in design.npus:
        yield from npu_stores(npu, design.stream_bits)
    yield Store("frame_flags", 1, timing.FRAMES_IN_FLIGHT, 0)
    yield Store("counts", COUNTER_BITS, timing.counter_rows(len(counter_names(design))), 0)
    if design.spill_words:
        width = design.npus[0].array.word_bits + 1
        yield Store("spill_store", width, design.spill_words, int(design.spill_words > timing.LUT_RAM_WORDS))
