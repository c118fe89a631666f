"""Ranges of values: of sums, with and without biases, also those of other weights, and the bits that hold them."""

from collections.abc import Iterable

import numpy as np

from bitloom.golden.encoding import Array, signed_bits

Range = tuple[int, int]
"""Smallest and largest value, both included."""


def with_biases(sums: Range, biases: Array) -> Range:
    """The range of sums, of biases, and of sums with their bias.

    Parameters
    ----------
    sums
        Range of the sums; 0 may be outside of it.
    biases
        Any number of integers, of any shape: biases in steps of the sums, what is behind the point cut off.

    Returns
    -------
    Range
        Of all of these, and of 0: a sum or a bias may be missing.

    Examples
    --------
        with_biases((-4, 6), np.array([3])) == (-4, 9)
    """
    low, high = sums
    bias = np.append(biases, 0)
    least = int(bias.min())
    most = int(bias.max())
    return min(low + least, least), max(high + most, most)


def with_any_biases(sums: Range, biases: Array) -> Range:
    """As `with_biases`, for whatever biases other weights of the same architecture are likely to have: up to a quarter
    of the largest sum, and up to a quarter further from 0 than ``biases``."""
    largest = max(-sums[0], sums[1])
    room = max(largest // 4, 5 * int(np.abs(np.append(biases, 0)).max()) // 4)
    return with_biases(sums, np.array([-room, room]))


def with_any_thresholds(sums: Range) -> Range:
    """As `with_biases`, for any thresholds of the sums: each is a bias of its negative, and none is below the smallest
    sum, or above the largest one by more than 1."""
    low, high = sums
    return with_biases(sums, np.array([-low, -1 - high]))


def held_bits(ranges: Iterable[Range]) -> int:
    """Bits in two's complement that hold the values of all ranges, 1 at least."""
    return max((signed_bits(*ends) for ends in ranges), default=1)
