"""Exact numbers: arrays of fractions, which floating-point parameters become without rounding."""

from fractions import Fraction
from math import isqrt

import numpy as np

from bitloom.golden.encoding import Array

from .budget import FRACTION_STEPS, take
from .integer_types import plain

MOST_NUMBERS = 1 << 19
"""Numbers of a parameter at most."""
MOST_BITS = 1 << 13
"""Bits of a numerator or a denominator at most: dozens of parameters of 64 bits multiplied with each other."""
ROOT_BITS = 256
"""Bits behind the point of a root that is no fraction."""


def fractions(values: Array) -> Array:
    """Numbers as fractions.

    Parameters
    ----------
    values : array of numbers
        Finite.

    Returns
    -------
    array of Fraction
        Of the same shape, equal to the numbers.

    Raises
    ------
    ValueError
        If a number is infinite or none at all, or if there are more than MOST_NUMBERS.
    """
    values = plain(np.asarray(values))
    if values.size > MOST_NUMBERS:
        raise ValueError(f"parameters must be at most {MOST_NUMBERS:,} numbers, got {values.size:,}")
    take(steps=FRACTION_STEPS * values.size)
    out = np.empty(values.shape, object)
    for place, value in np.ndenumerate(values):
        if isinstance(value, Fraction):
            out[place] = value
        elif value.dtype.kind == "f" and not np.isfinite(value):
            raise ValueError(f"parameters must be finite, got {value}")
        else:
            out[place] = Fraction(value.item())
    return out


def floats(values: Array) -> Array:
    """The float64 nearest to each fraction: array of Fraction -> float64 of the same shape."""
    try:
        return np.asarray(values, object).astype(np.float64)
    except OverflowError:
        raise ValueError("numbers must be below 1e308, which floating point holds") from None


def bounded(values: Array) -> Array:
    """Fractions, unless one of them has so many bits that to compute with it takes long: then ValueError."""
    for value in values.ravel():
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
            raise ValueError(f"parameters that are multiplied must stay below {MOST_BITS:,} bits, got more")
    return values


def first_integer(top: int, bottom: int, reached: bool) -> int:
    """The first integer that is at least top / bottom; where that isn't ``reached``, the first one that is more."""
    return -(-top // bottom) if reached else top // bottom + 1


def root(value: Fraction) -> Fraction:
    """The square root of a number >= 0: exact where it is a fraction, else with a relative error below 2^-ROOT_BITS.

    A number that is compared with an irrational root is never equal to it, and parameters of 64 bits don't come near
    enough for the error to matter.
    """
    top = isqrt(value.numerator)
    bottom = isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    # value = n / d: sqrt(n * d) / d, with so many bits that n * d itself has ROOT_BITS behind the point of its root.
    scaled = value.numerator * value.denominator << (2 * ROOT_BITS)
    return Fraction(isqrt(scaled), value.denominator << ROOT_BITS)


def same(values: Array) -> Fraction | None:
    """The one value of an array of fractions; None if there are several."""
    flat = np.asarray(values, object).ravel()
    return flat[0] if all(value == flat[0] for value in flat) else None
