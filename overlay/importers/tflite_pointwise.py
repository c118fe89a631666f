"""Results of TFLite's kernels for the int8 values at each place of several tensors, by operator.

Each is a function of the node's attributes, with the tensors' scales, and of int64 arrays. Of maps that are functions
of one map it is a table, as of an activation that a converter has written as several operators: SELU is GREATER, MUL,
EXP, SUB, MUL and SELECT_V2.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .tflite_rules import HIGH, LOW, multiplier_of, rounded_product

PointwiseKernel = Callable[..., Array]
"""``kernel(attributes, *values)`` are the results for values of each tensor, int64."""
COMPARED_BITS = 8
"""Bits by which a comparison shifts its integers to the left."""
SQUARED_BITS = 7
"""The same of SQUARED_DIFFERENCE."""


def _scales(attributes: Mapping[str, Any]) -> list[tuple[float, int]]:
    return [attributes["scales"][place].per_tensor(f"input {place}") for place in (0, 1)]


def _compared(holds: Callable[[Array, Array], Array]) -> PointwiseKernel:
    """Real numbers, with 8 bits behind the point, are compared."""

    def kernel(attributes: Mapping[str, Any], x: Array, y: Array) -> Array:
        scaled = []
        for values, (scale, zero) in zip((x, y), _scales(attributes)):
            multiplier = multiplier_of(scale)
            if multiplier.shift > 0:
                raise Unsupported(f"scales of what is compared must be below 1, got {scale:g}")
            scaled.append(rounded_product(values - zero << COMPARED_BITS, multiplier))
        return np.asarray(holds(*scaled)).astype(np.int64)

    return kernel


def _selected(attributes: Mapping[str, Any], where: Array, x: Array, y: Array) -> Array:
    """The first one where it is true, else the second one, as they are."""
    result = attributes["result_scale"].per_tensor("the result")
    for place in (1, 2):
        if attributes["scales"][place].per_tensor(f"input {place}") != result:
            raise Unsupported("what is selected and the result must have the same scale and zero point")
    return np.where(where != 0, x, y)


def _squared_difference(attributes: Mapping[str, Any], x: Array, y: Array) -> Array:
    """The square of what is rounded of the difference in the larger scale."""
    scales = _scales(attributes)
    result, result_zero = attributes["result_scale"].per_tensor("the result")
    twice = 2 * max(scale for scale, _ in scales)
    first, second = (
        rounded_product(values - zero << SQUARED_BITS, multiplier_of(scale / twice))
        for values, (scale, zero) in zip((x, y), scales)
    )
    output = multiplier_of(twice * twice / ((1 << 2 * SQUARED_BITS) * result))
    return np.asarray(np.clip(rounded_product((first - second) ** 2, output) + result_zero, LOW, HIGH))


POINTWISE: dict[str, PointwiseKernel] = {
    "GREATER": _compared(np.greater),
    "GREATER_EQUAL": _compared(np.greater_equal),
    "LESS": _compared(np.less),
    "LESS_EQUAL": _compared(np.less_equal),
    "EQUAL": _compared(np.equal),
    "NOT_EQUAL": _compared(np.not_equal),
    "SELECT": _selected,
    "SELECT_V2": _selected,
    "SQUARED_DIFFERENCE": _squared_difference,
}
"""Operator -> its kernel."""
