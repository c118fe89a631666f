"""Rows of the memories that a pool unit with weights has besides (hls_gen/rtl/pool/pool_depthwise.py)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .widths import bits_for

if TYPE_CHECKING:
    from .npu import Npu

Fields = list[tuple[str, int]]
"""Name and width of each field of a row, low bits first."""


def depthwise_memories(npu: "Npu", rounding: Sequence[str]) -> list[tuple[str, int, Fields]]:
    """Name, depth and row of each of these memories; ``rounding``: fields that say how a layer rounds."""
    return [
        ("pool_jumps", npu.pool_jumps, [("row", npu.pool_row_bits)]),
        ("pool_kernels", npu.pool_kernel_rows, [("weights", npu.pfp * npu.weight_bits)]),
        ("pool_results", npu.layers, _result_row(npu, rounding)),
        ("pool_scales", npu.pool_scale_rows, scale_row(npu)),
    ]


def pool_kernel_fields(npu: "Npu") -> Fields:
    """Fields of a layer to the pool's sequencer that say which weights its taps meet."""
    jump = bits_for(npu.pool_jumps - 1)
    row = npu.pool_row_bits
    fields = [("depthwise", 1), ("jump_base", jump), ("start_row", row), ("kernel_base", row)]
    return [*fields, *(kernel_moves(row) if npu.raster else [])]


def kernel_moves(row: int) -> Fields:
    """Moves in kernel rows, whose addresses have ``row`` bits, for layers by counters."""
    return [(name, row) for name in ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")]


def scale_row(npu: "Npu") -> Fields:
    """How OL sums become features: bias, multiplier and shift of each."""
    multiplier = [("multiplier", npu.multiplier_bits)] if npu.multiplier_bits else []  # none: all are 1
    parts = [("bias", npu.biased_bits), *multiplier, ("shift", npu.scale_shift_bits)]
    return [(f"{name}_{k}", w) for k in range(npu.ol) for name, w in parts]


def _result_row(npu: "Npu", rounding: Sequence[str]) -> Fields:
    """A layer to what makes features of the pool unit's sums."""
    base = ("scale_base", bits_for(npu.pool_scale_rows - 1))
    limits = [(name, npu.feature_bits) for name in ("low", "high")]
    return [("depthwise", 1), base, *limits, *((name, 1) for name in rounding if getattr(npu, name))]
