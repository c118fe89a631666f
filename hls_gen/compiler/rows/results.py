"""Rows of the results unit: how results leave, thresholds or scales, tables of lookups, and additions.

In a binary NPU with a skip store a threshold T is the requantisation of x - T to -1 .. 0, of which the sign is the bit
that x >= T is (docs/decisions/0022).
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.compiler.actions import Addition, Scale, Thresholds, UnitAction
from bitloom.hls_gen.compiler.layout import Layout
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer, Xnor
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.memories.results import ROUNDING, passing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import SHIFT_BITS

from .layer_rows import Columns, row
from .ports import way_fields
from .stores import kept_fields

SCALES = {"bias": 0, "multiplier": 1, "shift": 1 << SHIFT_BITS + 1}
"""Fields that memory ``scales`` has for each lane, and their values in lanes without a kernel: there every sum becomes
0, as the binary engine needs it in lanes without a channel. The shift is larger than that of any NPU: `held_scales`
takes the NPU's largest."""


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
    scaling = _requantisation(p, planned.steps, npu)
    fields |= {"low": scaling.low, "high": scaling.high, **rounding_fields(scaling.rounding, npu)}
    actions = {action.unit.mark: action for action in p.actions if isinstance(action, UnitAction)}
    fields |= {unit.mark: int(unit.mark in actions) for unit in npu.results.feature_units}
    rows: dict[str, Columns] = {"results": row(fields), "scales": scaling.columns}
    for action in actions.values():
        rows |= action.rows
    if npu.has_skip:
        rows["additions"] = row(_addition_fields(p.action(Addition), npu))
    return rows


def rounding_fields(rounding: str, npu: Npu) -> dict[str, int]:
    """Fields that say how a layer rounds, as far as the NPU has them."""
    fields = {"half_even": int(rounding == "even"), "round_twice": int(rounding == "twice")}
    return {name: fields[name] for name in ROUNDING if npu.value(name)}


def scale_columns(scale: Scale | None, steps: Layout, npu: Npu) -> Columns:
    """Columns of memory ``scales``, or of ``pool_scales``.

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
        none = np.zeros(0, np.int64)
        return held_scales({f"{name}_{lane}": none for lane in range(steps.shape[1]) for name in SCALES}, npu, 0)
    parts = (scale.bias, *scale.factors)
    columns = {
        f"{name}_{lane}": np.append(array, unused)[steps[:, lane]]
        for lane in range(steps.shape[1])
        for (name, unused), array in zip(SCALES.items(), parts)
    }
    return held_scales(columns, npu, scale.fraction)


def held_scales(columns: Columns, npu: Npu, fraction: int) -> Columns:
    """Columns as an NPU holds them: shifts within its limit, multipliers if it has any.

    Where the NPU has k more bits behind the point than the ``fraction`` of the layer, sum and bias are 2^k times as
    large there, and so is the divisor: the quotient is the same, and so is its rounding.
    """
    more = npu.results.bias_fraction_bits - fraction
    held = dict[str, Ints]()
    for name, column in columns.items():
        if name.startswith("bias_"):
            held[name] = column << more
        elif name.startswith("shift_"):
            held[name] = np.minimum(column + more, npu.most_shift)
        elif npu.results.multiplier_bits:
            held[name] = column
    return held


@dataclass(frozen=True, eq=False)
class _Requantisation:
    """How the sums of a layer are requantised."""

    columns: Columns
    """Of memory ``scales``."""
    low: int
    high: int
    rounding: str = "once"
    """low, high, rounding: as of `bitloom.hls_gen.compiler.actions.Scale`."""


def _requantisation(p: LoweredLayer, steps: Layout, npu: Npu) -> _Requantisation:
    """How the sums of a lowered layer, whose results leave in ``steps``, are requantised in an NPU that does so."""
    if isinstance(p.activation, Thresholds):
        never = p.sum_range[1] + 1  # UNUSED: never reached
        return _Requantisation(_threshold_columns(np.append(p.activation.limit, never), steps, npu), -1, 0)
    columns = scale_columns(p.scale, steps, npu)
    if p.scale is None:
        return _Requantisation(columns, -1 if p.binary else 0, 0)
    return _Requantisation(columns, p.scale.low, p.scale.high, p.scale.rounding)


def _threshold_columns(limits: Ints, steps: Layout, npu: Npu) -> Columns:
    """Columns of memory ``scales`` by which sums become -1 where they are below these limits, else 0."""
    columns = dict[str, Ints]()
    for lane in range(steps.shape[1]):
        of_lane = limits[steps[:, lane]]
        columns |= {f"bias_{lane}": -of_lane, f"multiplier_{lane}": of_lane * 0 + 1, f"shift_{lane}": of_lane * 0}
    return held_scales(columns, npu, 0)


def _limits(planned: PlannedLayer) -> Ints:
    """(steps, ol) thresholds of a layer; no rows where its sums or bits are the result."""
    activation = planned.layer.activation
    if not isinstance(activation, Thresholds):
        return np.zeros((0, planned.npu.results.ol), np.int64)
    never = planned.layer.sum_range[1] + 1
    return np.where(planned.steps == UNUSED, never, activation.limit.ravel()[planned.steps])


def _addition_fields(addition: Addition | None, npu: Npu) -> dict[str, int]:
    """Row of memory ``additions`` for a layer with this addition."""
    if addition is None:
        return passing(npu)
    return {
        **passing(npu),
        "factor_kept": addition.factor_kept,
        "factor_skipped": addition.factor_added,
        "bias": addition.bias,
        "shift": min(addition.shift, npu.most_add_shift),
        "low": addition.low,
        "high": addition.high,
        **({"multiplies": int(addition.multiplies)} if npu.multiplies_maps else {}),
    }
