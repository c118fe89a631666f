"""Exact exchange of max pooling and thresholds (spec A11).

A threshold layer is a function f of one value, per channel, and it is monotone. Where f never falls,
f(max(x, y)) = max(f(x), f(y)): pooling sums and then comparing is comparing and then pooling bits, an OR. Where f falls
(direction -1), f(max(x, y)) = min(f(x), f(y)): an AND, no max pool, so there is no exchange. But if a layer with
weights comes just before the threshold, the same bits come from the negated kernel with direction +1: `ascending`.
"""

from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model


def never_falls(model: Model, index: int) -> Array:
    """(C,) bool: in which channels layer ``index``, a Threshold, gives no smaller value for a larger one.

    It may be constant over the values of its source's encoding, whatever its direction.
    """
    layer, source = model.network.chain("an exchange")[index]
    if not isinstance(layer, Threshold):
        raise ValueError(f"{layer.name}: must be a threshold layer, got {layer.kind}")
    arrays = model.arrays[layer.name]
    ends = np.array([[source.encoding.low], [source.encoding.high]]).repeat(source.channels, axis=1)  # (2, C)
    at_low, at_high = layer.bits(ends, arrays)  # (C, levels)
    return np.asarray((at_low <= at_high).all(axis=1))


def exchangeable(model: Model, index: int) -> bool:
    """Whether layers ``index`` and ``index + 1`` are a max pool and a threshold, in any order, that may change places.

    Exact for every input whose values at that place are of the map's encoding; False where some such values differ,
    unless every window is a single tap.
    """
    pair = model.network.layers[index : index + 2]
    for place, layer in enumerate(pair):
        other = pair[1 - place] if len(pair) == 2 else None
        if isinstance(layer, Threshold) and isinstance(other, MaxPool):
            return other.window.taps == 1 or bool(never_falls(model, index + place).all())
    return False


def exchange(model: Model, index: int) -> Model:
    """The model with layers ``index`` and ``index + 1`` in the other order; ValueError unless `exchangeable`."""
    layers = list(model.network.layers)
    if not exchangeable(model, index):
        names = " and ".join(f"{layer.name} ({layer.kind})" for layer in layers[index : index + 2])
        raise ValueError(f"{model.network.name}: only a max pool and rising thresholds may be exchanged, got {names}")
    layers[index : index + 2] = layers[index + 1], layers[index]
    return Model(replace(model.network, layers=tuple(layers)), model.arrays)


def ascending(model: Model, index: int) -> Model:
    """The model with every direction of layer ``index``, a Threshold, made +1; its bits stay as they are.

    In a channel of direction -1, x <= t is -x >= -t: the kernel before it and the thresholds are negated.
    ValueError where layer ``index - 1`` has no weights or they have no negative in their encoding.
    """
    threshold = model.network.layers[index]
    if not isinstance(threshold, Threshold):
        raise ValueError(f"{threshold.name}: must be a threshold layer, got {threshold.kind}")
    values = model.arrays[threshold.name]
    falling = values["direction"] == -1
    if not falling.any():
        return model
    before = model.network.layers[index - 1] if index else None
    if not isinstance(before, Weighted):
        got = before.kind if before else "the input"
        raise ValueError(f"{threshold.name}: direction -1 can only be turned after a layer with weights, got {got}")
    if before.accumulate != "popcount":
        raise ValueError(f"{threshold.name}: direction -1 can only be turned after popcount, got {before.accumulate}")
    weight = _negated(model.arrays[before.name]["weight"], falling)
    before.weight.check(f"{before.name}.weight, negated", weight)
    turned = {
        "threshold": _negated(values["threshold"], falling),
        "direction": np.ones_like(values["direction"]),
    }
    return Model(model.network, {**model.arrays, before.name: {"weight": weight}, threshold.name: turned})


def _negated(array: Array, rows: Array) -> Array:
    """int64 copy with the chosen rows of the first axis negated."""
    wide = array.astype(np.int64)
    wide[rows] = -wide[rows]
    return wide
