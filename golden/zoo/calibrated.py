"""Arrays for networks that nobody has trained: seeded weights, and scales and thresholds that fit what they give.

Weights: all values equally likely, the highest byte of each of `golden.training.reproducible.random_words`. Biases and
scales: from the sums that calibration images give, channel by channel, in integers: with mean m and mean distance d
from it,

    bias = -m + d / 4        scale = typical / d, by `scale_to_multiplier`

so that a bit less than half of the values are below 0 and few reach the largest: no layer dies and none saturates.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import scale_to_multiplier
from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.training.reproducible import random_words


def random_bytes(shape: tuple[int, ...], *key: int) -> Array:
    """int8 of that shape, all 256 values equally likely; the same key gives the same ones."""
    words = random_words(int(np.prod(shape)), *key)
    return (words >> np.uint64(56)).astype(np.uint8).view(np.int8).reshape(shape)


def scaled(x: Array, typical: int, bits: int = 16, least_shift: int = 0) -> dict[str, Array]:
    """Arrays of a `bitloom.golden.layers.requantise.Requantise`.

    Parameters
    ----------
    x : (N, H, W, C) integers
        Sums that it gets.
    typical : int
        Mean distance of results from their mean.
    bits : int
        Of the multipliers, at most.
    least_shift : int
        Of the shifts, for a rounding that needs it; multipliers grow with them.

    Returns
    -------
    dict of str to (C,) integers
        ``bias``, ``multiplier`` and ``shift``.
    """
    sums = x.reshape(-1, x.shape[-1])  # (samples, C)
    mean = rounded_quotient(sums.sum(axis=0), np.array(len(sums)))  # (C,)
    distance = np.abs(sums - mean).sum(axis=0) // len(sums)
    scales = [scale_to_multiplier(typical / d, bits) for d in distance.tolist()]  # int / int: correctly rounded
    multiplier, shift = np.array(scales).T
    more = np.maximum(least_shift - shift, 0)
    multiplier = multiplier << more
    shift = shift + more
    return {"bias": distance // 4 - mean, "multiplier": multiplier, "shift": shift}


def thresholds(network: Network, layer: Threshold, source: Map, x: Array) -> dict[str, Array]:
    """Arrays of a threshold layer of a network, from values (N, H, W, C) of ``source``, the map that it reads.

    The thresholds of a channel cut its values into parts of one size: one threshold is the upper median. Where a max
    pool follows the layer, its values are those behind the pool, which commutes with a threshold from below.
    """
    after = network.next_layer(layer.name)
    pooled = output_of(after, source, {}, x) if isinstance(after, MaxPool) else x
    values = pooled.reshape(-1, source.channels)  # (samples, C)
    ends = [len(values) * (level + 1) // (layer.levels + 1) for level in range(layer.levels)]
    threshold = np.partition(values, ends, axis=0)[ends].T.copy()
    return {"threshold": threshold, "direction": np.ones(source.channels, np.int8)}


def output_of(layer: Layer, source: Map, arrays: Mapping[str, Array], x: Array) -> Array:
    """Output of a layer that reads one map, of (N, H, W, C) values of that map, fast: (N, H', W', C')."""
    network = Network(name=layer.name, input=source, layers=(replace(layer, inputs=()),))
    return packed.forward(Model(network, {layer.name: arrays}), x)
