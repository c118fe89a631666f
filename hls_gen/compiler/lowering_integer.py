"""Layers as the integer engine computes them (spec B11, B14; hls_gen/compiler/lowered_layers.py).

Requantised layers stay as they are; unsigned features of b bits are signed ones of b + 1 bits to the engine. Layers
that read from the binary engine, or give to it, are rewritten, exactly (tests/hls_gen/compiler/test_lowering_kinds.py):

* *thresholds* become signs: x >= T is x - T not negative, so the bias is -T, nothing is scaled, and the bit that
  leaves, 1 where negative, is the complement; x <= T is x - (T + 1) negative. Clipped to -1..0, a maximum keeps this
  true, but for x <= T before a max pool: there the kernel's weights change sign. k thresholds are k results a kernel.
* *bits* are read as +-1: a weight is repeated for each bit of a thermometer, and changes sign where the bit is a
  complement.
"""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import product_range
from bitloom.golden.layers.grouped import grouped_weights
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model

from .actions import Action, Depthwise, Scale, Sign, Thresholds, actions_of
from .depthwise import plain_of
from .lowered_layers import LoweredLayer, Multiply
from .pools import canonical
from .ranges import Range
from .segments import Segment
from .workloads import Workload

SIGN_RANGE = (-1, 0)
"""Smallest and largest integer that stands for a sign: -1 where negative."""


def integer_layer(model: Model, workload: Workload, inverted: Array) -> tuple[LoweredLayer, Array]:
    """Rewrite one workload.

    Parameters
    ----------
    model : Model
        Gives the arrays.
    workload : Workload
        With a segment.
    inverted : (bits,) bool
        Which of the bits that the workload reads are complements; of no meaning where it reads integers.

    Returns
    -------
    LoweredLayer
    (bits,) bool
        Which of the bits that the lowered layer makes are complements; empty where it makes integers.

    Raises
    ------
    ValueError
        If a weight has to change sign and then doesn't fit the engine's weights.
    """
    segment = workload.segment
    assert segment is not None
    turned = _turned(model, segment)
    weight = _weights(model, segment, inverted)
    if turned.any():
        weight = np.where(turned[:, None, None], -weight, weight)
    if weight.max() >= 1 << (workload.engine.weight_bits - 1):
        most = f"{workload.engine.weight_bits} bits in two's complement"
        raise ValueError(f"{workload.name}: weights that change sign must fit {most}, got {weight.max()}")
    sum_range = _sum_range(segment)
    actions = actions_of(model, workload, segment.tail)
    if segment.depthwise is not None:
        actions.append(_depthwise(model, workload, canonical(segment.depthwise)))
    act = segment.behind_sums(Threshold)
    complement = np.zeros(0, bool)
    if act is not None:
        actions = _signs(actions, turned, sum_range)
        complement = np.repeat(turned | (model.arrays[act.name]["direction"] > 0), act.levels)
    return LoweredLayer.of(workload, Multiply(weight=weight), actions, sum_range), complement


def _depthwise(model: Model, workload: Workload, segment: Segment) -> Depthwise:
    """The action of the pool unit where the depthwise convolution of ``segment`` is fused with the workload."""
    (scale,) = actions_of(model, workload, segment.tail)
    assert isinstance(scale, Scale)
    channels = segment.layer.out_channels
    weight = grouped_weights(plain_of(model, segment), channels).reshape(channels, -1).T  # (taps, channels)
    low, high = product_range(segment.source.encoding, segment.layer.weight)
    sum_range = min(low * len(weight), 0), max(high * len(weight), 0)
    window = segment.layer.window(segment.source)
    return Depthwise(name=segment.name, window=window, weight=weight, scale=scale, sum_range=sum_range)


def copy(workload: Workload) -> LoweredLayer:
    """A copy of a map of integers: kernels are unit vectors."""
    assert workload.values is not None
    low, high = workload.values
    zeros = np.zeros((workload.out_channels, 1), np.int64)
    arithmetic = Multiply(weight=np.eye(workload.out_channels, dtype=np.int64)[:, None])
    scale = Scale(bias=zeros, multiplier=zeros + 1, shift=zeros, low=low, high=high)
    return LoweredLayer.of(workload, arithmetic, [scale], (min(low, 0), max(high, 0)))


def _weights(model: Model, segment: Segment, inverted: Array) -> Array:
    """Weights (O, taps, C) for the map as the engine reads it: bits as +-1, some of which are ``inverted``."""
    layer = segment.layer
    source = segment.source
    weight: Array = plain_of(model, segment).reshape(layer.out_channels, -1, source.channels)
    if source.encoding.kind == "bipolar":
        weight = np.where(inverted, -1, 1) * np.repeat(weight, source.encoding.bits, axis=2)
    return weight


def _turned(model: Model, segment: Segment) -> Array:
    """Which kernels change sign: those that pool bits of x <= T."""
    act = segment.behind_sums(Threshold)
    if act is None or not isinstance(segment.tail[-1], MaxPool):
        return np.zeros(segment.layer.out_channels, bool)
    turned: Array = model.arrays[act.name]["direction"] < 0
    return turned


def _sum_range(segment: Segment) -> Range:
    """Smallest and largest sum, whichever kernels change sign."""
    low, high = segment.accumulator_range
    if segment.behind_sums(Threshold) is not None and isinstance(segment.tail[-1], MaxPool):
        return min(low, -high), max(high, -low)
    return low, high


def _signs(actions: list[Action], turned: Array, sum_range: Range) -> list[Action]:
    """The actions with the thresholds as signs: a scale whose results are below 0 where a sum is below its limit, and
    behind the pool, if there is one, the sign."""
    thresholds, *others = actions
    assert isinstance(thresholds, Thresholds)
    limits = thresholds.turned(turned, sum_range).limit
    low, high = SIGN_RANGE
    scale = Scale(bias=-limits, multiplier=limits * 0 + 1, shift=limits * 0, low=low, high=high)
    return [scale, *others, Sign(negative=True)]
