"""Pool unit: maxima and averages of windows, and, with weights of its own, depthwise convolutions. An NPU may lack
it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool
from bitloom.golden.window import Window

from .parts import RAM_STYLES, NpuPart, capacity, choice, number
from .rules import require
from .sequencer_kind import FLAGS, JUMPS, OLDS, TapTable
from .split_window import BeatTaps, SplitWindow
from .widths import bits_for


class Beside(NamedTuple):
    """The value of a tap beside the map, by which the tap changes nothing."""

    flag: str
    """Field of a layer's row to the line former, which puts the value in where the flag is 1."""
    value: Callable[[int], int]
    """The value, by the width of a feature in two's complement."""


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """A way in which a pool unit makes one value of the taps of a window."""

    mark: str = ""
    """Field of a layer's row that chooses the reduction; empty: the reduction is chosen where no mark is 1."""
    means: str = ""
    """Meaning of the mark, for the ports through which the mark passes."""
    merge: str = ""
    """The function by which a pool unit of integers makes one number of two taps: a key of `MERGES`
    (hls_gen/rtl/pool_unit/arithmetic.py)."""
    beside: Beside | None = None
    """None: a tap beside the map is 0."""
    divides: bool = False
    """Whether the result is divided by the number of valid taps."""

    @property
    def line_flags(self) -> frozenset[str]:
        """Flags of the line former that are 1."""
        return frozenset({self.beside.flag} if self.beside else ())


@dataclass(frozen=True, kw_only=True)
class PoolReduction(Reduction):
    """A reduction that is a layer of its own."""

    layer: type[Pool]
    """Golden's layer, whose ``reduced`` it is."""
    complement: type[Pool] | None = None
    """Golden's layer of bits that it computes of their complements (hls_gen/compiler/lowering_binary.py)."""
    engines: tuple[str, ...] = ("integer",)
    """Engines whose pool units have it."""

    @property
    def layers(self) -> tuple[type[Pool], ...]:
        """Golden's layers that it computes."""
        return (self.layer, self.complement) if self.complement else (self.layer,)


def lowest(bits: int) -> int:
    """The lowest value of so many bits in two's complement."""
    return -1 << bits - 1


LARGEST = PoolReduction(
    layer=MaxPool, complement=MinPool, engines=("binary", "integer"), beside=Beside("lowest", lowest)
)
"""Of bits it is their OR; the smallest of bits, their AND, is the complement of the OR of their complements. A map
without a pool is handed on as the largest of one tap each."""
AVERAGE = PoolReduction(
    layer=AvgPool,
    mark="average",
    means="the pool unit takes averages, else maxima",
    merge="adds",
    divides=True,
)
POOLS = (LARGEST, AVERAGE)
"""Reductions that are pools. Compiler, memories, line formers and random networks take them from here; only what a
merge is in hardware, and the area, are said elsewhere."""
PRODUCTS = Reduction(
    mark="depthwise",
    means="the pool unit adds products with its weights, whatever average says",
    merge="adds",
)
"""The sum of products of a depthwise convolution, in pool units with weights."""


@cache
def pools_of(engine: str) -> tuple[PoolReduction, ...]:
    """The pools of a pool unit in an NPU of this engine."""
    return tuple(pool for pool in POOLS if engine in pool.engines)


class ReducedWindow(NamedTuple):
    """The action of a pool unit for a layer: a window, and how one value is made of its taps."""

    window: Window
    reduction: Reduction


@dataclass(frozen=True, kw_only=True)
class PoolWeights(NpuPart):
    """The values of a pool unit that computes depthwise convolutions besides
    (hls_gen/rtl/pool_unit/pool_depthwise.py)."""

    engine: ClassVar[str] = "integer"

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
    """Rows of weights for the values of a beat, lines times line_taps times pfp, >= 2."""
    scale_rows: int = capacity(256, least=2, added=True, name="pool_scale_rows")
    """Rows of ol times bias, multiplier and shift, >= 2."""

    @property
    def row_bits(self) -> int:
        """Width of the address of a row of weights."""
        return bits_for(self.rows - 1)


def lines_fit(lane_lines: int, lanes: int, pfp: int) -> bool:
    """Whether so many lines can share the lanes of a tap, of which each line takes the first ``lanes``."""
    return lane_lines * lanes <= pfp


@dataclass(frozen=True, kw_only=True)
class PoolUnit(NpuPart):
    """A pool unit."""

    pfp: int = number(8, means="Channels that the pool unit takes in a cycle.")
    line_taps: int = number(
        1,
        most=16,
        name="pool_line_taps",
        rare=True,
        means="Taps of a line of the kernel that the pool unit takes in a cycle.",
    )
    lines: int = number(
        1,
        most=16,
        name="pool_lines",
        rare=True,
        means="Lines of the kernel, one below the other, of which the pool unit takes taps in a cycle.",
    )
    lane_lines: int = number(
        1,
        most=16,
        name="pool_lane_lines",
        rare=True,
        means="Lines of the kernel whose taps share lanes in a layer of at most PFP / pool_lane_lines channels.",
    )
    weights: PoolWeights | None = None
    """Memories and widths for depthwise convolutions, in an NPU of engine integer alone; None: the unit computes
    none."""
    words: int = capacity(
        256,
        power=True,
        name="pool_words",
        means="Capacity of the pool unit's tuple memory, in words of lines times line_taps times pfp features.",
    )
    tuple_words: int = capacity(256, name="pool_tuple_words")
    """Words of pfp features of the longest tuple that it takes, >= 1: rows of its queue. Never more than ``words``."""
    flags: int = capacity(256, least=2, added=True, name="pool_taps")
    olds: int = capacity(256, least=2, added=True, name="pool_olds")
    """flags, olds: rows of its sequencer's tables, each >= 2."""
    line_words: int = capacity(2, least=2, rare=True, name="pool_line_words", where="pool_keeps_lines")
    """Words of a line whose taps come together with those of lines below it, at most, >= 2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        divides = self.pfp % self.lane_lines == 0
        require(divides, f"pool_lane_lines must divide pfp = {self.pfp}", self.lane_lines)

    @property
    def beat(self) -> BeatTaps:
        """The taps that it takes in a cycle."""
        return BeatTaps(self.lines, self.line_taps, self.lane_lines)

    @property
    def beat_lanes(self) -> int:
        """Values that it takes in a cycle: pfp of each tap."""
        return self.beat.taps * self.pfp

    def split(self, window: Window, reduction: Reduction, lanes: int) -> SplitWindow:
        """How a line former in front of it splits the window of a pool: tap by tap that of an average, which divides by
        the number of valid taps, as the sequencer counts them. ``lanes``: the first ones of a tuple's words that have
        all its channels. Lines share lanes where there is room, and a window takes fewer beats so."""
        if reduction.divides:
            return SplitWindow(window)
        apart = self.beat.split(window)
        if self.lane_lines == 1 or not lines_fit(self.lane_lines, lanes, self.pfp):
            return apart
        shared = self.beat.split(window, shares_lanes=True)
        return shared if shared.tuples < apart.tuples else apart

    @property
    def table_rows(self) -> dict[TapTable, int]:
        """The tables that the pool unit's sequencer has, and the rows of each."""
        rows = {FLAGS: self.flags, OLDS: self.olds}
        return {**rows, JUMPS: self.weights.jumps} if self.weights else rows

    @property
    def index_bits(self) -> int:
        """Width of the number of a word in its tuple."""
        return bits_for(min(self.tuple_words, self.words) - 1)
