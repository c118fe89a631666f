"""Ranges of values: of sums, with and without biases, and the bits that hold them."""

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


def held_bits(ranges: Iterable[Range]) -> int:
    """Bits in two's complement that hold the values of all ranges, 1 at least."""
    return max((signed_bits(*ends) for ends in ranges), default=1)
