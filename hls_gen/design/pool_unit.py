"""Pool unit: maxima and averages of windows, and, with weights of its own, depthwise convolutions. An NPU may lack
it."""

from dataclasses import dataclass

from .parts import RAM_STYLES, Part, capacity, choice, number
from .sequencer_kind import FLAGS, JUMPS, OLDS, TapTable
from .widths import bits_for


@dataclass(frozen=True, kw_only=True)
class PoolWeights(Part):
    """What a pool unit that computes depthwise convolutions has besides (hls_gen/rtl/pool_unit/pool_depthwise.py)."""

    scale_ram: str = choice(
        "auto",
        RAM_STYLES,
        name="pool_scale_ram",
        rare=True,
        means="What synthesis makes of the memory of scales of a pool unit with weights.",
    )
    jumps: int = capacity(256, least=2, added=True, name="pool_jumps")
    """Rows of its sequencer's table of jumps, >= 2."""
    rows: int = capacity(256, least=2, added=True, name="pool_kernel_rows")
    """Rows of line_taps times pfp weights, >= 2."""
    scale_rows: int = capacity(256, least=2, added=True, name="pool_scale_rows")
    """Rows of ol times bias, multiplier and shift, >= 2."""

    @property
    def row_bits(self) -> int:
        """Width of the address of a row of weights."""
        return bits_for(self.rows - 1)


@dataclass(frozen=True, kw_only=True)
class PoolUnit(Part):
    """A pool unit."""

    pfp: int = number(8, means="Channels that the pool unit takes in a cycle.")
    line_taps: int = number(
        1,
        most=16,
        name="pool_line_taps",
        rare=True,
        means="Taps of a line of the kernel that the pool unit takes in a cycle.",
    )
    weights: PoolWeights | None = None
    """What it has to compute depthwise convolutions, in an NPU of engine integer alone; None: it can't."""
    words: int = capacity(
        256,
        power=True,
        name="pool_words",
        means="Capacity of the pool unit's tuple memory, in words of line_taps times pfp features.",
    )
    tuple_words: int = capacity(256, name="pool_tuple_words")
    """Words of pfp features of the longest tuple that it takes, >= 1: rows of its queue. Never more than ``words``."""
    flags: int = capacity(256, least=2, added=True, name="pool_taps")
    olds: int = capacity(256, least=2, added=True, name="pool_olds")
    """flags, olds: rows of its sequencer's tables, each >= 2."""

    @property
    def table_rows(self) -> dict[TapTable, int]:
        """The tables that the pool unit's sequencer has, and the rows of each."""
        rows = {FLAGS: self.flags, OLDS: self.olds}
        return {**rows, JUMPS: self.weights.jumps} if self.weights else rows

    @property
    def index_bits(self) -> int:
        """Width of the number of a word in its tuple."""
        return bits_for(min(self.tuple_words, self.words) - 1)
