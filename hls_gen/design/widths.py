"""Widths of numbers and words in bits."""

from bitloom.golden.layers import add, requantise
from bitloom.golden.layers.roles import FEATURE_WIDTHS

ACC_BITS = 32
"""Bits of an accumulator at most."""
PLACE_BITS = 5
"""Bits of a place in the kernel, in hardware's counters."""
SIDE_BITS = 11
"""Bits of a row or a column of the map, in hardware's counters."""
FRAME_BITS = 24
"""Bits of a count of words, of the stream or of KFP features, in a frame."""
ROW_BITS = 24
"""Bits of a row's number, and of a count of rows, in a packet's header."""
MOST_ROWS = 1 << ROW_BITS - 1
"""Rows of a memory at most, so that numbers and counts have room in a header. No FPGA has as many."""
MEMORY_BITS = 8
"""Bits of a memory's id."""
LAYER_BITS = 8
"""Bits of a layer's number."""
LAST_PIECE_BITS = 6
"""Bits of the number of the last input word in the last stream word of a frame."""
MULTIPLIER_BITS = requantise.MULTIPLIER_BITS
"""Bits of a requantisation's multiplier at most."""
FRACTION_BITS = requantise.MAX_FRACTION
"""Bits of a requantisation's bias behind the point at most."""
ADD_FACTOR_BITS = add.FACTOR_BITS
"""Bits of an addition's factor at most."""
ADD_BIAS_BITS = add.OFFSET_BITS
"""Bits of an addition's bias at most."""
DSP_WIDE_BITS, DSP_NARROW_BITS = 25, 18
"""Bits of the signed operands of a DSP48E1, the multiplier of Xilinx's 7 series."""
ADD_FEATURE_BITS = DSP_NARROW_BITS
"""Bits of a feature that is added at most: a DSP block multiplies it by a factor."""
SKIP_BITS = FEATURE_WIDTHS["signed"][1]
"""Bits of an integer at most that a binary NPU requantises sums to, as layers make them."""
MAX_ADD_SHIFT = add.MAX_ADD_SHIFT
"""Largest shift of an addition."""
SHIFT_BITS = 6
"""Bits of a requantisation's shift at least (`Npu.scale_shift_bits`)."""
FEATURE_BITS = 20
"""Bits of a feature of the integer engine at most: eight products with weights of 8 bits fit an accumulator of 32.
Layers make 9 at most (golden/layers/requantise.py); an input may have more, as fixed-point numbers of sensors do."""
WEIGHT_BITS = 8
"""Bits of a weight of the integer engine at most."""
KERNEL_BITS = 8
"""Bits of an integer that the kernel binariser makes a bit of: a stream word has a whole number of them."""
PLANES = 9
"""Bit planes of an integer input of the binary engine at most."""
COUNT_BITS = 7
"""Bits of a count of the valid taps that an average divides by."""
RECIPROCAL_BITS = 23
"""Bits of a reciprocal, 2^RECIPROCAL_BITS / (2 * count), rounded up (hls_gen/rtl/pool_unit/divide.py), where features
have 8 bits at most; wider features need as many bits more (`Npu.reciprocal_bits`)."""


def bits_for(top: int) -> int:
    """Width in bits of a number 0..top, at least 1."""
    return int(top).bit_length() or 1
