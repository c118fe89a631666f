"""Requantisation of an NPU's layers, in a binary NPU with a skip store too (docs/decisions/0022).

There a threshold T is the requantisation of x - T to -1 .. 0, of which the sign is the bit that x >= T is.
"""

from dataclasses import dataclass

import numpy as np

from bitloom.hls_gen.design.npu import Npu

from . import integer_rows as integer
from .layout import UNUSED, Ints, Layout, result_layout
from .lowered_layers import LoweredLayer, Thresholds, Xnor


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


def check_steps(p: LoweredLayer, npu: Npu) -> None:
    """ValueError unless the results of a binary layer whose bits are signs fill its steps: what is added to a lane that
    no channel has would have a sign, too, and a lane without a channel must be 0."""
    if not isinstance(p.arithmetic, Xnor) or p.scale is None:
        return
    if (result_layout(p.out_channels, 1, npu.kgp, npu.ol) == UNUSED).any():
        raise ValueError(
            f"{p.name}: channels of a map that is requantised must fill steps of ol = {npu.ol} results of kgp = "
            f"{npu.kgp} kernels, got {p.out_channels}"
        )
