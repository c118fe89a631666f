"""The sequencers of an NPU: one in front of its array and, if it has a pool unit, another one in front of that.

    words --> tuple memory --> windows, tap after tap --> array or pool unit
                  ^-- tables or counters say which tuple a tap reads

Both are made by the same modules (hls_gen/rtl/sequencer), filled by the same rows (hls_gen/compiler/rows/sequencer.py)
and counted by the same rules (hls_gen/compiler/sequencer_taps.py). What they differ in are properties of an
`NpuSequencer` (npu.py): `Npu.array_sequencer` and `Npu.pool_sequencer` are the two of an NPU, and `Npu.sequencers`
lists those that it has.

Which tables a sequencer has, the part says that declares their sizes: `Sequencer.table_rows`, `PoolUnit.table_rows`.
Memories, fields of layer rows that say where a table's rows begin, needs of layers and area follow from that.
"""

from typing import NamedTuple

FIRST = "first_"
"""Beginning of the names of fields that have a table's values at a layer's first tap."""


class TapTable(NamedTuple):
    """A table of taps: the name of its memory and the flat name of its number of rows, both behind the sequencer's
    prefix, and the field of memory ``layers`` that says where a layer's rows begin."""

    name: str
    capacity: str
    base: str

    def first(self, field: str) -> str:
        """The field of memory ``layers`` that says what a field of the table is at a layer's first tap."""
        return f"{FIRST}{self.name}_{field}"


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


class SequencerKind(NamedTuple):
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
