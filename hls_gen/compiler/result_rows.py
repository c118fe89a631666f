"""Rows of a lowered layer from its sums on: of the results unit, of thresholds or scales, of the pool's sequencer.

In a binary NPU with a skip store a threshold T is the requantisation of x - T to -1 .. 0, of which the sign is the bit
that x >= T is (docs/decisions/0022).
"""

from dataclasses import dataclass

import numpy as np

from bitloom.hls_gen.design.memories import ROUNDING

from . import integer_rows as integer
from .layout import UNUSED, Ints, Layout
from .lowered_layers import LoweredLayer, Multiply, Pooling, Thresholds, Xnor
from .npu_plan import NpuPlan
from .planned_layer import PlannedLayer
from .tables import base, rows


@dataclass(frozen=True)
class RequantisedSteps:
    """How the sums of a layer are requantised.

    Attributes
    ----------
    columns : dict of str to array
        Columns of memory ``scales``, as `integer_rows.scales` makes them.
    fraction, rounding, low, high
        As of `lowered_layers.Scale`.
    """

    columns: dict[str, Ints]
    low: int
    high: int
    fraction: int = 0
    rounding: str = "once"


def requantisation(p: LoweredLayer, steps: Layout) -> RequantisedSteps:
    """How the sums of a lowered layer are requantised in an NPU that does so.

    Parameters
    ----------
    p
        The lowered layer.
    steps
        (steps, ol) layout of its results.

    Returns
    -------
    RequantisedSteps
    """
    binary = isinstance(p.arithmetic, Xnor)
    if isinstance(p.activation, Thresholds):
        columns = _threshold_columns(np.append(p.activation.limit, p.sum_range[1] + 1), steps)  # UNUSED: never reached
        return RequantisedSteps(columns, -1, 0)
    columns = integer.scales(p.activation, steps)
    if p.activation is None:
        return RequantisedSteps(columns, -1 if binary else 0, 0)
    of = p.activation
    return RequantisedSteps(columns, of.low, of.high, of.fraction, of.rounding)


def _threshold_columns(limits: Ints, steps: Layout) -> dict[str, Ints]:
    """Columns of memory ``scales`` by which sums become -1 where they are below these limits, else 0."""
    columns: dict[str, Ints] = {}
    for lane in range(steps.shape[1]):
        own = limits[steps[:, lane]]
        columns |= {f"bias_{lane}": -own, f"multiplier_{lane}": own * 0 + 1, f"shift_{lane}": own * 0}
    return columns


def append_results(made: NpuPlan, planned: PlannedLayer) -> None:
    """Append the rows of a layer from its sums on to those of its NPU."""
    p = planned.layer
    npu = planned.npu
    way = planned.way
    to = {"target": npu.targets.index(way.target)} if len(npu.targets) > 1 else {}
    if npu.forks_maps:
        to |= {"forks": int(way.forks), "for_addition": int(way.adder is not None)}
    _append_activation(made, planned, {} if npu.pool else to)
    if npu.keeps_steps:
        made.kept.append(way.adder is not None)
    if p.raw or not npu.pool:
        return
    if planned.pool:
        made.pool.append(planned.pool, len(planned.pooled))
    else:
        made.pool.append_straight(planned.taps.windows, len(planned.pooled))
    made.pool.layers[-1] |= to
    if isinstance(p.arithmetic, Multiply):
        made.pool.layers[-1]["average"] = int(isinstance(p.pool, Pooling) and p.pool.average)
        if npu.depthwise:
            _append_depthwise(made, planned)


def _append_depthwise(made: NpuPlan, planned: PlannedLayer) -> None:
    """Append the rows of a pool unit with weights for a layer with or without a depthwise convolution."""
    p = planned.layer.depthwise
    npu = planned.npu
    most = 1 << npu.feature_bits - 1
    row = {"depthwise": 0, "scale_base": 0, "low": -most, "high": most - 1, **dict.fromkeys(ROUNDING, 0)}
    base_row = rows(made.pool_kernels)
    if p is not None:
        scale = p.scale
        rounding = {"half_even": int(scale.rounding == "even"), "round_twice": int(scale.rounding == "twice")}
        base_of_scales = sum(len(columns["bias_0"]) for columns in made.pool_scales)
        row |= {"depthwise": 1, "scale_base": base_of_scales, "low": scale.low, "high": scale.high, **rounding}
        made.pool_kernels.append(integer.depthwise_kernels(p, planned.pooled, npu.weight_bits))
        made.pool_scales.append(integer.scales(scale, planned.scale_steps))
        made.pool_fractions.append(scale.fraction)
    made.pool_results.append(row)
    made.pool.layers[-1] |= {"depthwise": int(p is not None), "kernel_base": 0 if p is None else base_row}


def _append_activation(made: NpuPlan, planned: PlannedLayer, to: dict[str, int]) -> None:
    """Append the row of the results unit, thresholds and scales; ``to`` has the field that tells the map's outlet."""
    p = planned.layer
    npu = planned.npu
    steps = planned.steps
    row = {
        "groups_minus_1": planned.groups - 1,
        "last_units_minus_1": planned.last_units - 1,
        "windows_minus_1": planned.taps.windows - 1,
        "levels_minus_1": p.levels - 1,
        **({"raw": int(p.raw)} if "host" in npu.outlets else {}),
        **to,
    }
    if isinstance(p.arithmetic, Xnor):
        row["double"] = int(p.arithmetic.double)
    if npu.requantises:
        limits = np.zeros((0 if p.raw else len(steps), 0), np.int64)
        of = requantisation(p, steps)
        made.scales.append(of.columns)
        made.fractions.append(of.fraction)
        rounding = {"half_even": int(of.rounding == "even"), "round_twice": int(of.rounding == "twice")}
        row |= {"low": of.low, "high": of.high, **rounding}
        made.additions.append(p.addition)
    else:
        limits = np.zeros((0, npu.ol), np.int64)
        if isinstance(p.activation, Thresholds):
            limits = np.where(steps == UNUSED, p.sum_range[1] + 1, p.activation.limit.ravel()[steps])  # never reached
    made.results.append({**row, "threshold_base": base(made.thresholds, limits)})
    made.thresholds.append(limits)
