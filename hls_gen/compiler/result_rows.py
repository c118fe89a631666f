"""Rows of a lowered layer from its sums on: of the results unit, of thresholds or scales, of the pool's sequencer."""

import numpy as np

from . import integer_rows as integer
from .layout import UNUSED, Layout, regroup, result_layout
from .lowered_layers import BinaryLayer, IntegerLayer
from .npu_plan import NpuPlan
from .schedule import StageTables
from .tables import base


def append_results(
    made: NpuPlan, p: BinaryLayer | IntegerLayer, pool: StageTables | None, target: str, reader_lanes: int
) -> Layout:
    """Append the rows of a lowered layer from its sums on.

    Parameters
    ----------
    made
        The plan of the NPU that computes the lowered layer.
    p
        The lowered layer.
    pool
        The schedule of its pool, None where it has none.
    target
        The outlet by which its map leaves.
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
    windows = made.conv.layers[-1]["windows_minus_1"] + 1
    steps = result_layout(p.out_channels, p.levels, folding.kgp, folding.ol)
    to = {"target": folding.outlets.index(target)} if len(folding.outlets) > 1 else {}
    _append_activation(made, p, steps, {} if folding.pool else to)
    if p.raw:
        return steps
    words = steps
    if folding.pool:
        words = regroup(steps, folding.pfp)
        if pool:
            made.pool.append(pool, len(words))
        else:
            made.pool.append_straight(windows, len(words))
        made.pool.layers[-1] |= to
        if isinstance(p, IntegerLayer):
            made.pool.layers[-1]["average"] = int(p.average)
        windows = made.pool.layers[-1]["windows_minus_1"] + 1
    out = regroup(words, reader_lanes)
    if target == "loop":
        made.map_words = max(made.map_words, windows * len(out))
    return out


def _append_activation(made: NpuPlan, p: BinaryLayer | IntegerLayer, steps: Layout, to: dict[str, int]) -> None:
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
    if isinstance(p, BinaryLayer):
        limits = np.zeros((0, folding.ol), np.int64)
        if p.threshold is not None:
            limits = np.where(steps == UNUSED, p.value_range[1] + 1, p.threshold.ravel()[steps])  # never reached
        row["double"] = int(p.double)
    else:
        limits = np.zeros((0 if p.raw else len(steps), 0), np.int64)
        made.scales.append(integer.scales(p, steps))
        made.fractions.append(p.fraction)
        rounding = {"half_even": int(p.rounding == "even"), "round_twice": int(p.rounding == "twice")}
        row |= {"low": p.low, "high": p.high, **rounding}
    made.results.append({**row, "threshold_base": base(made.thresholds, limits)})
    made.thresholds.append(limits)
