"""Rows of the results unit: how results leave, thresholds or scales, tables of lookups, and additions."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.compiler.actions import ActivationAction, Addition, UnitAction
from bitloom.hls_gen.compiler.layout import WordLayout
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.compiler.ranges import Range
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.memories.results import numbers_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import ADDITION, SUMS, Unit

from .layer_rows import Columns, row
from .ports import way_fields


def result_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Rows of the results unit for a layer."""
    layer = planned.layer
    npu = planned.npu
    steps = planned.activation_steps
    fields = {
        "groups_minus_1": planned.groups - 1,
        "last_units_minus_1": planned.last_units - 1,
        "windows_minus_1": planned.on_array.counts.windows - 1,
        "levels_minus_1": layer.levels - 1,
        **way_fields(planned),
        "pooled": int(layer.pool is not None),
        "adds": int(layer.action(Addition) is not None),
        "keeps": int(planned.way.adder is not None),
        "double": int(layer.arithmetic.double),
        **numbers_of(npu, {**SUMS.of_layer, **npu.results.activation.of_layer}, layer.activation.of_layer),
    }
    actions = {action.unit.mark: action for action in layer.actions if isinstance(action, UnitAction)}
    constants = activation_columns(npu.results.activation, layer.activation, layer.sum_range, steps, npu)
    rows = dict[str, Columns]()
    for unit in npu.results.feature_units:
        action = actions.get(unit.mark)
        fields |= {unit.mark: int(action is not None)}
        fields |= numbers_of(npu, unit.of_layer, action.of_layer if action else {})
        numbers = action.numbers(unit.of_channel) if action else {}
        constants |= _channel_columns(unit, numbers, {}, steps, npu)
        rows |= action.rows if action else {}
    known = memory_of(npu, "results").widths
    rows |= {
        "results": row({name: value for name, value in fields.items() if name in known}),
        npu.results.activation.memory: constants,
    }
    if npu.has_skip:
        rows["additions"] = row(_addition_fields(layer.action(Addition), npu))
    return rows


def activation_columns(
    unit: Unit, activation: ActivationAction, sums: Range, steps: WordLayout, npu: Npu
) -> dict[str, Ints]:
    """Columns of the memory of an activation, the results unit's or that of a pool unit with weights.

    Parameters
    ----------
    unit
        The activation's numbers.
    activation
        Of a lowered layer, or of a depthwise convolution.
    sums
        Smallest and largest sum.
    steps
        (steps, ol) layout of the results that have a row.
    npu
        The NPU.

    Returns
    -------
    dict
        Name of a field -> its column, one row a step.
    """
    of_channel, unused = (
        _held_numbers(numbers, npu, activation.fraction) for numbers in (activation.of_channel, activation.unused(sums))
    )
    return _channel_columns(unit, of_channel, unused, steps, npu)


def _channel_columns(
    unit: Unit, numbers: Mapping[str, Ints], unused: Mapping[str, int], steps: WordLayout, npu: Npu
) -> dict[str, Ints]:
    """Columns of the activation's memory that a unit has.

    Parameters
    ----------
    unit
        The unit.
    numbers
        By field, one for each result of the layer; none where the unit has nothing to do for the layer.
    unused
        Numbers of lanes without a result, by field; others are `Column.none`.
    steps
        (steps, ol) layout of the results.
    npu
        The NPU.
    """
    columns = dict[str, Ints]()
    for name, none in numbers_of(npu, unit.of_channel, unused).items():
        each = np.append(numbers[name], none)[steps] if numbers else np.full(steps.shape, none)
        if unit.of_channel[name].together:
            columns[name] = each
        else:
            columns |= {f"{name}_{lane}": each[:, lane] for lane in range(steps.shape[1])}
    return columns


def _held_numbers(numbers: Mapping[str, Any], npu: Npu, fraction: int) -> dict[str, Any]:
    """Numbers of channels, or of a lane, as an NPU holds them: with its bits of biases behind the point, and shifts
    within its limit.

    Where the NPU has k more bits behind the point than the ``fraction`` of the layer, sum and bias are 2^k times as
    large there, and so is the divisor: the quotient is the same, and so is its rounding.
    """
    if not npu.requantises or "bias" not in numbers:
        return dict(numbers)
    more = npu.requantisation.bias_fraction_bits - fraction
    shift = np.minimum(numbers["shift"] + more, npu.most_shift)
    return {**numbers, "bias": numbers["bias"] << more, "shift": shift}


def _addition_fields(addition: Addition | None, npu: Npu) -> dict[str, int]:
    """Row of memory ``additions`` for a layer with this addition."""
    numbers = addition.of_layer if addition else {}
    fields = numbers_of(npu, ADDITION.of_layer, numbers)
    return fields | {"shift": min(fields["shift"], npu.most_add_shift)}
