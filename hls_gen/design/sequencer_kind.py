"""The sequencers of an NPU: one in front of its array and, if it has a pool unit, another one in front of that.

    words --> tuple memory --> windows, tap after tap --> array or pool unit
                  ^-- tables or counters say which tuple a tap reads

Both are made by the same modules (hls_gen/rtl/sequencer), filled by the same rows (hls_gen/compiler/rows/sequencer.py)
and counted by the same rules (hls_gen/compiler/sequencer_taps.py). What they differ in are values of an `NpuSequencer`:
`Npu.array_sequencer` and `Npu.pool_sequencer` are the two of an NPU, and `Npu.sequencers` lists those that it has.

Which tables a sequencer has, the part says that declares their sizes: `Sequencer.table_rows`, `PoolUnit.table_rows`.
Memories, fields of layer rows that say where a table's rows begin, needs of layers and area follow from that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .widths import bits_for


class TapTable(NamedTuple):
    """A table of taps: the name of its memory and the flat name of its number of rows, both behind the sequencer's
    prefix, and the field of memory ``layers`` that says where a layer's rows begin."""

    name: str
    capacity: str
    base: str


FLAGS = TapTable("flags", "taps", "flags_base")
"""A row for each tap."""
OLDS = TapTable("olds", "olds", "old_base")
"""A row for each tap that reads an old tuple: which one."""
ALWAYS = (FLAGS, OLDS)
"""Tables that every sequencer has."""
JUMPS = TapTable("jumps", "jumps", "jump_base")
"""A row for each run of places of the kernel that lie beside the map: the place behind it."""
AHEADS = TapTable("aheads", "aheads", "ahead_base")
"""A row for each tap that claims tuples that it doesn't read: how many words these have."""
SOMETIMES = (JUMPS, AHEADS)
"""Tables that only some sequencers have."""


@dataclass(frozen=True, kw_only=True)
class SequencerKind:
    """How a sequencer finds the taps of a window, and how taps claim tuples, whatever its sizes."""

    counters: bool = False
    """Whether counters run through the taps of layers in raster order, which then need no tables."""
    tables: tuple[TapTable, ...] = ALWAYS
    """The tables that it has."""

    @property
    def kernel_rows(self) -> bool:
        """Whether each tap meets rows of weights, so that the sequencer counts kernel rows, and has a table of jumps:
        in front of the array, and of a pool unit with weights."""
        return JUMPS in self.tables

    @property
    def claims_ahead(self) -> bool:
        """Whether a tap claims tuples that it doesn't read by a table, any number at once. Without that table, each
        such tuple is a skip in a layer that no counters run through."""
        return AHEADS in self.tables

    @property
    def claims_one_by_one(self) -> bool:
        """Whether a tap claims one tuple at most, so that tuples are counted; else words are counted."""
        return not (self.counters or self.claims_ahead)


@dataclass(frozen=True, kw_only=True)
class NpuSequencer:
    """A sequencer of an NPU."""

    unit: Literal["array", "pool_unit"]
    """The unit that takes the windows."""
    counters: bool
    """Whether counters run through the taps of layers in raster order."""
    table_rows: Mapping[TapTable, int] = field(hash=False)
    """The tables that it has, and the rows of each."""
    word_bits: int
    """Bits of a word of the tuple memory: KFP features, or PFP features of each tap that the pool unit takes in a
    cycle."""
    line_taps: int
    """Words that a line former puts side by side in a word of the tuple memory; 1: there is none."""
    line_flags: tuple[str, ...]
    """What the line former must know of a layer besides counts: flags of `FormedLines`, by name."""
    position_bits: int
    """Width of the number of a word in its position, to the line former."""
    ring_words: int
    """Capacity of the tuple memory in words, a power of two, so that addresses wrap round by themselves."""
    index_bits: int
    """Width of the number of a word in its tuple."""
    row_bits: int
    """Width of the address of a row of weights; 0 without kernel rows."""

    @property
    def kind(self) -> SequencerKind:
        """How taps are found and claimed."""
        return SequencerKind(counters=self.counters, tables=tuple(self.table_rows))

    @property
    def prefix(self) -> str:
        """What the names of its memories begin with."""
        return "pool_" if self.unit == "pool_unit" else ""

    @property
    def address_bits(self) -> int:
        """Width of a word's address in the tuple memory."""
        return bits_for(self.ring_words - 1)

    @property
    def forms_lines(self) -> bool:
        """Whether a line former stands in front of the tuple memory."""
        return self.line_taps > 1

    @property
    def map_bits(self) -> int:
        """Bits of a word of a map, as it comes."""
        return self.word_bits // self.line_taps

    @property
    def memory_bits(self) -> int:
        """Bits of the tuple memory."""
        return self.ring_words * self.word_bits
