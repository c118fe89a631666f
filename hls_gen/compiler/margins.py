"""Margins: by how much some widths of a design, those that follow from trained numbers, are wider than a network needs.

    accumulators    room for other biases, beside the sums that any weights may give
    multipliers     the default width of scales, or the largest
    additions       factors a bit wider; a bias as wide as a product of a feature with a factor

So a network of the same layers and encodings that was trained anew fits a design that is there, but for rare cases.
Memories and tables depend on the architecture alone and have none.
"""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.requantise import MULTIPLIER_BITS
from bitloom.hls_gen.design.widths import ACC_BITS, ADD_BIAS_BITS, ADD_FACTOR_BITS

from .ranges import Range, with_biases

MULTIPLIERS = (0, 16, MULTIPLIER_BITS)
"""Widths of a design's multipliers: no multipliers, the default of `scale_to_multiplier`, and the largest."""
FACTOR_MARGIN = {False: 2, True: 1}
"""By whether LUTs multiply: bits that an addition's factors have beyond those that a network needs. With LUTs it is
fewer, since every bit takes LUTs."""
PLAIN = 2
"""Bits of the factors of an addition whose maps count alike: 1 or -1. Training gives such factors, whatever the weights
are."""


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


def roomy_acc_bits(bits: int, roomy: int) -> int:
    """Width of a design's accumulators for a network that needs ``bits``, and ``roomy`` with other biases."""
    return max(bits, min(roomy, ACC_BITS))


def roomy_multiplier_bits(bits: int) -> int:
    """Width of a design's multipliers for a network whose own have ``bits``."""
    return next(width for width in MULTIPLIERS if bits <= width)


def roomy_add_widths(factor_bits: int, bias_bits: int, value_bits: int, *, in_luts: bool) -> dict[str, int]:
    """Widths of a design's additions.

    Parameters
    ----------
    factor_bits, bias_bits
        Of the network's factors and biases.
    value_bits
        Of the values that are added.
    in_luts
        Whether LUTs multiply.

    Returns
    -------
    dict of str to int
        ``add_factor_bits`` and ``add_bias_bits``.
    """
    if factor_bits <= PLAIN and bias_bits <= PLAIN:
        return {"add_factor_bits": factor_bits, "add_bias_bits": bias_bits}
    factor = min(factor_bits + FACTOR_MARGIN[in_luts], ADD_FACTOR_BITS)
    return {"add_factor_bits": factor, "add_bias_bits": min(max(bias_bits, value_bits + factor), ADD_BIAS_BITS)}
