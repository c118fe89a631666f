"""Real kernels as a binariser of kernels takes them: integers of 8 bits in two's complement with the same signs (spec
A9; hls_gen/rtl/array/kernel_binariser.py).

    z --> floor(z * 2^s), and at most -1 where z < 0      2^s: one power of two a layer, so that the largest |z| fits

The hardware keeps the sign alone: 1 where an integer is at least 0. So rounding must keep the sign: it rounds down,
since a small z below 0 must not become 0. When a layer is lowered, bits of its kernels may change, magnitudes never: an
integer whose bit changes becomes its complement ~x = -x - 1, which has the other sign for each x, 0 among them.
"""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.widths import KERNEL_BITS


def fixed_point(weight: Array) -> Array:
    """Real numbers of one layer as integers of `KERNEL_BITS` bits.

    Parameters
    ----------
    weight
        Finite numbers, of any shape.

    Returns
    -------
    array of int64
        Of the same shape: floor(z * 2^s), with the s for which the largest magnitude m is 64 <= m * 2^s < 128, so that
        integers of which the largest is 64 to 127 stay as they are; 0 where all are 0. What is below 0 stays below 0.
    """
    real = weight.astype(np.float64)
    _, exponent = np.frexp(np.abs(real).max(initial=0))
    fixed = np.floor(np.ldexp(real, KERNEL_BITS - 1 - int(exponent))).astype(np.int64)
    return np.where(real < 0, np.minimum(fixed, -1), fixed)


def magnitudes(fixed: Array) -> Array:
    """Magnitudes of integers, uint8: x where x >= 0, else the complement ~x."""
    return np.where(fixed >= 0, fixed, ~fixed).astype(np.uint8)


def integers(bits: Array, magnitude: Array) -> Array:
    """int8 integers with the signs ``bits``, 1 where at least 0, and these magnitudes: the inverse of `magnitudes`.
    Bits 1 and 0 with magnitudes 1 and 0 give +1 and -1."""
    known = magnitude.astype(np.int8)
    return np.where(bits, known, ~known)
