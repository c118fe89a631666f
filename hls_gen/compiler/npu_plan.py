"""What a network needs of one NPU: rows of its memories, and how many of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.capacities import FORMER
from bitloom.hls_gen.design.memories import ROUNDING
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.window_former import FormedWindows

from .integer_rows import multiplier_bits
from .layout import Ints, Layout
from .lowered_layers import Addition, Depthwise, LoweredLayer
from .tables import Tables, rows
from .value_ranges import Range


@dataclass(kw_only=True)
class NpuPlan:
    """What a network needs of one NPU; its layers in their order, rows of a memory in theirs."""

    folding: Npu
    conv: Tables
    pool: Tables
    layers: list[LoweredLayer] = field(default_factory=list)
    kernels: list[Array] = field(default_factory=list)
    """(rows, bits of all weights) of 0 and 1, an array a layer."""
    magnitudes: list[Array] = field(default_factory=list)
    """The same of the magnitudes that a binariser of kernels is given with them, where the NPU has one."""
    codes: list[Ints] = field(default_factory=list)
    """(rows): code of each kernel row, as ``layout.plane_layout`` gives it; 0 in binary layers."""
    words: list[Layout] = field(default_factory=list)
    """Layout of the words of a tuple that each layer reads."""
    any_match: list[bool] = field(default_factory=list)
    """Which layers accumulate by OR."""
    by_words: list[bool] = field(default_factory=list)
    """Which layers take the OR of each word and count words."""
    gains_by_parts: bool = False
    """Whether kernel groups of some layer need a part of each tuple only, whether or not the NPU can read one."""
    window_lanes: int = 0
    """Lanes of the beats of the longest window: bits of a register that collects its products."""
    results: list[dict[str, int]] = field(default_factory=list)
    """Row of the results unit by field, one a layer."""
    thresholds: list[Ints] = field(default_factory=list)
    """(rows, ol), an array a layer; where the NPU requantises (rows, 0)."""
    scales: list[dict[str, Ints]] = field(default_factory=list)
    """Columns by field, one dictionary a layer, where the NPU requantises."""
    fractions: list[int] = field(default_factory=list)
    """Bits of the biases behind the point, a number a layer, where the NPU requantises."""
    additions: list[Addition | None] = field(default_factory=list)
    """What each layer adds, if anything, where the NPU requantises."""
    kept: list[bool] = field(default_factory=list)
    """Whether each layer's steps of results go to the skip store, in a binary NPU that has one."""
    pool_kernels: list[Array] = field(default_factory=list)
    """(rows, bits of pfp weights) of 0 and 1, an array a layer, where the pool unit has weights; this and what follows
    is empty elsewhere."""
    pool_results: list[dict[str, int]] = field(default_factory=list)
    """Row of memory ``pool_results`` by field, one a layer."""
    pool_scales: list[dict[str, Ints]] = field(default_factory=list)
    """Columns of memory ``pool_scales`` by field, one dictionary a depthwise convolution."""
    pool_fractions: list[int] = field(default_factory=list)
    """Bits of the biases behind the point, a number a depthwise convolution."""
    map_words: int = 2
    """Words of the maps that go back to the NPU's own input, of as many as there are at a time."""
    chunks: list[int] = field(default_factory=list)
    """Words of a chunk, for each map that comes from the NPU before."""
    buffer_words: int = 0
    """Words that each buffer of inlet "ring" must have for chunks of so many rows or columns; 0: any number."""
    ring_words: int = 0
    """Words of the largest map that comes from the NPU before, 0: none comes."""
    binariser: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """(words of an input tuple, kfp) thresholds of the binariser; no rows where there is none."""
    formed: FormedWindows | None = None
    """What the window former makes of a frame; None where it lets words pass, or there is none."""

    def depths(self) -> dict[str, int]:
        """Rows or words that each memory of the NPU must have at least, and how far its counters must reach."""
        pool = {
            "pool_words": self.pool.ring_words,
            "pool_tuple_words": 1 + max((row["words_minus_1"] for row in self.pool.layers), default=0),
            "pool_taps": rows(self.pool.flags),
            "pool_olds": rows(self.pool.olds),
        }
        if self.folding.depthwise:
            pool |= {
                "pool_jumps": rows(self.pool.jumps),
                "pool_kernel_rows": rows(self.pool_kernels),
                "pool_scale_rows": sum(len(columns["bias_0"]) for columns in self.pool_scales),
            }
        reading = [*self.conv.layers, *self.pool.layers]
        return {
            "layers": len(self.results),
            "windows": 1 + max((row["windows_minus_1"] for row in reading), default=0),
            "window_taps": 1 + max((row["window_taps_minus_1"] for row in reading), default=0),
            "groups": 1 + max((row["groups_minus_1"] for row in self.results), default=0),
            "levels": 1 + max((row["levels_minus_1"] for row in self.results), default=0),
            "input_words": max((row["words"] for row in (*self.conv.inputs, *self.pool.inputs)), default=1),
            "tuple_words": self.conv.ring_words,
            **(pool if self.folding.pool else {}),
            "taps": rows(self.conv.flags),
            "olds": rows(self.conv.olds),
            "jumps": rows(self.conv.jumps),
            "aheads": max(2, rows(self.conv.aheads)) if self.folding.aheads > 0 else 0,
            **({"tuple_parts": int(self.gains_by_parts)} if self.folding.tuple_parts else {}),
            "kernel_rows": rows(self.kernels),
            "threshold_rows": rows(self.thresholds),
            **(self._scale_widths() if self.folding.requantises else {}),
            **({"buffer_words": self.buffer_words} if self.buffer_words else {}),
            **({"map_words": self.map_words} if "loop" in self.folding.outlets else {}),
            **({"binariser_rows": len(self.binariser)} if len(self.binariser) else {}),
            **(self._former_sizes() if self.folding.window_former else {}),
        }

    def _former_sizes(self) -> dict[str, int]:
        """Capacities that the window former needs."""
        return dict.fromkeys(FORMER, 0) if self.formed is None else self.formed.needs()

    def _scale_widths(self) -> dict[str, int]:
        """Capacities that requantisation needs."""
        rounding = [*self.results, *self.pool_results]
        return {
            "multiplier_bits": multiplier_bits([*self.scales, *self.pool_scales]),
            "bias_fraction_bits": max([*self.fractions, *self.pool_fractions], default=0),
            **{name: max((row[name] for row in rounding), default=0) for name in ROUNDING},
            **self._addition_widths(),
        }

    def _addition_widths(self) -> dict[str, int]:
        """Capacities that the addition of maps needs; how large the skip store must be says the flow model."""
        found = [one for one in self.additions if one is not None]
        factors = [factor for one in found for factor in (one.factor_kept, one.factor_added)]
        return {
            "skip_words": self.folding.skip_words and 2,
            "joined_words": self._joined_words(),
            "add_factor_bits": max([2, *map(signed_bits, factors)]),
            "add_bias_bits": max([2, *(signed_bits(one.bias) for one in found)]),
            **(self._kept_widths() if self.folding.keeps_steps else {}),
        }

    def _kept_widths(self) -> dict[str, int]:
        """Capacities that integers need which a binary NPU keeps."""
        return {"skip_bits": self._value_bits(), "skips_onward": self.folding.skips_onward}

    def _joined_words(self) -> int:
        """Words that a layer takes of either of two maps, before it takes those of the other one; 0: none does."""
        rows = [row for row in self.conv.inputs if row.get("joins")]
        parts = [row[name] + 1 for row in rows for name in ("first_words_minus_1", "second_words_minus_1")]
        return max(2, *parts) if parts else 0

    def _value_bits(self) -> int:
        """Bits of what sums are requantised to, in a binary NPU."""
        fields = (row[name] for row in self.results for name in ("low", "high"))
        added = (value for one in self.additions if one is not None for value in (one.low, one.high))
        return max([2, *map(signed_bits, (*fields, *added))])

    def acc_bits(self) -> int:
        """Width of accumulator that holds every value, and the threshold that is never reached."""
        if self.folding.keeps_steps:
            return held_bits(p.biased_range for p in self.layers)
        if self.folding.engine == "binary":
            return held_bits((low, high + 1) for low, high in (p.sum_range for p in self.layers))
        return held_bits((low, high + 1) for low, high in (p.biased_range for p in self._accumulated()))

    def roomy_acc_bits(self) -> int:
        """``acc_bits`` with room for the biases and thresholds of other weights."""
        if self.folding.engine == "binary" and not self.folding.keeps_steps:
            return self.acc_bits()  # thresholds are no further apart than sums
        above = int(not self.folding.keeps_steps)
        return held_bits((low, high + above) for low, high in (p.roomy_range for p in self._accumulated()))

    def _accumulated(self) -> list[LoweredLayer | Depthwise]:
        """What has sums: the layers, and the depthwise convolutions that joined them."""
        joined = [p.depthwise for p in self.layers if p.depthwise is not None]
        return [*self.layers, *joined]


def held_bits(ranges: Iterable[Range]) -> int:
    """Bits in two's complement that hold the values of all ranges, 1 at least."""
    return max((signed_bits(end) for ends in ranges for end in ends), default=1)


def signed_bits(value: int) -> int:
    """Bits in two's complement that hold an integer."""
    return 1 + (value if value >= 0 else ~value).bit_length()
