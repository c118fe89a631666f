"""Widths of numbers and words in bits."""

PLACE_BITS = 5
SIDE_BITS = 11
"""Widths of hardware's counters: of a place in the kernel, of a row or a column of the map."""


def bits_for(top: int) -> int:
    """Width in bits of a number 0..top, at least 1."""
    return max(1, int(top).bit_length())
