"""Memories of the pool unit: its sequencer's, and with weights its kernels and scales."""

from bitloom.hls_gen.design.npu import Npu, NpuSequencer
from bitloom.hls_gen.design.pool_unit import POOLS, PRODUCTS, PoolWeights
from bitloom.hls_gen.design.results import REQUANTISATION
from bitloom.hls_gen.design.sequencer_kind import SOMETIMES
from bitloom.hls_gen.design.widths import COUNT_BITS, bits_for

from .memory import FieldWidths, Rows
from .results import fields_of, lane_fields
from .sequencer import counter_fields, kernel_moves, reading_fields, reading_memories, starts

MARKS = tuple(reduction.mark for reduction in (*POOLS, PRODUCTS) if reduction.mark)
"""Marks of a layer by which the pool unit chooses what it computes, each in NPUs alone that have a choice."""


def pool_unit_memories(npu: Npu) -> dict[str, Rows]:
    """Memories of the pool unit; none where there is no pool unit."""
    pool_unit = npu.pool_unit
    sequencer = npu.pool_sequencer
    if not pool_unit or not sequencer:
        return {}
    layers = npu.loader.layers
    weights = pool_unit.weights
    words = ("words", bits_for(npu.sequencer.input_words))
    memories = reading_memories(sequencer, [words], _layer_fields(sequencer))
    if npu.averages:
        row = [("reciprocal", npu.reciprocal_bits)]
        memories["reciprocals"] = Rows(1 << COUNT_BITS, row, read_at_once=True, registered=not weights)
    if weights:
        memories |= {
            "pool_kernels": Rows(
                weights.rows,
                [("weights", pool_unit.beat_lanes * npu.array.weight_bits)],
                counted_as="pool_kernel_rows",
                based_by=("pool_layers", "kernel_base"),
            ),
            "pool_results": Rows(layers, _result_fields(npu, weights), read_at_once=True),
            "pool_scales": Rows(
                weights.scale_rows,
                lane_fields(npu, REQUANTISATION),
                counted_as="pool_scale_rows",
                based_by=("pool_results", "scale_base"),
            ),
        }
    return memories


def _layer_fields(sequencer: NpuSequencer) -> FieldWidths:
    """A layer to the pool unit's sequencer, which also knows where the layer's map goes, and with weights which of them
    its taps meet."""
    npu = sequencer.npu
    row = sequencer.row_bits
    return [
        *reading_fields(sequencer),
        *npu.way_fields,
        *((pool.mark, 1) for pool in npu.pools if pool.mark),
        *counter_fields(sequencer),
        *([("depthwise", 1)] if npu.depthwise else []),
        *([("last_piece", npu.pool_last_piece_bits)] if npu.pool_last_piece_bits else []),
        *([("shares_lanes", 1)] if sequencer.beat.lane_lines > 1 else []),
        *starts(sequencer, SOMETIMES),
        *([("start_row", row), ("kernel_base", row)] if sequencer.kind.kernel_rows else []),
        *kernel_moves(sequencer),
    ]


def _result_fields(npu: Npu, weights: PoolWeights) -> FieldWidths:
    """A layer to what makes features of the pool unit's sums."""
    base = bits_for(weights.scale_rows - 1)
    return [("depthwise", 1), ("scale_base", base), *fields_of(npu, REQUANTISATION.of_layer)]
