"""Memories of the results unit: what it needs of each layer, thresholds or scales, tables, and additions of maps.

    kept * factor_kept + skipped * factor_skipped + bias --> / 2^shift, rounded --> clipped to low..high
    kept * skipped * factor_skipped +- bias              --> the same, where the layer multiplies

*Kept* is the layer's own result, *skipped* the map that waits in the skip store (hls_gen/rtl/results/addition.py).
Golden twin: golden/layers/add.py.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from operator import attrgetter

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import ADDITION, SUMS, Column, FeatureUnit, Unit
from bitloom.hls_gen.design.widths import bits_for

from .memory import FieldWidths, Rows


def results_memories(npu: Npu) -> dict[str, Rows]:
    """Memory ``results``; that of the activation; those of the feature units; ``additions`` where there is a skip
    store."""
    memories = {
        "results": Rows(npu.loader.layers, _layer_fields(npu), read_at_once=True),
        npu.results.activation.memory: Rows(
            npu.results.threshold_rows,
            lane_fields(npu, npu.results.activation, *npu.results.feature_units),
            counted_as="threshold_rows",
            based_by=("results", "threshold_base"),
        ),
    }
    for unit in npu.results.feature_units:
        if unit.table:
            memories[unit.table.memory] = Rows(
                npu.value(unit.capacity),
                fields_of(npu, unit.table.columns),
                counted_as=unit.capacity,
                based_by=("results", unit.table.base),
                copies=npu.results.ol,
            )
    if npu.stores.skip:
        memories["additions"] = Rows(npu.loader.layers, fields_of(npu, ADDITION.of_layer), read_at_once=True)
    return memories


def fields_of(npu: Npu, columns: Mapping[str, Column]) -> FieldWidths:
    """The fields that an NPU has for some columns."""
    return [(name, width) for name, column in columns.items() if (width := _number(npu, column.bits))]


def _number(npu: Npu, number: int | str) -> int:
    """A number of a `Column`."""
    return int(_attribute(number)(npu)) if isinstance(number, str) else number


_attribute = cache(attrgetter)


def lane_fields(npu: Npu, *units: Unit) -> FieldWidths:
    """The fields of a row by which OL sums become features: what units have of each channel."""
    ol = npu.results.ol
    fields = [(unit.of_channel[name], name, width) for unit in units for name, width in fields_of(npu, unit.of_channel)]
    together = [(name, ol * width) for column, name, width in fields if column.together]
    apart = tuple((name, width) for column, name, width in fields if not column.together)
    return [*together, *_of_lanes(ol, apart)]


@lru_cache(maxsize=1024)
def _of_lanes(ol: int, fields: tuple[tuple[str, int], ...]) -> FieldWidths:
    """The fields of each of ``ol`` lanes, lane after lane: ``bias`` is ``bias_0``, ``bias_1`` and so on. A search makes
    the same fields for many NPUs."""
    return [(f"{name}_{lane}", width) for lane in range(ol) for name, width in fields]


def _layer_fields(npu: Npu) -> FieldWidths:
    """A layer to the results unit."""
    return [
        ("groups_minus_1", bits_for(npu.sequencer.groups - 1)),
        ("last_units_minus_1", bits_for(npu.group_steps - 1)),
        ("windows_minus_1", bits_for(npu.sequencer.windows - 1)),
        ("levels_minus_1", bits_for(npu.results.levels - 1)),
        ("threshold_base", bits_for(npu.results.threshold_rows - 1)),
        *fields_of(npu, SUMS.of_layer),
        *(npu.way_fields if npu.gives_ways else ()),
        *([("pooled", 1)] if npu.passes_by else []),
        *addition_marks(npu),
        *([("double", 1)] if npu.array.offset_bits else []),
        *fields_of(npu, npu.results.activation.of_layer),
        *(field for unit in npu.results.feature_units for field in _unit_fields(npu, unit)),
    ]


def _unit_fields(npu: Npu, unit: FeatureUnit) -> FieldWidths:
    """A layer to a feature unit: whether the layer is of its kind, where its rows begin, and its numbers."""
    base = [(unit.table.base, bits_for(npu.value(unit.capacity) - 1))] if unit.table else []
    return [(unit.mark, 1), *base, *fields_of(npu, unit.of_layer)]


def addition_marks(npu: Npu) -> FieldWidths:
    """Marks of each step of a layer for the addition, with their widths: whether something is added to the step, and in
    a binary NPU whether the step is kept in the skip store. No marks without a skip store."""
    if not npu.has_skip:
        return []
    return [("adds", 1), *([("keeps", 1)] if npu.keeps_steps else [])]


def number_bits(npu: Npu) -> int:
    """Width of a layer's number, which steps have with them where there is an addition."""
    return bits_for(npu.loader.layers - 1)


def added_side_bits(npu: Npu) -> int:
    """Side bits of a step that the addition alone looks at, above those of `Npu.result_side_bits`; 0 without one."""
    return number_bits(npu) + sum(w for _, w in addition_marks(npu)) if npu.has_skip else 0


def numbers_of(npu: Npu, columns: Mapping[str, Column], numbers: Mapping[str, int]) -> dict[str, int]:
    """The numbers of one row, by the fields that an NPU has for some columns.

    Parameters
    ----------
    npu
        The NPU.
    columns
        By field.
    numbers
        By field; others are those with which the unit has nothing to do.
    """
    return {name: numbers.get(name, _number(npu, columns[name].none)) for name, _ in fields_of(npu, columns)}
