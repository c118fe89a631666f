"""Row of a layer: what the memories ``layers`` and ``pool_layers`` say of a layer to the tap source.

    memory row --> LayerStart  (looked at in the cycle in which the layer begins)
               --> LayerRow    (kept in registers while the layer is at hand)

Where the fields come from: hls_gen/compiler/rows/sequencer.py. Their widths: hls_gen/design/memories/sequencer.py and
pool_unit.py there. "address bits" below is the width of an address of the tuple memory, "row bits" that of a row of the
kernel memory. A field that only some NPUs have is None in the others.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TypeVar

from bitloom.hls_gen.design.sequencer_kind import FIRST
from bitloom.hls_gen.rtl.primitives.block import Signal

from .pool_marks import PoolMarks

RowT = TypeVar("RowT")


@dataclass(frozen=True, kw_only=True)
class LayerStart:
    """Fields that are looked at only in the cycle in which the layer begins."""

    flags_base: Signal
    old_base: Signal
    """flags_base, old_base: first row of the layer in the memories ``flags`` and ``olds``."""
    firsts: Mapping[str, Signal]
    """Values of each table's fields at the layer's first tap, by the names of the layer's fields (`TapTable.first`)."""
    windows_minus_1: Signal
    """Windows of the layer, less 1."""
    hold_tuples: Signal | None = None
    """Tuples that the ring holds of the layer: the claim of so many leaves the first of them in use, each claim after
    that gives one back. Address bits + 1. None with ``raster`` or ``aheads``, where LayerRow.hold_words says it in
    words."""
    jump_base: Signal | None = None
    """First row of the layer in the memory ``jumps``. None without kernel rows."""
    ahead_base: Signal | None = None
    """First row of the layer in the memory ``aheads``. None in the pool's sequencer, and in an NPU without that
    table."""
    start_row: Signal | None = None
    """Kernel row of the layer's first tap, counted from its first kernel row; row bits. None without kernel rows."""
    y_lead: Signal | None = None
    y_room: Signal | None = None
    """y_lead, y_room: as x_lead and x_room in RasterRow, downwards. None without ``raster``."""
    y_lead_rows: Signal | None = None
    y_second_rows: Signal | None = None
    """y_lead_rows, y_second_rows: kernel rows of the lines of the kernel that lie before the map, in the first row of
    windows and in the second one; row bits. None without ``raster`` and without kernel rows."""


@dataclass(frozen=True, kw_only=True)
class TuplePartRow:
    """Fields of an NPU whose kernel groups may read a part of each tuple."""

    words_minus_1: Signal
    """Words of a tuple that a kernel group reads, less 1; address bits."""
    step: Signal
    """Words from the first one that some kernel groups read to that of the next ones; address bits."""
    groups_minus_1: Signal
    """Kernel groups one after another that read the same words, less 1."""


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """Fields of a sequencer whose taps have kernel rows: the array's, and that of a pool unit with weights."""

    kernel_base: Signal
    """First kernel row of the layer; row bits."""
    group_rows: Signal | None = None
    """Kernel rows of a kernel group; row bits. None in the pool's sequencer."""
    groups_minus_1: Signal | None = None
    """Passes over each window, one a kernel group, less 1. None in the pool's sequencer."""
    tap_offset: Signal | None = None
    """Number that each tap adds to the offset of its window, in two's complement; ``acc_bits``. None with engine
    "integer"."""
    inner_groups_minus_1: Signal | None = None
    """Kernel groups that use a word one after another, less 1; ``slot_bits``. None with one accumulator a PE."""
    tap_rows_minus_1: Signal | None = None
    """Kernel rows of a tap, less 1; row bits. None with one accumulator a PE: there it is the words of a tuple."""
    kernel_stream: Signal | None = None
    """1: the layer's weights come down the stream while frames are computed. None without ``stream_weights``."""
    part: TuplePartRow | None = None
    """Which words of each tuple a kernel group reads. None without ``tuple_parts``."""


@dataclass(frozen=True, kw_only=True)
class AxisRow:
    """How windows move in one direction of the map, for layers by counters."""

    kernel_minus_1: Signal
    """Size of the kernel, less 1; PLACE_BITS."""
    stride: Signal
    """Stride of windows in positions; PLACE_BITS."""
    fresh: Signal
    """First place of the kernel that no window before has read; PLACE_BITS."""
    step: Signal
    """Words of the map from a window's first position to that of the next window; address bits."""
    cross: Signal
    """The same for the first window whose first position lies on the map, after one that began before it."""


@dataclass(frozen=True, kw_only=True)
class RasterKernelRow:
    """Kernel rows of moves on the map, for layers by counters; all have row bits."""

    x_lead_rows: Signal
    x_second_rows: Signal
    """x_lead_rows, x_second_rows: kernel rows of the places that lie before the map, in the first window of each row
    and in the second one."""
    x_stride_rows: Signal
    y_stride_rows: Signal
    """x_stride_rows, y_stride_rows: kernel rows of as many places as a stride has, and of as many lines."""
    line_rows: Signal
    """Kernel rows of a line of the kernel."""


@dataclass(frozen=True, kw_only=True)
class RasterRow:
    """Fields by which an NPU with ``raster`` counts through the taps of a layer."""

    by_counters: Signal
    """1: counters make the layer's taps. 0: tables do, or the layer is direct."""
    x: AxisRow
    y: AxisRow
    """x, y: the moves to the right and downwards."""
    x_lead: Signal
    """Places of the kernel that lie before the map in the first window of each row; PLACE_BITS."""
    x_room: Signal
    """Place of the kernel at which the map's last column is in that window; SIDE_BITS."""
    x_room_end: Signal
    """The same in the last window of each row, by which that window is known; SIDE_BITS."""
    line_words: Signal
    """Words of a row of the map; address bits."""
    gap_words: Signal
    """Words that a row of windows claims before its own first tap: they are read by later windows; address bits + 1."""
    twice: Signal | None = None
    """1: each tap is visited twice, with a kernel row of its own each time. None with engine "integer" and in the
    pool's sequencer."""
    kernel: RasterKernelRow | None = None
    """Moves in kernel rows. None without kernel rows."""


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """Fields that are kept in registers while the layer is at hand."""

    words_minus_1: Signal
    """Words of a tuple, less 1."""
    hold_words: Signal
    """Words that the ring holds of the layer until its last tap is done; address bits + 1."""
    direct: Signal
    """1: every tap's tuple is new and all windows have the same number of taps, so that no table is needed."""
    window_taps_minus_1: Signal
    """Taps of a window of a direct layer, less 1."""
    marks: PoolMarks
    """Marks of the layer that go on to the pool unit with each tap."""
    kernel: KernelRow | None = None
    """Fields of a sequencer whose taps have kernel rows; None in that of a pool unit without weights."""
    raster: RasterRow | None = None
    """Fields of counters, None without ``raster``."""


def start_only(name: str) -> bool:
    """Whether a field is only looked at as the layer begins, so that it needs no register."""
    return name in _OF_START or name.startswith(FIRST)


_OF_START = {f.name for f in fields(LayerStart)}


def layer_start(signals: Mapping[str, Signal]) -> LayerStart:
    """The typed form of those fields of a row that only a layer's beginning looks at."""
    firsts = {name: signal for name, signal in signals.items() if name.startswith(FIRST)}
    return _typed_row(LayerStart, signals, firsts=firsts)


def layer_row(signals: Mapping[str, Signal]) -> LayerRow:
    """The typed form of a row's fields, by their names in the memory map."""
    part = _typed_row(TuplePartRow, signals, "part_") if "part_step" in signals else None
    kernel = _typed_row(KernelRow, signals, part=part) if "kernel_base" in signals else None
    raster = None
    if "by_counters" in signals:
        moves = _typed_row(RasterKernelRow, signals) if kernel is not None else None
        x, y = (_typed_row(AxisRow, signals, f"{axis}_") for axis in "xy")
        raster = _typed_row(RasterRow, signals, x=x, y=y, kernel=moves)
    return _typed_row(LayerRow, signals, marks=PoolMarks.of(signals), kernel=kernel, raster=raster)


def _typed_row(cls: type[RowT], signals: Mapping[str, Signal], prefix: str = "", **parts: object) -> RowT:
    """An object of ``cls`` with the signals of its fields' names; only fields with a default may be missing."""
    values = dict(parts)
    for f in fields(cls):
        name = prefix + f.name
        if f.name not in parts and (f.default is MISSING or name in signals):
            values[f.name] = signals[name]
    return cls(**values)
