"""Rows of the results unit: how results leave, thresholds or scales, tables of lookups, and additions.

In a binary NPU with a skip store a threshold T is the requantisation of x - T to -1 .. 0, of which the sign is the bit
that x >= T is (docs/decisions/0022).
"""

from collections.abc import Mapping

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.compiler.actions import Addition, Scale, Thresholds, UnitAction
from bitloom.hls_gen.compiler.layout import Layout
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer, Xnor
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.memories.results import fields_of, numbers_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import ADDITION, REQUANTISATION, Unit

from .layer_rows import Columns, row
from .ports import way_fields
from .stores import kept_fields


def result_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Rows of the results unit for a layer."""
    p = planned.layer
    npu = planned.npu
    fields = {
        "groups_minus_1": planned.groups - 1,
        "last_units_minus_1": planned.last_units - 1,
        "windows_minus_1": planned.on_array.counts.windows - 1,
        "levels_minus_1": p.levels - 1,
        **({"raw": int(p.raw)} if "host" in npu.ports.outlets else {}),
        **(way_fields(planned) if npu.gives_ways else {}),
        **({"pooled": int(p.pool is not None)} if npu.passes_by else {}),
        **({"adds": int(p.action(Addition) is not None), **kept_fields(planned)} if npu.has_skip else {}),
    }
    if isinstance(p.arithmetic, Xnor):
        fields["double"] = int(p.arithmetic.double)
    if not npu.requantises:
        return {"results": row(fields), "thresholds": {"thresholds": _limits(planned)}}
    actions = {action.unit.mark: action for action in p.actions if isinstance(action, UnitAction)}
    scales, of_layer = _requantisation(p, planned.steps, npu)
    fields |= numbers_of(npu, REQUANTISATION.of_layer, of_layer)
    rows = dict[str, Columns]()
    for unit in npu.results.feature_units:
        action = actions.get(unit.mark)
        fields |= {unit.mark: int(action is not None)}
        fields |= numbers_of(npu, unit.of_layer, action.of_layer if action else {})
        numbers = action.numbers(unit.of_channel) if action else None
        scales = {**scales, **channel_columns(unit, numbers, planned.steps[: 0 if p.raw else None], npu)}
        rows |= action.rows if action else {}
    rows |= {"results": row(fields), "scales": scales}
    if npu.has_skip:
        rows["additions"] = row(_addition_fields(p.action(Addition), npu))
    return rows


def channel_columns(unit: Unit, numbers: Mapping[str, Ints] | None, steps: Layout, npu: Npu) -> dict[str, Ints]:
    """Columns of memory ``scales`` that a unit has.

    Parameters
    ----------
    unit
        The unit.
    numbers
        By field, one for each result of the layer; None where the unit has nothing to do for the layer.
    steps
        (steps, ol) layout of the results.
    npu
        The NPU.
    """
    unused = numbers_of(npu, unit.of_channel, {})
    if numbers is None:
        return _in_steps({name: np.array([none]) for name, none in unused.items()}, np.full_like(steps, UNUSED))
    return _in_steps({name: np.append(numbers[name], none) for name, none in unused.items()}, steps)


def _in_steps(numbers: Mapping[str, Ints], steps: Layout) -> dict[str, Ints]:
    """Columns with a field for each lane. ``numbers`` are by field, one for each result of the layer, and last that of
    lanes without a result."""
    return {f"{name}_{lane}": all_[steps[:, lane]] for lane in range(steps.shape[1]) for name, all_ in numbers.items()}


def scale_columns(scale: Scale | None, steps: Layout, npu: Npu) -> dict[str, Ints]:
    """Columns of memory ``scales``, or of ``pool_scales``, by which sums are requantised.

    Parameters
    ----------
    scale
        Of a lowered layer, or of a depthwise convolution; None where sums are the result.
    steps
        (steps, ol) layout of the results.
    npu
        The NPU.

    Returns
    -------
    dict
        Name of a field -> its column, one row a step; no rows where the sums are the result.
    """
    if scale is None:
        return channel_columns(REQUANTISATION, None, steps[:0], npu)
    return channel_columns(REQUANTISATION, held_scales(scale.of_channel, npu, scale.fraction), steps, npu)


def held_scales(numbers: Mapping[str, Ints], npu: Npu, fraction: int) -> dict[str, Ints]:
    """Numbers of channels as an NPU holds them: shifts within its limit, multipliers if it has any.

    Where the NPU has k more bits behind the point than the ``fraction`` of the layer, sum and bias are 2^k times as
    large there, and so is the divisor: the quotient is the same, and so is its rounding.
    """
    more = npu.results.bias_fraction_bits - fraction
    shift = np.minimum(numbers["shift"] + more, npu.most_shift)
    held = {**numbers, "bias": numbers["bias"] << more, "shift": shift}
    return {name: held[name] for name, _ in fields_of(npu, REQUANTISATION.of_channel)}


def _requantisation(p: LoweredLayer, steps: Layout, npu: Npu) -> tuple[dict[str, Ints], dict[str, int]]:
    """How the sums of a lowered layer, whose results leave in ``steps``, are requantised: columns of memory ``scales``,
    and numbers of the layer."""
    if isinstance(p.activation, Thresholds):
        never = p.sum_range[1] + 1  # UNUSED: never reached
        return _threshold_columns(np.append(p.activation.limit, never), steps, npu), {"low": -1, "high": 0}
    ends = {"low": -1 if p.binary else 0, "high": 0}
    return scale_columns(p.scale, steps, npu), p.scale.of_layer if p.scale else ends


def _threshold_columns(limits: Ints, steps: Layout, npu: Npu) -> dict[str, Ints]:
    """Columns of memory ``scales`` by which sums become -1 where they are below these limits, else 0."""
    numbers = {"bias": -limits, "multiplier": np.ones_like(limits), "shift": np.zeros_like(limits)}
    return _in_steps(held_scales(numbers, npu, 0), steps)


def _limits(planned: PlannedLayer) -> Ints:
    """(steps, ol) thresholds of a layer; no rows where its sums or bits are the result."""
    activation = planned.layer.activation
    if not isinstance(activation, Thresholds):
        return np.zeros((0, planned.npu.results.ol), np.int64)
    never = planned.layer.sum_range[1] + 1
    return np.where(planned.steps == UNUSED, never, activation.limit.ravel()[planned.steps])


def _addition_fields(addition: Addition | None, npu: Npu) -> dict[str, int]:
    """Row of memory ``additions`` for a layer with this addition."""
    numbers = addition.of_layer if addition else {}
    fields = numbers_of(npu, ADDITION.of_layer, numbers)
    return fields | {"shift": min(fields["shift"], npu.most_add_shift)}
