"""Product of two maps, value by value: what gates a map by another one.

    t = x_1 * x_2 * multiplier
    y = (t + bias) / 2^shift             for x_1 * x_2 >= 0; else (t - bias) / 2^shift
                                         to the nearest integer, halves upwards
    result = clip(y, low, high)

The bias moves products away from zero, so that one rounding does what two do. TFLite's kernel makes p = x_1 * x_2 * m,
h = p / 2^31 to the nearest integer, halves upwards, and then h / 2^n, halves away from zero: that is the multiplier m,
the shift 31 + n and, for n >= 1, the bias 2^30. With bias 0 halves go upwards, with bias 1 away from zero, if the
multiplier is even.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map

from .add import Pairwise
from .rounding import rounded_up


@dataclass(frozen=True, kw_only=True)
class MultiplyMaps(Pairwise):
    """Two maps of one size are multiplied; the product is scaled by multiplier / 2^shift, rounded and clipped.

    Arrays: ``multiplier``, (1,), 0 .. 2^24 - 1; ``bias``, (1,), 0 .. 2^39 - 1, in parts 2^-shift of a result's step, by
    which products move away from zero; ``shift``, (1,), 0 .. 39.
    """

    kind: ClassVar[str] = "multiply"
    factors: ClassVar[int] = 1
    least_factor: ClassVar[int] = 0
    least_bias: ClassVar[int] = 0

    def reach(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> tuple[int, int]:
        factor, bias = int(arrays["multiplier"][0]), int(arrays["bias"][0])
        first, second = ((source.encoding.low, source.encoding.high) for source in sources)
        products = [x * y for x in first for y in second]
        ends = [product * factor + (bias if product >= 0 else -bias) for product in products]
        return min(ends), max(ends)

    def products(self, inputs: Sequence[Array], multipliers: Sequence[Any] | Array) -> Array:
        first, second = inputs
        return np.asarray(first.astype(np.int64) * second * multipliers[0])

    def bias_signs(self, inputs: Sequence[Array]) -> Array:
        first, second = inputs
        return np.where(first.astype(np.int64) * second < 0, -1, 1)

    def divided(self, totals: Array, shift: Array) -> Array:
        return rounded_up(totals, shift)

    def first_total(self, results: Array, shift: int) -> Array:
        return np.asarray((2 * results - 1) << shift - 1)
