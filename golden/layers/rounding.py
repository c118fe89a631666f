"""Quotients of integers, rounded to integers: by a power of two, as requantisation divides, or by a count.

Each never falls as what is divided rises, and makes 0 of 0.
"""

import numpy as np

from bitloom.golden.encoding import Array

PRODUCT_BITS = 63
"""|x| < 2^62 for what is divided by a power of two: with half of it added it still fits 64 bits."""
ROUNDINGS = ("once", "even", "twice")
"""How a requantisation may round."""
FIRST_SHIFT = 31
"""Bits that the first of two roundings takes off."""


def rounded(x: Array, shift: Array, rounding: str) -> Array:
    """``x / 2^shift`` for int64 with |x| < 2^62, by one of ROUNDINGS."""
    return {"once": rounded_shift, "even": rounded_even, "twice": rounded_twice}[rounding](x, shift)


def rounded_shift(x: Array, shift: Array) -> Array:
    """``x / 2^shift`` for int64 with |x| < 2^62 and shift 0 .. 61, to the nearest integer, halves away from zero."""
    half = (1 << shift) >> 1  # 0 for shift 0
    y: Array = np.sign(x) * ((np.abs(x) + half) >> shift)
    return y


def rounded_even(x: Array, shift: Array) -> Array:
    """``x / 2^shift`` for int64 with |x| < 2^62 and shift 0 .. 61, to the nearest integer, halves to the even one."""
    half = (1 << shift) >> 1  # 0 for shift 0
    y: Array = (x + np.where(half > 0, half - 1 + (x >> shift & 1), 0)) >> shift
    return y


def rounded_twice(x: Array, shift: Array) -> Array:
    """``x / 2^shift`` for int64 with |x| < 2^62 and shift 31 .. 61, rounded after 31 bits, halves upwards, and then to
    the nearest integer, halves away from zero."""
    return rounded_shift(rounded_up(x, np.array(FIRST_SHIFT)), shift - FIRST_SHIFT)


def rounded_up(x: Array, shift: Array) -> Array:
    """``x / 2^shift`` for int64 with |x| < 2^62 and shift 0 .. 61, to the nearest integer, halves upwards."""
    half = (1 << shift) >> 1  # 0 for shift 0
    y: Array = (x + half) >> shift
    return y


def rounded_quotient(total: Array, count: Array) -> Array:
    """``total / count`` for integers with count >= 1, rounded to the nearest integer, halves away from zero."""
    return np.sign(total) * ((2 * np.abs(total) + count) // (2 * count))
