"""The engines' own rules: what a lowered layer makes of its features. In words they stand in
hls_gen/compiler/lowered_layers.py.
"""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import signed_sum
from bitloom.golden.layers.pool import rounded_quotient
from bitloom.golden.layers.requantise import rounded

from .lowered_layers import BinaryLayer, IntegerLayer
from .summed_window import sums_of


def run_binary_layer(p: BinaryLayer, features: Array, added: Array | None = None) -> Array:
    """Compute a lowered layer of the binary engine by the engine's own rule; parameters as of `binary_values`.

    Returns
    -------
    (N, H', W', out_channels) int64 or (N, H', W', out_channels * levels) uint8
        Values where the lowered layer is raw, else bits.
    """
    return binary_result(p, binary_values(p, features, added))


def binary_values(p: BinaryLayer, features: Array, added: Array | None = None) -> Array:
    """What a lowered layer of the binary engine compares with its thresholds.

    Parameters
    ----------
    p : BinaryLayer
    features : (N, H, W, channels, planes) of 0 and 1
    added : (N, H', W', out_channels) integers, optional
        What the addition adds, where the lowered layer has one.

    Returns
    -------
    (N, H', W', out_channels) int64
        In front of the pool.
    """
    positions = p.window.positions(p.height, p.width)
    n = len(features)
    flat = features.reshape(n, p.height * p.width, *features.shape[3:])
    total = np.zeros((n, len(positions), p.out_channels), np.int64)
    for place in range(positions.shape[1] * p.visits):
        position = positions[:, place // p.visits]
        match = flat[:, position, None] == p.weight[:, place % p.weight.shape[1]]  # (N, outputs, O, channels, planes)
        if p.word_channels:
            match = np.logical_or.reduceat(match, np.arange(0, match.shape[3], p.word_channels), axis=3)
        total += (match.sum(axis=3) @ p.coefficient) * (position >= 0)[:, None]
    if p.any_match:
        total = np.minimum(total, 1)
    value: Array = (1 + p.double) * total - p.tap_offset * p.visits * (positions >= 0).sum(axis=1)[:, None]
    rows, columns = p.window.output_size(p.height, p.width)
    value = value.reshape(n, rows, columns, p.out_channels)
    value = value if p.scale is None else p.scale.forward(value)
    if p.addition is not None:
        assert added is not None  # the caller knows which map that is
        value = p.addition.forward(value, added)
    return value


def binary_result(p: BinaryLayer, value: Array) -> Array:
    """The result of a lowered layer of the binary engine for what `binary_values` gives."""
    if p.threshold is None:
        return value
    n, rows, columns = value.shape[:3]
    bits: Array = (value[..., None] >= p.threshold).astype(np.uint8).reshape(n, rows, columns, -1)
    if p.pool is None:
        return bits
    taps = p.pool.positions(rows, columns)
    padded = np.concatenate([bits.reshape(n, rows * columns, -1), np.zeros((n, 1, bits.shape[3]), np.uint8)], axis=1)
    pooled: Array = padded[:, taps].max(axis=2)
    return pooled.reshape(n, *p.pool.output_size(rows, columns), -1)


def run_integer_layer(p: IntegerLayer, features: Array, added: Array | None = None) -> Array:
    """Compute a lowered layer of the integer engine by the engine's own rule.

    Parameters
    ----------
    p : IntegerLayer
    features : (N, H, W, channels) integers
    added : (N, H', W', out_channels) integers, optional
        What the addition adds, where the lowered layer has one.

    Returns
    -------
    (N, H', W', out_channels) int64 or (N, H', W', out_channels * levels) int64 or uint8
        Sums where the lowered layer is raw, else results, or bits that are 1 where a result is negative.
    """
    size, n = p.window.output_size(p.height, p.width), len(features)
    x = features.reshape(n, p.height * p.width, -1).astype(np.int64)
    padded = np.concatenate([x, np.zeros_like(x[:, :1])], axis=1)  # position -1: a tap that adds 0
    weight = np.tile(p.weight, (1, sums_of(p.window), 1))
    value = signed_sum(padded, p.window.positions(p.height, p.width), weight)  # (N, outputs, O)
    if p.bias is None or p.multiplier is None or p.shift is None:
        return value.reshape(n, *size, -1)
    biased = (value[..., None] << p.fraction) + p.bias  # (N, outputs, O, levels)
    scaled = rounded(biased * p.multiplier, p.shift, p.rounding)
    result: Array = np.clip(scaled, p.low, p.high).reshape(n, len(value[0]), -1)
    if p.addition is not None:
        assert added is not None  # the caller knows which map that is
        result = p.addition.forward(result, added.reshape(result.shape).astype(np.int64))
    if p.pool is not None and p.depthwise is not None:
        result = p.depthwise.forward(result, p.pool.positions(*size))
        size = p.pool.output_size(*size)
    elif p.pool is not None:
        taps = p.pool.positions(*size)  # (outputs, taps)
        low = p.low if p.addition is None else p.addition.low
        filler = 0 if p.average else low
        gathered = np.concatenate([result, np.full_like(result[:, :1], filler)], axis=1)[:, taps]
        count = (taps >= 0).sum(axis=1)[:, None]
        result = rounded_quotient(gathered.sum(axis=2), count) if p.average else gathered.max(axis=2)
        size = p.pool.output_size(*size)
    if p.signs:
        result = (result < 0).astype(np.uint8)
    return result.reshape(n, *size, -1)
