"""Rows of a lowered layer from its sums on: of the results unit, of thresholds or scales, of the pool's sequencer."""

from collections.abc import Mapping

import numpy as np

from bitloom.hls_gen.design.memories import ROUNDING
from bitloom.hls_gen.design.npu import Npu

from . import integer_rows as integer
from .binary_scales import check_steps, requantisation
from .layout import UNUSED, Layout, regroup, result_layout
from .lowered_layers import Depthwise, LoweredLayer, Multiply, Pooling, Thresholds, Xnor
from .map_way import MapWay
from .npu_plan import NpuPlan
from .schedule import StageTables
from .sum_rows import MapWords
from .tables import base, rows


def append_results(made: NpuPlan, p: LoweredLayer, pool: StageTables | None, its: MapWay, reader_lanes: int) -> Layout:
    """Append the rows of a lowered layer from its sums on.

    Parameters
    ----------
    made
        The plan of the NPU that computes the lowered layer.
    p
        The lowered layer.
    pool
        The schedule of its pool, None where it has none.
    its
        The way of its map.
    reader_lanes
        Lanes of the words that the map is made of: kfp of the NPU that reads it.

    Returns
    -------
    Layout
        Of what leaves for a window.

    Raises
    ------
    ValueError
        The lowered layer has a pool, the NPU has no pool unit.
    """
    folding = made.folding
    steps = result_layout(p.out_channels, p.levels, folding.kgp, folding.ol)
    to = {"target": folding.targets.index(its.target)} if len(folding.targets) > 1 else {}
    if folding.forks_maps:
        to |= {"forks": int(its.forks), "for_addition": int(its.adder is not None)}
    _append_activation(made, p, steps, {} if folding.pool else to)
    if p.raw:
        return steps
    words = steps
    if folding.pool:
        words = regroup(steps, folding.pfp)
        if pool:
            made.pool.append(pool, len(words))
        else:
            made.pool.append_straight(made.conv.layers[-1]["windows_minus_1"] + 1, len(words))
        made.pool.layers[-1] |= to
        if isinstance(p.arithmetic, Multiply):
            made.pool.layers[-1]["average"] = int(isinstance(p.pool, Pooling) and p.pool.average)
            if folding.depthwise:
                words = _append_depthwise(made, p.depthwise, words)
    return regroup(words, reader_lanes)


def _append_depthwise(made: NpuPlan, p: Depthwise | None, words: Layout) -> Layout:
    """Append the rows of a pool unit with weights for a layer with or without a depthwise convolution, whose tuples
    have ``words``. Returns the steps in which results leave."""
    npu, steps = made.folding, regroup(words, made.folding.ol)
    most = 1 << npu.feature_bits - 1
    row = {"depthwise": 0, "scale_base": 0, "low": -most, "high": most - 1, **dict.fromkeys(ROUNDING, 0)}
    base_row = rows(made.pool_kernels)
    if p is not None:
        scale = p.scale
        rounding = {"half_even": int(scale.rounding == "even"), "round_twice": int(scale.rounding == "twice")}
        base_of_scales = sum(len(columns["bias_0"]) for columns in made.pool_scales)
        row |= {"depthwise": 1, "scale_base": base_of_scales, "low": scale.low, "high": scale.high, **rounding}
        made.pool_kernels.append(integer.depthwise_kernels(p, words, npu.weight_bits))
        made.pool_scales.append(integer.scales(scale, steps))
        made.pool_fractions.append(scale.fraction)
    made.pool_results.append(row)
    made.pool.layers[-1] |= {"depthwise": int(p is not None), "kernel_base": 0 if p is None else base_row}
    return steps


def added_in_steps(words: Layout, steps: Layout) -> bool:
    """Whether words of a map in the skip store, cut into steps or put together to some, are the ``steps`` in which the
    results leave that it is added to."""
    (count, kfp), ol = words.shape, steps.shape[1]
    return count == -(-len(steps) * ol // kfp) and np.array_equal(regroup(words, ol)[: len(steps)], steps)


def check_added(p: LoweredLayer, maps: Mapping[str, MapWords], npu: Npu) -> None:
    """Raise ValueError unless the map that a lowered layer adds lies in the skip store as its results leave.

    A word is cut into steps, or some make one; what is left of a tuple's last word goes with the last step.
    """
    if npu.keeps_steps:
        check_steps(p, npu)
    if p.adds is None or npu.keeps_steps:
        return
    if not added_in_steps(maps[p.adds].layout, result_layout(p.out_channels, p.levels, npu.kgp, npu.ol)):
        pfp = f", pfp = {npu.pfp}" if npu.pool else ""
        raise ValueError(
            f"{p.name}: words of the map of {p.adds}, which it adds, must have the lanes of its results' steps, got "
            f"{p.out_channels} channels with kfp = {npu.kfp}, kgp = {npu.kgp}, ol = {npu.ol}{pfp}"
        )


def _append_activation(made: NpuPlan, p: LoweredLayer, steps: Layout, to: dict[str, int]) -> None:
    """Append the row of the results unit, thresholds and scales; ``to`` has the field that tells the map's outlet."""
    folding = made.folding
    groups = -(-p.out_channels // folding.kgp)
    last_group = p.out_channels - (groups - 1) * folding.kgp
    row = {
        "groups_minus_1": groups - 1,
        "last_units_minus_1": -(-last_group // folding.ol) - 1,
        "windows_minus_1": made.conv.layers[-1]["windows_minus_1"],
        "levels_minus_1": p.levels - 1,
        **({"raw": int(p.raw)} if "host" in folding.outlets else {}),
        **to,
    }
    if p.pool and not folding.pool:
        raise ValueError(f"{p.name}: a pool needs an NPU with a pool unit, got one without")
    if isinstance(p.arithmetic, Xnor):
        row["double"] = int(p.arithmetic.double)
    if folding.requantises:
        limits = np.zeros((0 if p.raw else len(steps), 0), np.int64)
        of = requantisation(p, steps)
        made.scales.append(of.columns)
        made.fractions.append(of.fraction)
        rounding = {"half_even": int(of.rounding == "even"), "round_twice": int(of.rounding == "twice")}
        row |= {"low": of.low, "high": of.high, **rounding}
        made.additions.append(p.addition)
    else:
        limits = np.zeros((0, folding.ol), np.int64)
        if isinstance(p.activation, Thresholds):
            limits = np.where(steps == UNUSED, p.sum_range[1] + 1, p.activation.limit.ravel()[steps])  # never reached
    made.results.append({**row, "threshold_base": base(made.thresholds, limits)})
    made.thresholds.append(limits)
