"""Demand of a weighted layer on an NPU, and the cycles that a folding makes of that: the layer as a search sees it.

Cycles are counted by the compiler's formula (hls_gen/compiler/layer_cycles.py), of the schedule; what memories must
hold, the compiler says, too (npu_memories.py). What is asked again and again is kept here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Optional

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.compiler.layer_cycles import ArrayWork, ReadTuple, pays
from bitloom.hls_gen.compiler.layout import WordLayout, result_steps, split_pool
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer
from bitloom.hls_gen.compiler.lowering import Lowered
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.compiler.sequencer_taps import SequencerTaps
from bitloom.hls_gen.compiler.sequencer_work import SequencerWork
from bitloom.hls_gen.compiler.sharing import value_bits
from bitloom.hls_gen.design.array import kernel_groups
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.gearbox import geared
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_window import SplitWindow

from .folding_keys import ARRAY_CYCLES, POOL_WORK


class OutletTuple(NamedTuple):
    """Tuples of a map as they come to the outlets of an NPU."""

    words: int
    width: int
    """words, width: words of a tuple, and their lanes."""
    ol: int
    """Results that leave in a cycle."""
    levels: int
    """Bits of a value."""
    lanes: int
    """Bits of a tuple."""

    def fits(self, lanes: int) -> bool:
        """Whether they come to a reader with so many lanes in as few words as can be, and, where a value has several
        bits, all of them in the same word, so that lanes can share weights."""
        ol, levels = self.ol, self.levels
        whole = levels == 1 or all(n // ol % levels == 0 for n in (lanes, self.width) if n != ol)
        return whole and geared(self.words, self.width, lanes) <= -(-self.lanes // lanes)


class FormedPool(NamedTuple):
    """A pool behind a line former."""

    tables: StageTables
    """Its schedule."""
    lines: FormedLines
    """Lines that the line former makes, without the words of a position."""


@dataclass(frozen=True, eq=False)
class LayerDemand:
    """A weighted layer with its threshold, its pool, and the depthwise convolution that is fused with it."""

    network: Lowered
    """The lowered layers of its network."""
    lowered: LoweredLayer
    """The lowered layer."""
    conv: StageTables
    pool: StageTables | None
    """conv, pool: the schedules of its convolution and of its pool; None without a pool."""
    feature_bits: int = 1
    """Width that its features need."""
    reads: int | None = None
    """Number of the layer whose map it reads; None: the network's input."""
    reader: int | None = None
    """Number of the layer that reads its map from the map store or on the next NPU; None: there is none."""
    taker: int | None = None
    """Number of the layer that reads or adds its map from the skip store; None: it doesn't go there."""
    adds: int | None = None
    """Number of the layer whose map it adds; None: it adds none."""
    joined_channels: tuple[int, ...] = ()
    """Channels of the two maps that it reads side by side; empty where it reads one."""
    with_former: Optional["LayerDemand"] = None
    """The layer with formed taps, as behind a window former; None where a former can't feed it."""
    formed: FormedWindows | None = None
    """Of a layer with formed taps: what the former makes."""
    with_lines: Optional["LayerDemand"] = None
    """The layer with formed lines, as an array that takes several taps a beat has it; None where a line former can't
    feed it."""
    lines: FormedLines | None = None
    """Of a layer with formed lines: what the line former makes, without the words of a position."""
    formed_pools: Mapping[SplitWindow, FormedPool] = field(default_factory=dict)
    """Its pool behind line formers, by how they split the pool's window; only those that can feed the pool."""
    cache: dict[Any, Any] = field(default_factory=dict, init=False)
    """For what is worked out once."""

    @property
    def name(self) -> str:
        """The layer's name."""
        return self.lowered.name

    @cached_property
    def engine(self) -> str:
        """ "binary" or "integer"."""
        return "binary" if self.lowered.binary else "integer"

    @cached_property
    def planes(self) -> int:
        """Bit planes of an integer input of the binary engine, without the constant one; 0 where there are none."""
        return self.network.input_bits if self.lowered.reads == INPUT else 0

    @cached_property
    def bits(self) -> int:
        """Thermometer bits of a value that it reads, whose lanes may share a weight; 0 or 1 where there are none."""
        return value_bits(self.network, self.lowered) if self.lowered.binary else 1

    @cached_property
    def channels(self) -> int:
        """Lanes of a tap; of an integer input of the binary engine, its channels."""
        shape = self.lowered.weight.shape
        return int(shape[2]) if self.planes else int(np.prod(shape[2:]))

    @cached_property
    def kernels(self) -> int:
        """Output channels."""
        return self.lowered.out_channels

    @cached_property
    def levels(self) -> int:
        """Thresholds a channel."""
        return self.lowered.levels

    @property
    def places(self) -> int:
        """Places of the kernel, each visit counted."""
        return int(self.lowered.weight.shape[1])

    @cached_property
    def taps(self) -> int:
        """Valid taps of a frame, each visit counted."""
        return len(self.conv.index) * self.lowered.visits

    def work(self, npu: Npu) -> SequencerWork:
        """Work of that NPU's array sequencer in a frame."""
        kind = npu.array_sequencer.kind
        key = "work", kind
        if key not in self.cache:
            self.cache[key] = SequencerTaps(self.conv, kind, self.lowered.visits).counts.work
        work: SequencerWork = self.cache[key]
        return work

    def pool_work(self, npu: Npu) -> SequencerWork:
        """Work of that NPU's pool sequencer in a frame, for the layer's pool; without a pool the sequencer has no
        window."""
        if self.pool is None or npu.pool_unit is None:
            return SequencerWork(())
        key = "pool work", POOL_WORK(npu), self._pool_split(npu)
        if key not in self.cache:
            pool = self.pool_tables(npu)
            sequencer = npu.pool_sequencer
            assert pool
            assert sequencer
            self.cache[key] = SequencerTaps(pool, sequencer.kind).counts.work
        work: SequencerWork = self.cache[key]
        return work

    def formed_pool(self, npu: Npu) -> FormedPool | None:
        """Its pool behind the line former in front of the NPU's pool unit; None where that takes taps one by one."""
        split = self._pool_split(npu)
        return self.formed_pools.get(split) if split else None

    def _pool_split(self, npu: Npu) -> SplitWindow | None:
        """How a line former in front of the NPU's pool unit splits its pool's window; None where none is formed."""
        pool = self.lowered.pool if self.formed_pools and npu.pool_unit else None
        return pool and split_pool(npu, self.kernels, self.levels, pool.window, pool.reduction)

    def pool_tables(self, npu: Npu) -> StageTables | None:
        """The schedule of its pool on that NPU; None without a pool."""
        formed = self.formed_pool(npu)
        return formed.tables if formed else self.pool

    @cached_property
    def tuples(self) -> int:
        """Tuples of the map that it reads."""
        return len(self.conv.input_order)

    @property
    def any_match(self) -> bool:
        """Whether the layer accumulates by OR."""
        return self.lowered.arithmetic.accumulate == "or"

    @property
    def word_channels(self) -> int:
        """Channels of a word whose products are ORed, 0: products are counted."""
        return self.lowered.arithmetic.word_channels

    @property
    def signs(self) -> bool:
        """Whether its bits are the signs of integers, which a binary NPU requantises sums to."""
        return self.lowered.binary and self.lowered.scale is not None

    @cached_property
    def weight_bits(self) -> int:
        """Bits of two's complement that hold whatever weights the layer may have, 2 at the least; 1 of the binary
        engine."""
        if self.lowered.binary:
            return 1
        segment = next(each.segment for each in self.network.workloads if each.name == self.name)
        encodings = [of.layer.weight for of in (segment, segment and segment.depthwise) if of]
        return max([2, *map(stored_bits, encodings)])

    @property
    def macs(self) -> int:
        """Multiply-accumulates a frame."""
        return len(self.conv.index) * self.channels * self.kernels

    @cached_property
    def depthwise(self) -> bool:
        """Whether the pool is a depthwise convolution, computed by a pool unit with weights."""
        return self.lowered.depthwise is not None

    @cached_property
    def pool_burst(self) -> int:
        """Rows that come for each row of the pool's windows, where they come row after row: only while the last of them
        comes does the pool unit work. Else 1."""
        if self.pool is None:
            return 1
        in_rows = (np.diff(self.conv.output_order) > 0).all()
        several = len(self.pool.output_order) > 1
        window = self.pool.stage.window.window
        return max(1, window.stride[0] // window.growth[0]) if in_rows and several else 1

    @property
    def windows(self) -> int:
        """Windows of a frame."""
        return len(self.conv.output_order)

    def seen_by(self, npu: Npu) -> "LayerDemand":
        """The layer as that NPU reads it: with formed taps where the NPU has a window former that the layer gains by,
        with formed lines where the NPU's array has a line former that the layer gains by."""
        if self.with_lines is not None and npu.array_forms_lines:
            return self.with_lines if self.gains_by_lines(npu) else self
        if self.with_former is None or not npu.former or (self.reads is not None and "host" in npu.ports.inlets):
            return self
        key = "gains", ARRAY_CYCLES(npu)
        if key not in self.cache:
            self.cache[key] = self.gains_by_former(npu)
        return self.with_former if self.cache[key] else self

    def numbered_from(self, first: int) -> "LayerDemand":
        """The layer where the layers of its network have numbers from ``first`` on."""
        with_former = self.with_former and self.with_former.numbered_from(first)
        with_lines = self.with_lines and self.with_lines.numbered_from(first)
        numbers = {key: getattr(self, key) for key in ("reads", "reader", "taker", "adds")}
        moved: dict[str, Any] = {key: None if n is None else n + first for key, n in numbers.items()}
        return replace(self, with_former=with_former, with_lines=with_lines, **moved)

    def gains_by_lines(self, npu: Npu) -> bool:
        """Whether the layer takes fewer beats with formed lines on an NPU whose array has a line former."""
        other = self.with_lines
        split = npu.array.beat.split(self.lowered.window.window)
        if other is None or other.lowered.former_taps is None or other.lowered.former_taps.split != split:
            return False
        return pays(other.taps * other.words(npu), self.taps * self.words(npu))

    def gains_by_former(self, npu: Npu) -> bool:
        """Whether a window former in front of that NPU makes the layer faster."""
        other = self.with_former
        if other is None or other.formed is None or other.formed.channels > npu.array.plane_lanes:
            return False
        if self.planes and not npu.array.planes:
            return False
        return pays(other.beats(npu), self.beats(npu), other.formed_by(npu).cycles)

    def formed_by(self, npu: Npu) -> FormedWindows:
        """Windows that the window former of that NPU makes, of a layer with formed taps."""
        assert self.formed is not None
        column = npu.former_sizes.column if npu.former_sizes else 0
        key = "formed", npu.array.plane_lanes, column
        if key not in self.cache:
            column = max(column, self.formed.column_lanes)
            lanes = npu.array.plane_lanes
            together = self.formed.together if self.formed.position_channels <= lanes else 1
            self.cache[key] = replace(self.formed, word_lanes=lanes, column_lanes=column, together=together)
        windows: FormedWindows = self.cache[key]
        return windows

    def frame_words(self, npu: Npu) -> int:
        """Words of a frame, of a layer that reads the network's input."""
        return self.tuples * self.words(npu) if self.formed is None else self.formed_by(npu).frame_words

    @cached_property
    def read_tuple(self) -> ReadTuple:
        """A tuple that the layer reads, without a window former."""
        formed = self.lowered.former_taps
        return ReadTuple(
            channels=self.joined_channels or (self.lowered.map_channels,),
            planes=self.planes,
            from_host=self.reads is None,
            lines=formed.split if self.lines and formed else None,
        )

    def words(self, npu: Npu) -> int:
        """Words of a tuple of the layer's input, as the array takes them."""
        return self.read_tuple.words(npu) if self.formed is None else self.formed_by(npu).words

    def read_words(self, npu: Npu, dataflow: str = "output_stationary") -> int:
        """Words of a tuple that a kernel group reads, of those in which its kernels have weights."""
        in_turn = dataflow == "input_stationary" and self.groups(npu) > 1
        return (
            self.words(npu) if in_turn or not self._has_tuple_parts(npu) else self._tuple_part_words(npu, npu.array.kgp)
        )

    def _tuple_part_words(self, npu: Npu, kgp: int) -> int:
        """Words of the tuple part that a kernel group of ``kgp`` kernels reads."""
        key = "tuple part words", *self._layout_key(npu), kgp
        if key not in self.cache:
            assert self.lowered.weighted_lanes is not None
            self.cache[key] = self.lowered.weighted_lanes.part(self._layout(npu), kgp)[0].words
        words: int = self.cache[key]
        return words

    def _has_tuple_parts(self, npu: Npu) -> bool:
        """Whether kernel groups may read a part of a tuple's words alone."""
        weighted = self.lowered.weighted_lanes
        if weighted is None:
            return False
        key = "tuple parts", *self._layout_key(npu)
        if key not in self.cache:
            self.cache[key] = not weighted.spans(self._layout(npu))
        parts: bool = self.cache[key]
        return parts

    def _layout(self, npu: Npu) -> WordLayout:
        """The words of a tuple of its input, if lane follows lane."""
        key = "layout", *self._layout_key(npu)
        if key not in self.cache:
            self.cache[key] = self.read_tuple.layout(npu) if self.formed is None else self.formed_by(npu).layout()
        layout: WordLayout = self.cache[key]
        return layout

    @staticmethod
    def _layout_key(npu: Npu) -> tuple[int, ...]:
        """The values of an NPU on which the words of a tuple depend."""
        column = npu.former_sizes.column if npu.former_sizes else 0
        return npu.array.kfp, npu.array.plane_lanes, npu.array.line_taps, column

    def beats(self, npu: Npu, dataflow: str = "output_stationary") -> int:
        """Beats of a frame."""
        return self.taps * self.read_words(npu, dataflow) * self.groups(npu)

    def beats_by_kgp(self, npu: Npu) -> Callable[[int], int]:
        """Beats of a frame on an NPU that is like this one but for its KGP, by that."""
        taps, kernels = self.taps, self.kernels
        if self._has_tuple_parts(npu):
            return lambda kgp: taps * self._tuple_part_words(npu, kgp) * kernel_groups(kernels, kgp)
        of_group = taps * self.words(npu)
        return lambda kgp: of_group * kernel_groups(kernels, kgp)

    def groups(self, npu: Npu) -> int:
        """Kernel groups: passes over a window."""
        return npu.array.groups(self.kernels)

    def shared_accumulators(self, npu: Npu) -> int:
        """Accumulators of a PE with which a word stays until all kernel groups have used it, while results of the
        window before leave: a power of two."""
        return 1 << (2 * self.groups(npu) - 1).bit_length()

    def cycles(self, npu: Npu, dataflow: str) -> int:
        """Cycles of a frame in that dataflow, if words come and go in time."""
        return self.with_others(npu, self.array_cycles(npu, dataflow))

    def with_others(self, npu: Npu, array: int) -> int:
        """Cycles of a frame where those of the array alone are ``array``: of array, pool unit and formers, which work
        at the same time, the slowest counts. It is taken that the pool unit's memory has room for no rows but those of
        its windows: so the array waits while the pool unit works off a row of windows for longer than a row comes."""
        formed = 0 if self.formed is None else self.formed_by(npu).cycles
        pooled = self.pool_cycles(npu)
        if self.pool_burst > 1:
            pooled += array - array // self.pool_burst
        return max(array, formed, self.line_former_cycles(npu), pooled)

    def line_former_cycles(self, npu: Npu) -> int:
        """Cycles of the line former in front of the array a frame; 0 of words that pass it, or where there is none."""
        if self.reads is None or not npu.array_forms_lines:
            return 0
        return (self.lines.cycles if self.lines else self.tuples) * self.read_tuple.map_words(npu)

    def array_cycles(self, npu: Npu, dataflow: str) -> int:
        """Cycles of the array alone."""
        return self.array_cycles_by_ol(npu, dataflow)(npu.results.ol)

    def array_cycles_by_ol(self, npu: Npu, dataflow: str) -> Callable[[int], int]:
        """A function from OL to the cycles of the array alone, on an NPU like ``npu`` with that OL."""
        words = self.read_words(npu, dataflow)
        in_turn = dataflow == "input_stationary"
        return ArrayWork.of(npu, self.work(npu), words, self.kernels, self.levels, in_turn=in_turn).cycles

    def steps(self, npu: Npu) -> int:
        """Steps in which the results of a window leave."""
        return result_steps(self.kernels, self.levels, npu.array.kgp, npu.results.ol)

    def outlet_tuple(self, npu: Npu) -> OutletTuple:
        """The tuples of its map at the outlets of that NPU."""
        words, width = npu.outlet_tuple(self.steps(npu))
        return OutletTuple(words, width, npu.results.ol, self.levels, self.kernels * self.levels)

    def pool_cycles(self, npu: Npu) -> int:
        """Cycles of the pool unit a frame; 0 of a layer without a pool."""
        if self.pool is None:
            return 0
        return self.pool_work(npu).cycles(npu.pool_tuple_words(self.steps(npu)))
