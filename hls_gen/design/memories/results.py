"""Memories of the results unit: what it needs of each layer, thresholds or scales, tables, and additions of maps.

    kept * factor_kept + skipped * factor_skipped + bias --> / 2^shift, rounded --> clipped to low..high
    kept * skipped * factor_skipped +- bias              --> the same, where the layer multiplies

*Kept* is the layer's own result, *skipped* the map that waits in the skip store (hls_gen/rtl/results/addition.py).
Golden twin: golden/layers/add.py.
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import FeatureUnit
from bitloom.hls_gen.design.stores import SkipStore
from bitloom.hls_gen.design.widths import bits_for

from .memory import FieldWidths, Rows
from .ports import way

ROUNDING = ("half_even", "round_twice")
"""How a layer rounds, each in NPUs alone that have the capacity of the same name."""


def results_memories(npu: Npu) -> dict[str, Rows]:
    """Memory ``results``; ``scales`` in an NPU that requantises sums, else ``thresholds``; those of the
    feature units; ``additions`` where there is a skip store."""
    name, fields = feature_memory(npu)
    memories = {
        "results": Rows(npu.loader.layers, _layer_fields(npu), read_at_once=True),
        name: Rows(
            npu.results.threshold_rows,
            fields,
            counted_as="threshold_rows",
            based_by=("results", "threshold_base"),
        ),
    }
    for unit in npu.results.feature_units:
        if unit.table:
            memories[unit.table.memory] = Rows(
                npu.value(unit.capacity),
                [(column, npu.value_bits) for column in unit.table.columns],
                counted_as=unit.capacity,
                based_by=("results", unit.table.base),
                copies=npu.results.ol,
            )
    if npu.stores.skip:
        memories["additions"] = Rows(npu.loader.layers, _addition_fields(npu, npu.stores.skip), read_at_once=True)
    return memories


def feature_memory(npu: Npu) -> tuple[str, FieldWidths]:
    """Name and fields of the memory by which sums become features: scales, or thresholds."""
    if npu.requantises:
        return "scales", scale_fields(npu)
    return "thresholds", [("thresholds", npu.results.ol * npu.array.acc_bits)]


def scale_fields(npu: Npu) -> FieldWidths:
    """How OL sums become features: bias, multiplier and shift of each."""
    multiplier = [("multiplier", npu.results.multiplier_bits)] if npu.results.multiplier_bits else []  # none: all are 1
    fields = [("bias", npu.biased_bits), *multiplier, ("shift", npu.scale_shift_bits)]
    return [(f"{name}_{lane}", width) for lane in range(npu.results.ol) for name, width in fields]


def rounding_fields(npu: Npu) -> FieldWidths:
    """How a layer rounds."""
    return [(name, 1) for name in ROUNDING if npu.value(name)]


def _layer_fields(npu: Npu) -> FieldWidths:
    """A layer to the results unit."""
    return [
        ("groups_minus_1", bits_for(npu.sequencer.groups - 1)),
        ("last_units_minus_1", bits_for(npu.units - 1)),
        ("windows_minus_1", bits_for(npu.sequencer.windows - 1)),
        ("levels_minus_1", bits_for(npu.results.levels - 1)),
        ("threshold_base", bits_for(npu.results.threshold_rows - 1)),
        *([("raw", 1)] if "host" in npu.ports.outlets else []),
        *(way(npu) if npu.gives_ways else []),
        *([("pooled", 1)] if npu.passes_by else []),
        *addition_marks(npu),
        *([("double", 1)] if npu.engine == "binary" else []),
        *([("low", npu.value_bits), ("high", npu.value_bits)] if npu.requantises else []),
        *(rounding_fields(npu) if npu.requantises else []),
        *(field for unit in npu.results.feature_units for field in _unit_fields(npu, unit)),
    ]


def _unit_fields(npu: Npu, unit: FeatureUnit) -> FieldWidths:
    """A layer to a feature unit: whether the layer is of its kind, and where its rows begin."""
    return [(unit.mark, 1), *([(unit.table.base, bits_for(npu.value(unit.capacity) - 1))] if unit.table else [])]


def addition_marks(npu: Npu) -> FieldWidths:
    """What is said to the addition with each step of a layer: whether something is added to it, and in a binary NPU
    whether it is kept in the skip store. None without a skip store."""
    if not npu.has_skip:
        return []
    return [("adds", 1), *([("keeps", 1)] if npu.keeps_steps else [])]


def _addition_fields(npu: Npu, skip: SkipStore) -> FieldWidths:
    """A layer to the addition. Fields are in two's complement, but for ``multiplies`` and ``shift``."""
    return [
        *([("multiplies", 1)] if npu.multiplies_maps else []),
        ("factor_kept", skip.factor_bits),
        ("factor_skipped", skip.factor_bits),
        ("bias", skip.bias_bits),
        ("shift", npu.add_shift_bits),
        ("low", npu.value_bits),
        ("high", npu.value_bits),
    ]


def passing(npu: Npu) -> dict[str, int]:
    """Row of a layer that adds nothing: its results are multiplied by 1, so that they leave as they came.

    Parameters
    ----------
    npu
        An NPU with a skip store.

    Returns
    -------
    dict of str to int
        All fields of the row by name.
    """
    low = -1 << npu.value_bits - 1
    fields = {"factor_kept": 1, "factor_skipped": 0, "bias": 0, "shift": 0, "low": low, "high": ~low}
    return {**fields, "multiplies": 0} if npu.multiplies_maps else fields
