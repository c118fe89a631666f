"""Products: DSP blocks by Yosys' rule, and LUTs of what has none."""

from bitloom.hls_gen.design.widths import DSP_NARROW_BITS, DSP_WIDE_BITS

LEAST_PRODUCT_BITS = 9
"""Bits of the narrowest product that Yosys gives a DSP block."""
NARROW_PRODUCT_LUTS = {
    (2, 2): 3.5,
    (2, 3): 5.3,
    (2, 4): 7.2,
    (2, 5): 9.6,
    (2, 6): 11.8,
    (3, 3): 7.3,
    (3, 4): 13.0,
    (3, 5): 17.8,
    (4, 4): 27.0,
}
"""LUTs of a product of fewer bits than LEAST_PRODUCT_BITS, by the bits of its operands, the fewer first: what each lane
of an integer PE takes more, by Yosys, than the adders behind it."""
PRODUCT_LUTS = 1.4
"""LUTs of a product for each pair of its operands' bits, where LUTs multiply: 265 for 9 x 21 bits, by Yosys."""


def dsps(left: int, right: int) -> int:
    """DSP blocks of a product of signed numbers of so many bits, as Yosys makes them of DSP48E1.

    Products of fewer than LEAST_PRODUCT_BITS bits become LUTs. What is too wide is cut into pieces of 17 bits, so that
    blocks can be cascaded, and a last one. Source: Yosys, techlibs/xilinx/synth_xilinx.cc and common/mul2dsp.v.
    """
    if left + right < LEAST_PRODUCT_BITS:
        return 0
    return _pieces(max(left, right), DSP_WIDE_BITS) * _pieces(min(left, right), DSP_NARROW_BITS)


def _pieces(bits: int, most: int) -> int:
    """Into how many pieces a factor of so many bits is cut, of which the last one has ``most`` bits at most."""
    return 1 + max(0, -(-(bits - most) // 17))


def narrow_product_luts(left: int, right: int) -> float:
    """LUTs of a product of signed numbers of so many bits that has no DSP block (`dsps`).

    An operand of one bit takes a LUT for each bit of the product.
    """
    return NARROW_PRODUCT_LUTS.get((min(left, right), max(left, right)), float(left + right))
