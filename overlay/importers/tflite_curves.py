"""What TFLite's kernels of activations make of each int8 value, as a table of all 256.

Most kernels have such a table, too: they make it in single precision, as the interpreter prepares the operator.
HARD_SWISH has products of 16 bits; LEAKY_RELU and PRELU have those of a convolution, rounded twice, with one multiplier
below 0 and one from 0 on.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .tflite_rules import HIGH, LOW, Multiplier, multiplier_of, rounded_product

Tensor = tuple[float, int]
"""Scale and zero point of a tensor."""
INTEGERS = np.arange(LOW, HIGH + 1)
"""The values that a table has results of, in its order."""
HIRES_BITS = 7
"""Bits by which HARD_SWISH shifts its input to the left."""
WORD_BITS = 15
"""Bits behind the sign of HARD_SWISH's numbers."""


def curve_table(kind: str, source: Tensor, result: Tensor, attributes: Mapping[str, Any]) -> Array:
    """The results of a kernel for -128 .. 127: (256,) int64.

    Parameters
    ----------
    kind : str
        The operator, one of `CURVES`.
    source, result : (float, int)
        Of the tensor that the operator reads, and of the one that it makes.
    attributes : mapping
        The operator's options: ``alpha`` of LEAKY_RELU; ``slope``, an integer and its scale, of PRELU; ``approximate``
        of GELU.

    Raises
    ------
    Unsupported
        If the kernel refuses the scales.
    """
    return np.clip(CURVES[kind](source, result, attributes), LOW, HIGH)


def _by_floats(function: Callable[[float, Mapping[str, Any]], float]) -> Callable[..., Array]:
    """A kernel that makes its table of a function of real numbers, in single precision."""

    def table(source: Tensor, result: Tensor, attributes: Mapping[str, Any]) -> Array:
        reals = np.float32(source[0]) * (INTEGERS - source[1]).astype(np.float32)
        values = np.array([function(float(x), attributes) for x in reals], np.float32)
        with np.errstate(over="ignore"):  # what is beyond single precision is clipped
            scaled = values * (np.float32(1) / np.float32(result[0]))
        limited = np.clip(scaled, np.float32(-1e6), np.float32(1e6)).astype(np.float64)
        nearest = np.sign(limited) * np.floor(np.abs(limited) + 0.5)
        return nearest.astype(np.int64) + result[1]

    return table


def _logistic(x: float, attributes: Mapping[str, Any]) -> float:
    one = np.float32(1)
    return float(one / (one + np.float32(math.exp(min(-x, 88)))))


def _gelu(x: float, attributes: Mapping[str, Any]) -> float:
    if attributes["approximate"]:
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * math.erfc(-x * math.sqrt(0.5))


def _leaky(source: Tensor, result: Tensor, attributes: Mapping[str, Any]) -> Array:
    """LEAKY_RELU: values less their zero point, times one of two multipliers."""
    scale = source[0] / result[0]
    below = multiplier_of(scale * float(attributes["alpha"]))
    return _bent(INTEGERS - source[1], 1, multiplier_of(scale), below) + result[1]


def _prelu(source: Tensor, result: Tensor, attributes: Mapping[str, Any]) -> Array:
    """PRELU with one slope: the same, but the slope is an integer."""
    slope, slope_scale = attributes["slope"]
    scale = source[0] / result[0]
    return _bent(INTEGERS - source[1], slope, multiplier_of(scale), multiplier_of(scale * slope_scale)) + result[1]


def _bent(values: Array, slope: int, above: Multiplier, below: Multiplier) -> Array:
    return np.where(values >= 0, rounded_product(values, above), rounded_product(values * slope, below))


def _hard_swish(source: Tensor, result: Tensor, attributes: Mapping[str, Any]) -> Array:
    """x * relu6(x + 3) / 6 in numbers of 16 bits."""
    hires = np.float32(1 / 128) * np.float32(source[0])
    output = multiplier_of(float(hires / np.float32(result[0])))
    reluish = multiplier_of(float(hires / (np.float32(3) / np.float32(32768))))
    if output.shift > 0:
        rule = "the result's scale must be at least 1/128 of the input's"
        raise Unsupported(f"{rule}, got {result[0]:g} of {source[0]:g}")
    value = (INTEGERS - source[1]) << HIRES_BITS
    scaled = _high_product(value, _of_16_bits(output))
    gate = value
    if reluish.shift > 0:
        gate = _saturated(gate << reluish.shift - 1)
    gate = _high_product(gate, _of_16_bits(reluish))
    if reluish.shift > 0:
        gate = _saturated(gate << 1)
    if reluish.shift < 0:
        gate = _shifted(gate, -reluish.shift)
    gate = gate + (1 << WORD_BITS) >> 1
    product = gate * scaled
    high = np.sign(product) * (np.abs(product) >> WORD_BITS)  # a division in C drops what is behind the point
    return _shifted(high, -output.shift) + result[1]


def _of_16_bits(multiplier: Multiplier) -> int:
    """The upper half of a multiplier, rounded."""
    most = (1 << 31) - 1 - (1 << WORD_BITS)
    return (1 << WORD_BITS) - 1 if multiplier.multiplier >= most else multiplier.multiplier + (1 << WORD_BITS) >> 16


def _high_product(values: Array, factor: int) -> Array:
    """Twice the product of numbers of 16 bits, its upper half, rounded upwards."""
    product = values * factor
    nudged = product + np.where(product >= 0, 1 << WORD_BITS - 1, 1 - (1 << WORD_BITS - 1))
    return np.sign(nudged) * (np.abs(nudged) >> WORD_BITS)


def _shifted(values: Array, places: int) -> Array:
    """Values over 2^places, to the nearest integer, halves away from zero."""
    return np.sign(values) * ((np.abs(values) + ((1 << places) >> 1)) >> places)


def _saturated(values: Array) -> Array:
    """Values cut to 16 bits."""
    return np.clip(values, -(1 << WORD_BITS), (1 << WORD_BITS) - 1)


CURVES: dict[str, Callable[[Tensor, Tensor, Mapping[str, Any]], Array]] = {
    "LOGISTIC": _by_floats(_logistic),
    "TANH": _by_floats(lambda x, _: math.tanh(x)),
    "ELU": _by_floats(lambda x, _: math.expm1(x) if x < 0 else x),
    "GELU": _by_floats(_gelu),
    "HARD_SWISH": _hard_swish,
    "LEAKY_RELU": _leaky,
    "PRELU": _prelu,
}
"""Operator -> its table before it is clipped to int8."""
