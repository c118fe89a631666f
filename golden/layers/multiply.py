"""Product of two maps, value by value: what gates a map by another one.

The product of two features becomes a feature as in a requantisation (golden/layers/requantise.py):

    t = x_1 * x_2 * multiplier + bias
    y = t / 2^shift                      to the nearest integer, halves away from zero
    result = clip(y, low, high)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map

from .add import Pairwise


@dataclass(frozen=True, kw_only=True)
class MultiplyMaps(Pairwise):
    """Two maps of one size are multiplied; the product is scaled by multiplier / 2^shift, rounded and clipped.

    Arrays: ``multiplier``, (1,), -2^24 + 1 .. 2^24 - 1; ``bias``, (1,), 40 bits signed, in parts 2^-shift of a result's
    step; ``shift``, (1,), 0 .. 39.
    """

    kind: ClassVar[str] = "multiply"
    factors: ClassVar[int] = 1

    def reach(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> tuple[int, int]:
        factor, bias = int(arrays["multiplier"][0]), int(arrays["bias"][0])
        first, second = ((source.encoding.low, source.encoding.high) for source in sources)
        ends = [x * y * factor + bias for x in first for y in second]
        return min(ends), max(ends)

    def totals(self, inputs: Sequence[Array], arrays: Mapping[str, Array]) -> Array:
        product: Array = inputs[0].astype(np.int64) * inputs[1] * int(arrays["multiplier"][0])
        return product
