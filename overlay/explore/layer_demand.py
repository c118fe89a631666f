"""What a weighted layer demands of an NPU, and what a folding makes of that: the layer as the search sees it.

A layer on an NPU of its own takes, for a frame,

    sum over windows of groups x max(valid taps x words, steps, (steps + latency + 1) / 2)     cycles

with words = ceil(channels / KFP), groups = ceil(kernels / KGP), steps = ceil(KGP / OL) x levels: the results of a group
leave in so many steps, and those of two groups may be on their way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bitloom.hls_gen.compiler.fitted import LEAST
from bitloom.hls_gen.compiler.integer_rows import multiplier_bits, scales
from bitloom.hls_gen.compiler.lowered_layers import BinaryLayer, IntegerLayer
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.gearbox import geared
from bitloom.hls_gen.design.npu import Npu

from .reading_demand import ReadingDemand, tabled

SMALL_MAP = 16
"""Tuples of a map that is small. For such a map the tuple memory has room for one more map beside what it must hold."""


@dataclass(frozen=True, eq=False)
class LayerDemand:
    """A weighted layer with its threshold and its pool.

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
    def _counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Different numbers of valid taps of a window, and how many windows have each."""
        return np.unique(self.taps, return_counts=True)

    def words(self, npu: Npu) -> int:
        """Words of a tuple of the layer's input."""
        if not self.planes:
            return -(-self.channels // npu.kfp)
        one_after_another = 1 if npu.planes else self.planes + 1
        return -(-self.channels // npu.plane_lanes) * one_after_another

    def groups(self, npu: Npu) -> int:
        """Kernel groups: passes over a window."""
        return -(-self.kernels // npu.kgp)

    def cycles(self, npu: Npu, dataflow: str) -> int:
        """Cycles of a frame in that dataflow, if words come and go in time."""
        beats, groups = self.words(npu), self.groups(npu)
        steps = npu.units * self.levels
        taps, count = self._counts
        if npu.accumulators == 1:
            steps = max(steps, -(-(steps + timing.array_latency(npu) + 1) // timing.CREDITS))
        if dataflow == "input_stationary":
            return int((np.maximum(taps * beats * groups, groups * steps) * count).sum())
        return int((np.maximum(taps * beats, steps) * count).sum()) * groups

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
        words, groups, steps = self.words(npu), self.groups(npu), self.steps(npu)
        made = self.reading[dataflow == "output_stationary" and groups > 1]
        acc = max(self.value_bits, npu.least_acc_bits)
        room = max(room, made.tuples) if made.tuples <= SMALL_MAP else room
        found = {"tuple_words": made.ring_words(words, room), "taps": made.taps, "olds": made.olds,
                 "jumps": made.jumps, "kernel_rows": self.places * words * groups,
                 "threshold_rows": 0 if self.raw else steps, "acc_bits": acc, "layers": 2,
                 "windows": max(self.windows, self.output_windows), "window_taps": self.places, "groups": groups,
                 "levels": self.levels, "input_words": made.tuples * words}  # fmt: skip
        if npu.engine == "integer":
            found |= {"multiplier_bits": self.multiplier_bits, "bias_fraction_bits": self.bias_fraction_bits}
        if npu.pool and self.pool:
            pool_words = geared(steps, npu.ol, npu.pfp)
            found |= {"pool_words": self.pool.ring_words(pool_words), "pool_tuple_words": pool_words,
                      "pool_taps": self.pool.taps, "pool_olds": self.pool.olds}  # fmt: skip
        return {key: max(LEAST.get(key, 2), value) for key, value in found.items()}

    def fits(self, npu: Npu, lanes: int) -> bool:
        """Whether results come to a reader with so many lanes in as few words as can be, and, where a value has several
        bits, all of them in the same word, so that lanes can share weights."""
        width, words = npu.ol, self.steps(npu)
        if npu.pool:
            words, width = geared(words, npu.ol, npu.pfp), npu.pfp
        whole = all(n // npu.ol % self.levels == 0 for n in {lanes, width} - {npu.ol})
        return whole and geared(words, width, lanes) <= -(-self.kernels * self.levels // lanes)

    def pool_beats(self, npu: Npu) -> int:
        """Beats of the pool unit a frame."""
        return self.pool_taps * geared(self.steps(npu), npu.ol, npu.pfp)


def layer_demand(
    p: BinaryLayer | IntegerLayer, conv: StageTables, pool: StageTables | None, *, planes: int, counters: bool
) -> LayerDemand:
    """The demand of a lowered layer of the compiler.

    Parameters
    ----------
    p
        The layer.
    conv, pool
        The schedules of its convolution and, where it has one, of its pool.
    planes
        Bit planes of its input, if that is one of integers to the binary engine; else 0.
    counters
        Whether NPUs have counters for raster order.
    """
    visits = p.visits
    places = int(p.weight.shape[1])
    low, high = p.value_range[0], p.value_range[1] + 1
    binary = isinstance(p, BinaryLayer)
    channels = int(p.weight.shape[2]) if planes else int(np.prod(p.weight.shape[2:]))
    windows = len(conv.output_order) if pool is None else len(pool.output_order)
    taps, results = np.bincount(conv.window) * visits, np.arange(p.out_channels * p.levels)[:, None]
    return LayerDemand(
        name=p.name,
        engine="binary" if binary else "integer",
        channels=channels,
        planes=planes,
        kernels=p.out_channels,
        levels=p.levels,
        places=places,
        taps=taps,
        reading={again: tabled(conv, visits, again, raster=counters) for again in (False, True)},
        pool=None if pool is None else tabled(pool, 1, False, kernel=False, raster=counters),
        pool_taps=0 if pool is None else len(pool.index),
        raw=p.raw,
        any_match=binary and p.any_match,
        word_channels=p.word_channels if binary else 0,
        value_bits=1 + max(high.bit_length(), (~low).bit_length()),
        weight_bits=1 if binary else _bits(p.weight),
        multiplier_bits=0 if binary else multiplier_bits([scales(p, results)]),
        bias_fraction_bits=0 if binary else p.fraction,
        macs=len(conv.index) * channels * p.out_channels,
        output_windows=windows,
    )


def _bits(values: np.ndarray) -> int:
    """Bits of two's complement that hold all of ``values``; 2 at the least."""
    low, high = int(values.min()), int(values.max())
    return max(2, 1 + max(high.bit_length(), (~low if low < 0 else low).bit_length()))
