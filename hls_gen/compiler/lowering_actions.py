"""The actions of a lowered layer (hls_gen/compiler/lowered_layers.py) from the layers behind the sums of a segment.

Each layer becomes one action, by the function that a table has for its kind. A layer that the table lacks is refused,
so that no layer is left out. Where an engine computes an action otherwise, the engine's file rewrites the action
(lowering_binary.py, lowering_integer.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add, Pairwise
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model

from .lowered_layers import Action, Addition, Entries, LoweredLayer, Multiply, Pooling, Scale, Sign, Thresholds, Xnor
from .margins import Range
from .parts import MapReader, Part
from .pools import thresholds_of


def lowered_layer(part: Part, arithmetic: Xnor | Multiply, actions: Sequence[Action], sum_range: Range) -> LoweredLayer:
    """The lowered layer of a part."""
    reader = {item.name: getattr(part, item.name) for item in fields(MapReader)}
    return LoweredLayer(**reader, arithmetic=arithmetic, actions=tuple(actions), sum_range=sum_range)


def actions_of(model: Model, part: Part, tail: tuple[Layer, ...]) -> list[Action]:
    """The actions of the layers behind the sums of a part. Where a pool is the first of these layers, its action is the
    last: engines pool what thresholds make.

    ValueError if there is no function for a layer.
    """
    if tail and isinstance(tail[0], Pool):
        tail = (*tail[1:], tail[0])
    for layer in tail:
        if type(layer) not in FUNCTIONS:
            raise ValueError(f"{layer.name}: nothing lowers a {layer.kind}")
    return [FUNCTIONS[type(layer)](model, part, layer) for layer in tail]


def bits_of(model: Model, part: Part, layer: Threshold) -> Thresholds | Sign:
    """What makes bits: the sign of what was requantised, or thresholds of sums. Its bits are 1 where a sum is large:
    of x <= T, the complement is computed, x >= T + 1."""
    assert part.segment is not None
    if part.segment.behind_sums(Requantise) is not None:
        return Sign()
    down = model.arrays[layer.name]["direction"][:, None] < 0
    return Thresholds(thresholds_of(model, part.segment, layer) + down)


def limits_of(thresholds: Thresholds, turned: Array, sums: Range) -> Array:
    """(out_channels, levels) limits of thresholds for kernels of which those that are ``turned`` (out_channels) change
    sign, so that their bits become complements: x <= L - 1 is -x >= 1 - L. A limit below all ``sums`` is the smallest
    of these, one that no sum reaches is one more than the largest.
    """
    low, high = sums
    limits = np.where(turned[:, None], 1 - thresholds.limit, thresholds.limit)
    return np.clip(limits, low, high + 1)


def scale_of(model: Model, part: Part, layer: Requantise) -> Scale:
    """The scale of a requantisation."""
    factors = {key: value.astype(np.int64)[:, None] for key, value in model.arrays[layer.name].items()}
    return Scale(**factors, fraction=layer.fraction, rounding=layer.rounding, low=layer.low, high=layer.high)


def entries_of(model: Model, part: Part, layer: Lookup) -> Entries:
    """The table of a lookup."""
    return Entries(values=model.arrays[layer.name]["entries"].astype(np.int64), low=layer.low, high=layer.high)


def addition_of(model: Model, part: Part, layer: Pairwise) -> Addition:
    """The addition of the map that the part adds, or the product with it."""
    assert part.segment is not None
    assert part.adds is not None
    arrays = model.arrays[layer.name]
    tail = part.segment.tail
    kept = model.network.reads[layer.name].index(tail[tail.index(layer) - 1].name)
    multiplies = isinstance(layer, MultiplyMaps)
    factors = arrays["multiplier"].tolist()
    return Addition(
        adds=part.adds,
        factor_kept=0 if multiplies else factors[kept],
        factor_added=factors[0] if multiplies else factors[1 - kept],
        bias=int(arrays["bias"][0]),
        shift=int(arrays["shift"][0]),
        multiplies=multiplies,
        low=layer.low,
        high=layer.high,
    )


def pooling_of(model: Model, part: Part, layer: Pool) -> Pooling:
    """The pool of the pool unit."""
    return Pooling(window=layer.window, average=isinstance(layer, AvgPool))


FUNCTIONS: dict[type[Layer], Callable[[Model, Part, Any], Action]] = {
    Threshold: bits_of,
    Requantise: scale_of,
    Lookup: entries_of,
    Add: addition_of,
    MultiplyMaps: addition_of,
    MaxPool: pooling_of,
    MinPool: pooling_of,
    AvgPool: pooling_of,
}
"""By kind of layer, the function that makes its action; engine_rules.py says what each engine takes."""
