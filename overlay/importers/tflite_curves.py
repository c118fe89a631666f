"""Results of TFLite's kernels of activations for each int8 value, as a table of all 256, before they are clipped to
int8.

Most kernels have such a table, too: they make it in single precision, as the interpreter prepares the operator.
HARD_SWISH has products of 16 bits; LEAKY_RELU and PRELU have those of a convolution, rounded twice, with one multiplier
below 0 and one from 0 on. Which operator has which kernel, the table of activations says (activations.py).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.rounding import rounded_shift, rounded_up

from .curves import gelu, gelu_by_tanh, infinite_beyond
from .errors import Unsupported
from .tflite_rules import HIGH, LOW, Multiplier, multiplier_of, rounded_product, single_scale

ScaleAndZero = tuple[float, int]
"""Scale and zero point of a tensor."""
TableKernel = Callable[[ScaleAndZero, ScaleAndZero, Mapping[str, Any]], Array]
"""``kernel(source, result, options)`` are (256,) int64 results for -128 .. 127, where ``source`` is the tensor that the
operator reads, and ``result`` the one that it makes; Unsupported if the kernel refuses the scales."""
INTEGERS = np.arange(LOW, HIGH + 1)
"""The values that a table has results of, in its order."""
HIRES_BITS = 7
"""Bits by which HARD_SWISH shifts its input to the left."""
WORD_BITS = 15
"""Bits behind the sign of HARD_SWISH's numbers."""


def by_floats(function: Callable[[float], float]) -> TableKernel:
    """A kernel that makes its table of a function of real numbers, in single precision."""

    def table(source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
        reals = np.float32(source[0]) * (INTEGERS - source[1]).astype(np.float32)
        with np.errstate(over="ignore"):  # what is beyond single precision is clipped
            values = np.array([infinite_beyond(function)(float(x)) for x in reals], np.float32)
            scaled = values * (np.float32(1) / np.float32(result[0]))
        limited = np.clip(scaled, np.float32(-1e6), np.float32(1e6)).astype(np.float64)
        nearest = np.sign(limited) * np.floor(np.abs(limited) + 0.5)
        return np.asarray(nearest.astype(np.int64) + result[1])

    return table


def single_logistic(x: float) -> float:
    """LOGISTIC's function: 1 / (1 + exp(-x)) in single precision."""
    one = np.float32(1)
    return float(one / (one + np.float32(math.exp(min(-x, 88)))))


def single_log(x: float) -> float:
    """LOG's function: the logarithm in single precision; nothing is below that of 0."""
    return float(np.log(np.float32(x))) if x > 0 else -math.inf


def abs_kernel(source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
    """ABS: values less their zero point, without their sign, in the result's scale."""
    values = np.abs(INTEGERS - source[1])
    if source[0] != result[0]:
        values = rounded_product(values, multiplier_of(single_scale(result[0], source[0])))
    return np.asarray(values + result[1])


def gelu_kernel(source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
    """GELU, as its option ``approximate`` wants it."""
    return by_floats(gelu_by_tanh if options["approximate"] else gelu)(source, result, options)


def leaky_kernel(source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
    """LEAKY_RELU: values less their zero point, times one of two multipliers, by its option ``alpha``."""
    return _bent(source, result, 1, float(options["alpha"]))


def prelu_kernel(source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
    """PRELU with one ``slope``: the same, but the slope is an integer, with a scale."""
    return _bent(source, result, *options["slope"])


def _bent(source: ScaleAndZero, result: ScaleAndZero, slope: int, slope_scale: float) -> Array:
    """Values less their zero point in the result's scale; those below 0 times a slope of that scale."""
    values = INTEGERS - source[1]
    above = rounded_product(values, multiplier_of(single_scale(result[0], source[0])))
    below = rounded_product(values * slope, multiplier_of(single_scale(result[0], source[0], slope_scale)))
    return np.where(values >= 0, above, below) + result[1]


def hard_swish_kernel(source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
    """HARD_SWISH: x * relu6(x + 3) / 6 in numbers of 16 bits."""
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
        gate = rounded_shift(gate, np.array(-reluish.shift))
    gate = gate + (1 << WORD_BITS) >> 1
    product = gate * scaled
    high = np.sign(product) * (np.abs(product) >> WORD_BITS)  # a division in C drops what is behind the point
    return rounded_shift(high, np.array(-output.shift)) + result[1]


def _of_16_bits(multiplier: Multiplier) -> int:
    """The upper half of a multiplier, rounded."""
    most = (1 << 31) - 1 - (1 << WORD_BITS)
    return (1 << WORD_BITS) - 1 if multiplier.multiplier >= most else multiplier.multiplier + (1 << WORD_BITS) >> 16


def _high_product(values: Array, factor: int) -> Array:
    """Twice the product of numbers of 16 bits, its upper half, rounded upwards."""
    return rounded_up(values * factor, np.array(WORD_BITS))


def _saturated(values: Array) -> Array:
    """Values cut to 16 bits."""
    return np.clip(values, -(1 << WORD_BITS), (1 << WORD_BITS) - 1)
