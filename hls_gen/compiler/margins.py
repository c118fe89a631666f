"""Margins: how much wider than a network needs are the widths of a design that follow from trained numbers.

    accumulators    room for other biases, beside the sums, which any weights have (value_ranges.py)
    multipliers     as wide as those who choose scales make them
    additions       factors a bit wider; a bias as wide as a product of a feature with a factor

So a network of the same layers and encodings that was trained anew fits a design that is there, but for rare cases.
Memories and tables depend on the architecture alone and have none.
"""

from bitloom.golden.layers.requantise import MULTIPLIER_BITS
from bitloom.hls_gen.design.widths import ACC_BITS, ADD_BIAS_BITS, ADD_FACTOR_BITS

MULTIPLIERS = (0, 16, MULTIPLIER_BITS)
"""Widths of multipliers: there are none, as `scale_to_multiplier` makes them by default, and at most."""
FACTOR_MARGIN = {False: 2, True: 1}
"""Bits of an addition's factors beyond those that a network needs: where DSP blocks multiply, and where LUTs do, since
every bit takes some of them."""
PLAIN = 2
"""Bits of the factors of an addition of maps that count alike: 1 or -1. Training makes such ones, whatever weights it
finds."""


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
