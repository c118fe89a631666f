"""Rows of the memories that a pool unit with weights has besides (hls_gen/rtl/pool/pool_depthwise.py)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .parts import present
from .widths import bits_for

if TYPE_CHECKING:
    from .npu import Npu

Fields = list[tuple[str, int]]
"""Name and width of each field of a row, low bits first."""


def depthwise_memories(npu: "Npu", rounding: Sequence[str]) -> list[tuple[str, int, Fields]]:
    """Name, depth and row of each of these memories; ``rounding``: fields that say how a layer rounds."""
    weights = present(npu.pool_weights)
    return [
        ("pool_jumps", weights.jumps, [("row", weights.row_bits)]),
        (
            "pool_kernels",
            weights.rows,
            [("weights", present(npu.pool_unit).pfp * npu.array.weight_bits)],
        ),
        ("pool_results", npu.loader.layers, _result_row(npu, rounding)),
        ("pool_scales", weights.scale_rows, scale_row(npu)),
    ]


def pool_kernel_fields(npu: "Npu") -> Fields:
    """Fields of a layer to the pool's sequencer that say which weights its taps meet."""
    weights = present(npu.pool_weights)
    jump = bits_for(weights.jumps - 1)
    row = weights.row_bits
    fields = [("depthwise", 1), ("jump_base", jump), ("start_row", row), ("kernel_base", row)]
    return [*fields, *(kernel_moves(row) if npu.sequencer.raster else [])]


def kernel_moves(row: int) -> Fields:
    """Moves in kernel rows, whose addresses have ``row`` bits, for layers by counters."""
    return [(name, row) for name in ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")]


def scale_row(npu: "Npu") -> Fields:
    """How OL sums become features: bias, multiplier and shift of each."""
    multiplier = [("multiplier", npu.results.multiplier_bits)] if npu.results.multiplier_bits else []  # none: all are 1
    parts = [("bias", npu.biased_bits), *multiplier, ("shift", npu.scale_shift_bits)]
    return [(f"{name}_{k}", w) for k in range(npu.results.ol) for name, w in parts]


def _result_row(npu: "Npu", rounding: Sequence[str]) -> Fields:
    """A layer to what makes features of the pool unit's sums."""
    base = ("scale_base", bits_for(present(npu.pool_weights).scale_rows - 1))
    limits = [(name, npu.array.feature_bits) for name in ("low", "high")]
    return [("depthwise", 1), base, *limits, *((name, 1) for name in rounding if npu.value(name))]
