"""A section's weights as they are built: whole numbers in lowest terms, and their encoding."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding, signed, signed_bits
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.design.widths import WEIGHT_BITS

from .sections import WeightSection

MOST_WEIGHT = (1 << WEIGHT_BITS - 1) - 1
"""The largest weight of the integer engine; the smallest is one further from 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A section's weights as they are built."""

    values: Array
    """(outputs, rows, columns, channels / groups) int64: divided by the greatest common divisor of each output."""
    groups: int
    """Groups that channels and outputs are cut into."""
    scale: Array
    """(outputs,) array of Fraction: what an integer weight is worth."""
    encoding: Encoding
    real: Array | None = None
    """Real numbers of which ``values`` are the signs, in the same order."""


def weights_of(section: WeightSection) -> Weights:
    """Weights in lowest terms, and the narrowest encoding that holds them."""
    values, divisor = in_lowest_terms(section.weight)
    scale = section.scale * np.array([Fraction(int(d)) for d in divisor], object)
    encoding = weight_encoding(values, section.groups)
    return Weights(values=values, groups=section.groups, scale=scale, encoding=encoding, real=section.real)


def in_lowest_terms(weight: Array) -> tuple[Array, Array]:
    """Weights divided by the greatest common divisor of each output's, and these divisors; outputs come first."""
    divisor = np.maximum(np.gcd.reduce(weight.reshape(len(weight), -1), axis=1), 1)
    return weight // divisor.reshape(-1, *[1] * (weight.ndim - 1)), divisor


def with_signs(real: Array, signs: Array) -> Array:
    """Real numbers with these signs, +1 for those >= 0: where a number has the other one, its negative, or of 0 the
    largest negative number of single precision."""
    negative = -np.maximum(np.abs(real), np.finfo(np.float32).tiny)
    return np.where((real >= 0) == (signs > 0), real, np.where(signs > 0, -real, negative))


def integer_weights(weights: Weights) -> Weights:
    """The same weights for the integer engine: where nothing is requantised, their encoding alone says the engine."""
    narrow = weights.encoding in (BIPOLAR, TERNARY)
    return replace(weights, encoding=signed(2)) if narrow else weights


def weight_limit(values: Array) -> str:
    """What weights of the integer engine must fit, and what they are; empty if they do."""
    if stored_bits(weight_encoding(values)) <= WEIGHT_BITS:
        return ""
    return f"{WEIGHT_BITS} bits, {-MOST_WEIGHT - 1}..{MOST_WEIGHT}, got {values.min()}..{values.max()}"


def weight_encoding(values: Array, groups: int = 1) -> Encoding:
    """The narrowest encoding of weights: bipolar, ternary, or signed. By groups, a kernel is 0 in the channels of
    other groups than its own."""
    low = int(values.min())
    high = int(values.max())
    if low >= -1 and high <= 1:
        return BIPOLAR if groups == 1 and (values != 0).all() else TERNARY
    return signed(max(2, signed_bits(low, high)))
