"""Network rows: the one row of memory ``network`` of each NPU, which the loader keeps in registers.

    LOAD of memory "network" --> npu<n>_network_row --> fields: settings of the NPU, size of a frame

They are what is known of a network as a whole: how many layers the stages go round through, and how many words a
frame has (memory ``network`` of hls_gen/design/memories/loader.py).
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.memories.loader import settings
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.rtl.primitives.block import Signal, all_of, bits, eq, side_by_side
from bitloom.hls_gen.rtl.primitives.memory import split

from .load import AddressedMemory, LoadedWord, RowCursor
from .state import LoaderContext


@dataclass(frozen=True)
class NetworkRow:
    """The network row of an NPU."""

    fields: dict[str, Signal]
    """Its fields, by name."""
    loaded: Signal
    """Register: the row was loaded since the last reset."""


def network_row(c: LoaderContext, n: int, target: AddressedMemory, cursor: RowCursor, word: LoadedWord) -> NetworkRow:
    """The row of NPU ``n``. The loader gets an output ``npu<n>_<field>`` for each setting that the NPU looks at."""
    b = c.b
    npu = c.design.npus[n]
    width = c.design.stream_bits
    m = memory_of(npu, "network")
    b.comment(f"Network row of NPU {n}.")
    load = b.wire(f"npu{n}_network_load", 1, all_of(word.taken, target.is_network, *target.of_npu[n : n + 1]))
    parts = []
    for i, low in enumerate(range(0, m.width, width)):
        w = min(width, m.width - low)
        part = b.reg(f"npu{n}_network_{i}", w, init=None)
        b.on(load & eq(cursor.bank, i), (part, bits(c.data, 0, w)))
        parts.append(part)
    loaded = b.reg(f"npu{n}_is_loaded")
    b.on(load & word.row_ends, (loaded, 1))
    # where an input word takes several stream words, the last stream word of a frame is no other than the rest
    unused = {"frame_last_piece"} if npu.host_word_bits > width else set()
    fields = [(f"{name}_unused" if name in unused else name, w) for name, w in m.widths.items()]
    row = split(b, b.wire(f"npu{n}_network_row", m.width, side_by_side(parts)), fields, f"npu{n}_network_")
    for name, w in settings(npu):
        b.output(f"npu{n}_{name}", w, row[name])
    return NetworkRow(row, loaded)
