"""Memories of the pool unit: its sequencer's, and with weights its kernels and scales."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.pool_unit import PoolUnit, PoolWeights
from bitloom.hls_gen.design.widths import COUNT_BITS, bits_for

from .memory import FieldWidths, Rows
from .ports import way
from .results import rounding_fields, scale_fields
from .sequencer import TAP_FLAGS, counter_fields, kernel_moves, reading_fields


def pool_unit_memories(npu: Npu) -> dict[str, Rows]:
    """Memories of the pool unit; none where there is no pool unit."""
    pool_unit = npu.pool_unit
    if not pool_unit:
        return {}
    layers = npu.loader.layers
    weights = pool_unit.weights
    memories = {
        "pool_inputs": Rows(layers, [("words", bits_for(npu.sequencer.input_words))], read_at_once=True),
        "pool_layers": Rows(layers, _layer_fields(npu, pool_unit), read_at_once=True),
        "pool_flags": Rows(pool_unit.taps, [*TAP_FLAGS, *([("jump", 1)] if weights else [])]),
        "pool_olds": Rows(pool_unit.olds, [("word", pool_unit.address_bits)]),
    }
    if npu.engine == "integer":
        memories["reciprocals"] = Rows(1 << COUNT_BITS, [("reciprocal", npu.reciprocal_bits)], read_at_once=True)
    if weights:
        memories |= {
            "pool_jumps": Rows(weights.jumps, [("row", weights.row_bits)]),
            "pool_kernels": Rows(weights.rows, [("weights", pool_unit.pfp * npu.array.weight_bits)]),
            "pool_results": Rows(layers, _result_fields(npu, weights), read_at_once=True),
            "pool_scales": Rows(weights.scale_rows, scale_fields(npu)),
        }
    return memories


def _layer_fields(npu: Npu, pool_unit: PoolUnit) -> FieldWidths:
    """A layer to the pool unit's sequencer, which also knows where the layer's map goes."""
    index = pool_unit.index_bits
    ring = pool_unit.address_bits
    raster = npu.sequencer.raster
    return [
        *reading_fields(npu, index, ring, pool_unit.taps, pool_unit.olds, one_by_one=not raster),
        *way(npu),
        *([("average", 1)] if npu.engine == "integer" else []),
        *(counter_fields(ring) if raster else []),
        *(_kernel_fields(pool_unit.weights, raster) if pool_unit.weights else []),
    ]


def _kernel_fields(weights: PoolWeights, raster: bool) -> FieldWidths:
    """Which weights a layer's taps meet."""
    row = weights.row_bits
    fields = [("depthwise", 1), ("jump_base", bits_for(weights.jumps - 1)), ("start_row", row), ("kernel_base", row)]
    return [*fields, *(kernel_moves(row) if raster else [])]


def _result_fields(npu: Npu, weights: PoolWeights) -> FieldWidths:
    """A layer to what makes features of the pool unit's sums."""
    feature = npu.array.feature_bits
    base = bits_for(weights.scale_rows - 1)
    return [("depthwise", 1), ("scale_base", base), ("low", feature), ("high", feature), *rounding_fields(npu)]
