"""Packed products: one multiplier makes the products of one feature with the weights of several kernels.

    operand  = weight_0 + weight_1 * 2^spacing + weight_2 * 2^(2 * spacing) ...     (signed weights, added)
    product  = operand * feature
             = product_0 + product_1 * 2^spacing + ...                              (signed products, added)

So the bits of a product lie ``spacing`` apart, and a product below 0 takes 1 off the one above it, which is given back
(hls_gen/rtl/array/multipliers.py). Vendors call it DSP packing; the PEs of an array see the same features, so they can
share.
"""

from .widths import DSP_NARROW_BITS, DSP_WIDE_BITS


def spacing(kernels: int, feature_bits: int, weight_bits: int) -> int:
    """Bits from one product to the next.

    Parameters
    ----------
    kernels
        Kernels whose weights share the multiplier, >= 2.
    feature_bits, weight_bits
        Bits in two's complement.

    Returns
    -------
    int
        feature_bits + weight_bits, which hold every product. One less where two kernels would not fit otherwise: then
        the product of both smallest values alone, 2^(spacing - 1), looks like a negative one, and the hardware knows it
        by its operands.
    """
    wide = feature_bits + weight_bits
    return wide - 1 if kernels == 2 and operand_bits(kernels, wide, weight_bits) > DSP_WIDE_BITS else wide


def operand_bits(kernels: int, spaced: int, weight_bits: int) -> int:
    """Bits of the weights of so many kernels that lie ``spaced`` bits apart, added: one more than they reach, for the
    smallest value of all."""
    return (kernels - 1) * spaced + weight_bits + (kernels > 1)


def most_kernels(feature_bits: int, weight_bits: int) -> int:
    """Kernels at most whose weights one multiplier takes with features and weights of so many bits, >= 1."""
    kernels = 1
    while feature_bits <= DSP_NARROW_BITS:
        more = kernels + 1
        if operand_bits(more, spacing(more, feature_bits, weight_bits), weight_bits) > DSP_WIDE_BITS:
            break
        kernels = more
    return kernels
