"""Area of the array's sequencer: the writer of the tuple memory, the source of taps and the issuer of beats, and the
line former with the register in front of it."""

from collections.abc import Iterator
from typing import Any

from bitloom.hls_gen.design.memories.sequencer import bases
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for

from .area_block import AreaBlock, collector, sequencer_modules
from .array import slot_bits
from .line_former import line_former_blocks, line_former_stores
from .store import Store


def sequencer_blocks(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """The array's sequencer of NPU ``n``, and its line former where it has one."""
    sequencer = npu.array_sequencer
    counters = sequencer.kind.counters
    ring = sequencer.address_bits
    row = sequencer.row_bits
    capacities = npu.sequencer
    counts = (capacities.windows, capacities.window_taps, capacities.groups, capacities.input_words)
    others = len(npu.sources) - 1
    sizes = {
        "one": 1,
        "ring": ring,
        "counts": sum(bits_for(count) for count in counts),
        "row": row,
        "tables": sum(bits for _, bits in bases(sequencer, sequencer.kind.tables)),
        "several": npu.array.accumulators > 1,
        "slot": slot_bits(npu),
        "acc": npu.array.offset_bits,
        "source": npu.array.word_bits * others,
        "inlets": others,
        "raster": counters,
        "raster_ring": ring * counters,
        "raster_row": row * counters,
    }
    modules = sequencer_modules("array")
    yield AreaBlock("array_sequencer", "array_sequencer", sizes, n, modules=modules, **two_maps_in_turn(npu))
    yield from line_former_blocks(sequencer, n)
    if sequencer.has_input_register:
        yield collector(sequencer.widest_inlet, 1, sequencer.widest_inlet, 0, n)


def sequencer_stores(npu: Npu) -> Iterator[Store]:
    """The tuple memory, unless tuples lie in the kernel memory, and what a line former holds."""
    if not npu.array.one_memory:
        yield Store("tuples", npu.array.word_bits, npu.sequencer.tuple_words, 1)
    yield from line_former_stores(npu.array_sequencer)


def two_maps_in_turn(npu: Npu) -> dict[str, Any]:
    """``lut`` and ``ff`` of counts by which a writer takes words of two maps in turn; off by 2 LUTs at most from three
    writers by Yosys. Their row in memory ``inputs`` is a memory's."""
    count = bits_for(npu.joined_words - 1) if npu.joined_words else 0
    return {"lut": 7 + 2 * count, "ff": 4 + 3 * count} if count else {"lut": 0, "ff": 0}
