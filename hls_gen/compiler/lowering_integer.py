"""Layers as the integer engine computes them (spec B11, B14; hls_gen/compiler/lowered_layers.py).

Requantised layers stay as they are; unsigned features of b bits are signed ones of b + 1 bits to the engine. Layers
that read from the binary engine, or give to it, are rewritten, exactly (tests/hls_gen/compiler/test_lowering_kinds.py):

* *thresholds* become signs: x >= T is x - T not negative, so the bias is -T, nothing is scaled, and the bit that
  leaves, 1 where negative, is the complement; x <= T is x - (T + 1) negative. Clipped to -1..0, a maximum keeps this
  true, but for x <= T before a max pool: there the kernel's weights change sign. k thresholds are k results a kernel.
* *bits* are read as +-1: a weight is repeated for each bit of a thermometer, and changes sign where the bit is a
  complement.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import product_range
from bitloom.golden.layers.depthwise import own_weights
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import Activation
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model

from .depthwise import plain_of
from .lowered_layers import Addition, Depthwise, LoweredLayer, Multiply, Pooling, Scale
from .parts import Part
from .pools import canonical, thresholds_of
from .segments import Segment

SIGN_RANGE = (-1, 0)
"""Smallest and largest integer that stands for a sign: -1 where negative."""


def integer_layer(model: Model, part: Part, inverted: Array) -> tuple[LoweredLayer, Array]:
    """Rewrite one part.

    Parameters
    ----------
    model : Model
        Gives the arrays.
    part : Part
        With a segment.
    inverted : (bits,) bool
        Which of the bits that the part reads are complements; of no meaning where it reads integers.

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
    segment = part.segment
    weight_bits = part.engine.weight_bits
    assert segment is not None
    rule = _rule(model, segment, _weights(model, segment, inverted))
    if rule.weight.max() >= 1 << (weight_bits - 1):
        most = f"{weight_bits} bits in two's complement"
        raise ValueError(f"{part.name}: weights that change sign must fit {most}, got {rule.weight.max()}")
    layer = LoweredLayer(
        name=part.name,
        reads=part.reads,
        joins=part.joins,
        height=part.height,
        width=part.width,
        window=part.window,
        weighted=part.weighted,
        arithmetic=Multiply(weight=rule.weight),
        activation=rule.scale,
        addition=addition_of(model, segment, part.adds),
        pool=_pool(model, part),
        signs=len(rule.complement) > 0,
        sum_range=rule.reach,
    )
    return layer, rule.complement


def _pool(model: Model, part: Part) -> Pooling | Depthwise | None:
    """What the pool unit computes for a part."""
    if part.pool is None or part.segment is None:
        return None
    if part.segment.depthwise is None:
        average = part.segment.behind_sums(AvgPool) is not None
        low, _ = part.values or SIGN_RANGE
        return Pooling(window=part.pool, average=average, filler=0 if average else low)
    segment = canonical(part.segment.depthwise)
    act = segment.behind_sums(Requantise)
    assert act is not None
    weight = own_weights(plain_of(model, segment)).reshape(segment.layer.out_channels, -1).T  # (taps, channels)
    low, high = product_range(segment.source.encoding, segment.layer.weight)
    sum_range = min(low * len(weight), 0), max(high * len(weight), 0)
    scale = scale_of(model, act)
    return Depthwise(name=segment.name, window=part.pool, weight=weight, scale=scale, sum_range=sum_range)


def scale_of(model: Model, act: Requantise) -> Scale:
    """The scale of a requantisation."""
    factors = {key: value.astype(np.int64)[:, None] for key, value in model.arrays[act.name].items()}
    return Scale(**factors, fraction=act.fraction, rounding=act.rounding, low=act.low, high=act.high)


def copy(part: Part) -> LoweredLayer:
    """A copy of a map of integers: kernels are unit vectors."""
    assert part.values is not None
    low, high = part.values
    zeros = np.zeros((part.out_channels, 1), np.int64)
    return LoweredLayer(
        name=part.name,
        reads=part.reads,
        height=part.height,
        width=part.width,
        window=part.window,
        weighted=part.weighted,
        arithmetic=Multiply(weight=np.eye(part.out_channels, dtype=np.int64)[:, None]),
        activation=Scale(bias=zeros, multiplier=zeros + 1, shift=zeros, low=low, high=high),
        sum_range=(min(low, 0), max(high, 0)),
    )


def addition_of(model: Model, segment: Segment, adds: str | None) -> Addition | None:
    """The addition among the layers of a segment, of the map of lowered layer ``adds``; None where there is none."""
    layer = segment.behind_sums(Add)
    if layer is None or adds is None:
        return None
    arrays = model.arrays[layer.name]
    behind = segment.tail[segment.tail.index(layer) - 1].name
    kept = model.network.reads[layer.name].index(behind)
    factors = arrays["multiplier"].tolist()
    return Addition(
        adds=adds,
        factor_kept=factors[kept],
        factor_added=factors[1 - kept],
        bias=int(arrays["bias"][0]),
        shift=int(arrays["shift"][0]),
        low=layer.low,
        high=layer.high,
    )


def _weights(model: Model, segment: Segment, inverted: Array) -> Array:
    """Weights (O, taps, C) for the map as the engine reads it: bits as +-1, some of which are ``inverted``."""
    layer = segment.layer
    source = segment.source
    weight: Array = plain_of(model, segment).reshape(layer.out_channels, -1, source.channels)
    if source.encoding.kind == "bipolar":
        weight = np.where(inverted, -1, 1) * np.repeat(weight, source.encoding.bits, axis=2)
    return weight


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rule:
    """How the sums of a segment become results."""

    weight: Array
    """(O, taps, C)"""
    reach: tuple[int, int]
    """Smallest and largest sum."""
    scale: Scale | None = None
    """None where sums are the result."""
    complement: Array = field(default_factory=lambda: np.zeros(0, bool))
    """(O * levels) bool: which of the bits that leave are complements; none where integers leave."""


def _rule(model: Model, segment: Segment, weight: Array) -> _Rule:
    """The rule of a segment, whose weights are ``weight`` before any change sign."""
    reach = segment.accumulator_range
    act = segment.behind_sums(Activation)
    if isinstance(act, Requantise):
        return _Rule(weight=weight, reach=reach, scale=scale_of(model, act))
    if not isinstance(act, Threshold):
        return _Rule(weight=weight, reach=reach)
    arrays = model.arrays[act.name]
    turned = _turned(arrays["direction"], segment.tail)
    weight = np.where(turned[:, None, None], -weight, weight)
    if isinstance(segment.tail[-1], MaxPool):  # whichever directions the thresholds have
        reach = min(reach[0], -reach[1]), max(reach[1], -reach[0])
    limits = np.clip(_limits(thresholds_of(model, segment, act), arrays["direction"], turned), reach[0], reach[1] + 1)
    low, high = SIGN_RANGE
    scale = Scale(bias=-limits, multiplier=limits * 0 + 1, shift=limits * 0, low=low, high=high)
    complement = np.repeat(turned | (arrays["direction"] > 0), act.levels)
    return _Rule(weight=weight, reach=reach, scale=scale, complement=complement)


def _turned(direction: Array, tail: Sequence[Layer]) -> Array:
    """Which kernels change sign: those that pool bits of x <= T."""
    turned: Array = (direction < 0) & isinstance(tail[-1], MaxPool)
    return turned


def _limits(threshold: Array, direction: Array, turned: Array) -> Array:
    """(O, levels) limits below which a sign is 1, of kernels of which some are ``turned``."""
    down = direction[:, None] < 0
    limits: Array = np.where(turned[:, None], -threshold, threshold + down)
    return limits
