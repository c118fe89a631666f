"""Rows of the memories of one NPU that a network needs, and of how many the needs speak (needs.py)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.npu import Npu

from .layout import Ints
from .lowered_layers import Addition, LoweredLayer
from .needs import Needs
from .tables import Tables, rows


@dataclass(kw_only=True)
class NpuPlan:
    """Rows of the memories of one NPU; its layers in their order, rows of a memory in theirs."""

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
    any_match: list[bool] = field(default_factory=list)
    """Which layers accumulate by OR."""
    by_words: list[bool] = field(default_factory=list)
    """Which layers take the OR of each word and count words."""
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
    chunks: list[int] = field(default_factory=list)
    """Words of a chunk, for each map that comes from the NPU before."""
    binariser: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """(words of an input tuple, kfp) thresholds of the binariser; no rows where there is none."""

    def check_counts(self, needs: Needs) -> None:
        """Raise AssertionError unless there are as many rows as the layers need."""
        parts: dict[str, Sequence[Array]] = {
            "taps": self.conv.flags,
            "olds": self.conv.olds,
            "jumps": self.conv.jumps,
            "aheads": self.conv.aheads,
            "kernel_rows": self.kernels,
            "threshold_rows": self.thresholds,
            "pool_taps": self.pool.flags,
            "pool_olds": self.pool.olds,
            "pool_jumps": self.pool.jumps,
            "pool_kernel_rows": self.pool_kernels,
            "pool_scale_rows": [columns["bias_0"] for columns in self.pool_scales],
        }
        for name, made in parts.items():
            needed = getattr(needs, name)
            assert rows(made) == needed, f"{name}: {needed} rows are needed, {rows(made)} are made"
        assert len(self.results) == needs.layers
