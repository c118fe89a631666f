"""Sequencer: the tuple memory of an NPU, and the tables and counters by which the taps of each window are read from
it. What the pool unit's sequencer has as well: sequencer_kind.py."""

from dataclasses import dataclass

from .parts import NpuPart, capacity, value
from .rules import require
from .sequencer_kind import AHEADS, FLAGS, JUMPS, OLDS, TapTable


@dataclass(frozen=True, kw_only=True)
class Sequencer(NpuPart):
    """The array's sequencer."""

    raster: bool = value(False, means="Counters in place of tables, for layers in raster order.")
    windows: int = capacity(1 << 20, least=2)
    window_taps: int = capacity(1 << 16, least=2)
    groups: int = capacity(1 << 16, least=2)
    """windows, window_taps, groups: windows of a layer, taps of a window without a table, passes over a window for its
    kernels; each >= 2."""
    input_words: int = capacity((1 << 24) - 1, least=2)
    """Words of a map, >= 2."""
    tuple_words: int = capacity(256, power=True, means="Capacity of the tuple memory, in words of kfp features.")
    flags: int = capacity(1024, least=2, added=True, name="taps")
    olds: int = capacity(1024, least=2, added=True)
    jumps: int = capacity(256, least=2, added=True)
    """flags, olds, jumps: rows of the sequencer's tables, each >= 2."""
    aheads: int = capacity(0, least=2, or_zero=True, added=True, rare=True, where="sequencer.aheads")
    """Rows of the table by which taps claim tuples that they don't read, any number at once, >= 2; 0: there is no such
    table, and each of these tuples costs a cycle in every pass."""
    position_words: int = capacity(1, rare=True, where="array_forms_lines")
    """Words of a position whose taps a line former puts side by side, at most, >= 1."""
    tuple_parts: int = capacity(0, least=0, most=1, rare=True, where="sequencer.tuple_parts")
    """Whether the kernel groups of a layer may read a part of each tuple only, 0 or 1: of grouped convolutions. It
    needs the table ``aheads``."""

    @property
    def table_rows(self) -> dict[TapTable, int]:
        """The tables that the array's sequencer has, and the rows of each."""
        rows = {FLAGS: self.flags, OLDS: self.olds, JUMPS: self.jumps}
        return {**rows, AHEADS: self.aheads} if self.aheads else rows

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "tuple_parts must be 0 without a table aheads"
        require(self.aheads > 0 or not self.tuple_parts, rule, self.tuple_parts)
