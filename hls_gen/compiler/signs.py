"""Binary layers whose bits are the signs of integers: those of residual networks (docs/decisions/0022).

    conv --> requantise --(+ map)--> threshold at 0 --> bits: the next layer's map
                                `--> integers: wait for the next addition

A sign is x >= 0, or its complement, x <= -1.
"""

from dataclasses import dataclass, replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model

from .depthwise import plain_of
from .lowered_layers import Addition, Scale
from .lowering_integer import addition_of, scale_of
from .segments import Segment


@dataclass(frozen=True)
class SignRule:
    """How the values of a segment become integers.

    Attributes
    ----------
    scale : Scale
    addition : Addition or None
    """

    scale: Scale
    addition: Addition | None

    def of_doubled(self) -> "SignRule":
        """The rule for values that are twice as large."""
        scale = replace(self.scale, bias=2 * self.scale.bias, shift=self.scale.shift + 1)
        return replace(self, scale=scale)


def rule(model: Model, segment: Segment, adds: str | None) -> SignRule:
    """The rule of a segment that `engine_rules.check_binary` accepts, which adds the map of lowered layer ``adds``."""
    act = segment.tail[0]
    assert isinstance(act, Requantise)
    return SignRule(scale_of(model, act), addition_of(model, segment, adds))


def rising(model: Model, segment: Segment) -> tuple[Array, Array, Array]:
    """Weights (O, taps, C), thresholds (O, 1), which are 0, and which of the bits are complements.

    ValueError unless every threshold is a sign, and a pool finds what the engine's OR of bits does.
    """
    act = next(layer for layer in segment.tail if isinstance(layer, Threshold))
    arrays = model.arrays[act.name]
    threshold, down = arrays["threshold"].astype(np.int64)[:, 0], arrays["direction"] < 0
    wrong = threshold != -down.astype(np.int64)
    if wrong.any():
        sign = "<=" if down[wrong][0] else ">="
        raise ValueError(f"{act.name}: a threshold of integers must be x >= 0 or x <= -1, "
                         f"got x {sign} {threshold[wrong][0]}")  # fmt: skip
    pool = segment.tail[-1]
    if isinstance(pool, MaxPool | MinPool) and (down != isinstance(pool, MinPool)).any():
        rule = "x <= -1 before a min_pool" if isinstance(pool, MinPool) else "x >= 0 before a max_pool"
        raise ValueError(f"{act.name}: a threshold of integers must be {rule}, got the other one")
    weight = plain_of(model, segment).reshape(segment.layer.out_channels, -1, segment.source.channels)
    return weight, np.zeros((len(down), 1), np.int64), down
