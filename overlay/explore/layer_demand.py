"""What a weighted layer demands of an NPU, and what a folding makes of that: the layer as the search sees it.

A layer on an NPU of its own takes, for a frame,

    sum over windows of groups x max(valid taps x words, steps, (steps + latency + 1) / 2)     cycles

with words = ceil(channels / KFP), groups = ceil(kernels / KGP), steps = ceil(KGP / OL) x levels: the results of a group
leave in so many steps, and those of two groups may be on their way. A pool unit with weights and a window former take
cycles of their own, and the slowest of the three counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Optional

import numpy as np

from bitloom.hls_gen.compiler.layout import chunks
from bitloom.hls_gen.compiler.tuple_parts import WeightedLanes
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.gearbox import geared
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.window_former import FormedWindows

from .reading_demand import ReadingDemand

SMALL_MAP = 16
"""Tuples of a map that is small. For such a map the tuple memory has room for one more map beside what it must hold."""

FOLDED = attrgetter(
    "engine",
    "kfp",
    "kgp",
    "ol",
    "planes",
    "accumulators",
    "accumulate",
    "word_lanes",
    "collect",
    "lanes_per_weight",
    "lane_step",
)
"""Of an NPU what the array's cycles depend on."""


@dataclass(frozen=True, eq=False)
class LayerDemand:
    """A weighted layer with its threshold, its pool, and the depthwise convolution that joined it.

    Attributes
    ----------
    name
        The layer's name.
    engine
        "binary" or "integer".
    channels
        Lanes of a tap; of an integer input of the binary engine, its channels.
    planes
        Bit planes of such an input, without the constant one; 0 where there are none.
    bits
        Thermometer bits of a value that it reads, whose lanes may share a weight; 1 of an integer input.
    kernels
        Output channels.
    levels
        Thresholds a channel.
    places
        Places of the kernel, each visit counted.
    taps
        (windows,) valid taps of each window, visits counted.
    reading
        What reading needs, by whether a window is passed several times.
    pool
        What the pool unit's reading needs; None without a pool.
    pool_taps
        Taps of all windows of the pool.
    raw
        Whether results leave as sums, without a threshold.
    any_match
        Whether the layer accumulates by OR.
    word_channels
        Channels of a word whose products are ORed, 0: products are counted.
    value_bits
        Width of an accumulator that holds every value.
    feature_bits, weight_bits, multiplier_bits, bias_fraction_bits
        Widths that its numbers need.
    macs
        Multiply-accumulates a frame.
    output_windows
        Windows that leave the NPU, behind the pool.
    input_bits
        Width of an input value.
    rounding
        Capacities ``half_even`` and ``round_twice`` that its requantisations need.
    pool_places
        Taps of the pool's window; 0 without a pool.
    pool_burst
        Rows that come for each row of the pool's windows, where they come row after row: only while the last of them
        comes does the pool unit work. Else 1.
    depthwise
        Whether the pool is a depthwise convolution, computed by a pool unit with weights.
    reads
        Number of the layer whose map it reads; None: the network's input.
    reader
        Number of the layer that reads its map from the map store or on the next NPU; None: there is none.
    taker
        Number of the layer that reads or adds its map from the skip store; None: it doesn't go there.
    adds
        Number of the layer whose map it adds; None: it adds none.
    parts
        Channels of the two maps that it reads side by side; empty where it reads one.
    signs
        Whether its bits are the signs of integers, which a binary NPU requantises sums to.
    biased_bits, kept_bits
        Widths of an accumulator and of such an integer on a binary NPU that requantises.
    add_widths
        Capacities that its addition needs.
    weighted
        The lanes for which kernels have weights, where some have none for some lanes; None elsewhere.
    joined
        The layer with joined taps, as behind a window former; None where a former can't feed it.
    formed
        Of a layer with joined taps: what the former makes.
    cache
        For what is worked out once.
    """

    name: str
    engine: str
    channels: int
    planes: int
    kernels: int
    levels: int
    places: int
    taps: np.ndarray
    reading: Mapping[bool, ReadingDemand]
    pool: ReadingDemand | None
    pool_taps: int
    raw: bool
    any_match: bool
    word_channels: int
    value_bits: int
    feature_bits: int = 1
    weight_bits: int = 1
    multiplier_bits: int = 0
    bias_fraction_bits: int = 0
    bits: int = 1
    macs: int = 0
    output_windows: int = 1
    input_bits: int = 1
    rounding: Mapping[str, int] = field(default_factory=dict)
    pool_places: int = 0
    pool_burst: int = 1
    depthwise: bool = False
    reads: int | None = None
    reader: int | None = None
    taker: int | None = None
    adds: int | None = None
    parts: tuple[int, ...] = ()
    signs: bool = False
    biased_bits: int = 0
    kept_bits: int = 2
    add_widths: Mapping[str, int] = field(default_factory=dict)
    weighted: WeightedLanes | None = None
    joined: Optional["LayerDemand"] = None
    formed: FormedWindows | None = None
    cache: dict[Any, Any] = field(default_factory=dict)

    @property
    def windows(self) -> int:
        """Windows of a frame."""
        return len(self.taps)

    @cached_property
    def taps_in_all(self) -> int:
        """Valid taps of a frame."""
        return int(self.taps.sum())

    @cached_property
    def _counts(self) -> list[tuple[int, int]]:
        """Different numbers of valid taps of a window, and how many windows have each."""
        taps, counts = np.unique(self.taps, return_counts=True)
        return list(zip(taps.tolist(), counts.tolist()))

    def seen_by(self, npu: Npu) -> "LayerDemand":
        """The layer as that NPU reads it: with joined taps where it has a window former for it."""
        if self.joined is None or not npu.window_former:
            return self
        key = "gains", *FOLDED(npu)
        if key not in self.cache:
            self.cache[key] = self.gains_by_former(npu)
        return self.joined if self.cache[key] else self

    def numbered_from(self, first: int) -> "LayerDemand":
        """The layer where the layers of its network have numbers from ``first`` on."""
        joined = self.joined and self.joined.numbered_from(first)
        numbers = {key: getattr(self, key) for key in ("reads", "reader", "taker", "adds")}
        moved: dict[str, Any] = {key: None if n is None else n + first for key, n in numbers.items()}
        return replace(self, joined=joined, **moved)

    def gains_by_former(self, npu: Npu) -> bool:
        """Whether a window former in front of that NPU makes the layer faster."""
        other = self.joined
        if other is None or other.formed is None or other.formed.channels > npu.plane_lanes:
            return False
        if self.planes and not npu.planes:
            return False
        return max(other.formed_by(npu).cycles, other.beats(npu)) < self.beats(npu)

    def formed_by(self, npu: Npu) -> FormedWindows:
        """What the window former of that NPU makes, of a layer with joined taps."""
        assert self.formed is not None
        key = "formed", npu.plane_lanes
        if key not in self.cache:
            self.cache[key] = replace(self.formed, word_lanes=npu.plane_lanes)
        found: FormedWindows = self.cache[key]
        return found

    def words(self, npu: Npu) -> int:
        """Words of a tuple of the layer's input."""
        if self.formed is not None:
            return self.formed_by(npu).words
        if not self.planes:
            return sum(-(-channels // npu.kfp) for channels in self.parts or (self.channels,))
        one_after_another = 1 if npu.planes else self.planes + 1
        return -(-self.channels // npu.plane_lanes) * one_after_another

    def read_words(self, npu: Npu, dataflow: str = "output_stationary") -> int:
        """Words of a tuple that a kernel group reads, of those in which its kernels have weights."""
        words = self.words(npu)
        shared = dataflow == "input_stationary" and self.groups(npu) > 1
        if self.weighted is None or self.formed is not None or self.planes or shared:
            return words
        key = "read_words", npu.kfp, npu.kgp
        if key not in self.cache:
            ends = np.cumsum(self.parts or (self.channels,))
            layout = np.concatenate([chunks(lanes, npu.kfp) for lanes in np.split(np.arange(ends[-1]), ends[:-1])])
            self.cache[key] = self.weighted.part(layout, npu.kgp)[0].words
        found: int = self.cache[key]
        return found

    def beats(self, npu: Npu, dataflow: str = "output_stationary") -> int:
        """Beats of a frame."""
        return self.taps_in_all * self.read_words(npu, dataflow) * self.groups(npu)

    def groups(self, npu: Npu) -> int:
        """Kernel groups: passes over a window."""
        return -(-self.kernels // npu.kgp)

    def cycles(self, npu: Npu, dataflow: str) -> int:
        """Cycles of a frame in that dataflow, if words come and go in time."""
        return self.with_others(npu, self.array_cycles(npu, dataflow))

    def with_others(self, npu: Npu, array: int) -> int:
        """Cycles of a frame where those of the array alone are ``array``: the pool unit and the window former work
        beside it, but the array waits while a pool unit works off a row of windows for longer than a row comes."""
        found = array if self.formed is None else max(array, self.formed_by(npu).cycles)
        if self.depthwise or self.pool_burst > 1:
            found = max(found, self.pool_beats(npu) + array - array // self.pool_burst)
        return found

    def array_cycles(self, npu: Npu, dataflow: str) -> int:
        """Cycles of the array alone."""
        beats = self.read_words(npu, dataflow)
        groups = self.groups(npu)
        steps = npu.units * self.levels
        if npu.accumulators == 1:
            steps = max(steps, -(-(steps + timing.array_latency(npu) + 1) // timing.CREDITS))
        if dataflow == "input_stationary":
            return sum(max(taps * beats * groups, groups * steps) * count for taps, count in self._counts)
        return sum(max(taps * beats, steps) * count for taps, count in self._counts) * groups

    def steps(self, npu: Npu) -> int:
        """Steps in which the results of a window leave."""
        rest = self.kernels - (self.groups(npu) - 1) * npu.kgp
        return ((self.groups(npu) - 1) * npu.units + -(-rest // npu.ol)) * self.levels

    def depths(self, npu: Npu, dataflow: str, room: int) -> dict[str, int]:
        """Memory sizes of an NPU that computes the layer alone, by the NPU's parameter.

        Parameters
        ----------
        npu
            Its folding.
        dataflow
            "output_stationary" or "input_stationary".
        room
            Tuples in front of the NPU beyond those that it holds.
        """
        words = self.words(npu)
        groups = self.groups(npu)
        steps = self.steps(npu)
        read_words = self.read_words(npu, dataflow)
        made = self.reading[dataflow == "output_stationary" and groups > 1]
        acc = max(self.biased_bits if npu.keeps_steps else self.value_bits, npu.least_acc_bits)
        room = max(room, made.tuples) if made.tuples <= SMALL_MAP else room
        found = {
            "tuple_words": made.ring_words(words, room),
            "taps": made.taps,
            "olds": made.olds,
            "jumps": made.jumps,
            "kernel_rows": self.places * read_words * groups,
            "threshold_rows": 0 if self.raw else steps,
            "acc_bits": acc,
            "layers": 2,
            "windows": max(self.windows, self.output_windows),
            "window_taps": self.places,
            "groups": groups,
            "levels": self.levels,
            "input_words": made.tuples * words,
        }
        if npu.requantises:
            found |= {
                "multiplier_bits": self.multiplier_bits,
                "bias_fraction_bits": self.bias_fraction_bits,
                **self.rounding,
                **self.add_widths,
            }
        if npu.skip_words:
            found["aheads"] = made.aheads
            found |= {"skip_bits": self.kept_bits} if npu.keeps_steps else {}
            found |= {"joined_words": max(2, *(-(-n // npu.kfp) for n in self.parts))} if self.parts else {}
        if read_words < words:
            found |= {"tuple_parts": 1, "aheads": max(2, made.aheads)}
        if self.formed is not None:
            found |= self.formed.needs()
        if npu.pool and self.pool:
            pool_words = geared(steps, npu.ol, npu.pfp)
            found |= {
                "pool_words": self.pool.ring_words(pool_words),
                "pool_tuple_words": pool_words,
                "pool_taps": self.pool.taps,
                "pool_olds": self.pool.olds,
            }
            found["window_taps"] = max(found["window_taps"], self.pool_places)
            found["input_words"] = max(found["input_words"], self.pool.tuples * pool_words)
            if npu.depthwise:
                found["pool_jumps"] = self.pool.jumps
            if self.depthwise:
                found |= {
                    "pool_kernel_rows": self.pool_places * pool_words,
                    "pool_scale_rows": pool_words * (npu.pfp // npu.ol),
                }
        return found

    def fits(self, npu: Npu, lanes: int) -> bool:
        """Whether results come to a reader with so many lanes in as few words as can be, and, where a value has several
        bits, all of them in the same word, so that lanes can share weights."""
        width = npu.ol
        words = self.steps(npu)
        if npu.pool:
            words = geared(words, npu.ol, npu.pfp)
            width = npu.pfp
        if npu.depthwise:
            words = words * (npu.pfp // npu.ol)
            width = npu.ol
        whole = all(n // npu.ol % self.levels == 0 for n in {lanes, width} - {npu.ol})
        return whole and geared(words, width, lanes) <= -(-self.kernels * self.levels // lanes)

    def pool_beats(self, npu: Npu) -> int:
        """Beats of the pool unit a frame."""
        return self.pool_taps * geared(self.steps(npu), npu.ol, npu.pfp)
