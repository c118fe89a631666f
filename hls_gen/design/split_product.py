"""How a requantisation's product is split between DSP blocks, which multiply 25 bits by 18, both with a sign.

    biased sum: high 25 bits | low bits      multiplier: high bits | low 17 bits
    product = high * multiplier_low * 2^apart + high * multiplier_high * 2^(apart + 17) + low * multiplier

Two blocks multiply the sum's high bits, or one where the multiplier has no high bits. The sum's low bits, a few, are
multiplied in LUTs: a row each.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .widths import DSP_NARROW_BITS, DSP_WIDE_BITS

if TYPE_CHECKING:
    from .npu import Npu

MOST_APART = 7
"""Low bits of a sum that are multiplied apart at most: those of a sum of 32 bits."""


@dataclass(frozen=True)
class SplitProduct:
    """The parts of the operands."""

    apart: int
    """Low bits of the biased sum that no block takes, 0..MOST_APART."""
    cut: int
    """Bits of the multiplier's low part, DSP_NARROW_BITS - 1 at most."""
    rest: int
    """Bits of its high part; 0: there is none."""


def split_product(npu: "Npu") -> SplitProduct | None:
    """The split of a lane's product; None where the product stays whole.

    It is split where a multiplier of DSP_WIDE_BITS or more meets a sum of more than DSP_NARROW_BITS, and where a short
    multiplier meets a sum of more than DSP_WIDE_BITS: of that synthesis would make two blocks, one behind the other
    without a register. With other operands synthesis does as well by itself. With ``half_even`` none is split: that
    looks at a bit of the product in the cycle in which parts would be added.
    """
    results = npu.requantisation
    multiplier = results.multiplier_bits
    apart = max(0, npu.biased_bits - DSP_WIDE_BITS)
    long = multiplier >= DSP_WIDE_BITS and npu.biased_bits > DSP_NARROW_BITS
    short = 0 < multiplier < DSP_NARROW_BITS and apart > 0
    if results.half_even or not (long or short) or apart > MOST_APART:
        return None
    cut = min(multiplier, DSP_NARROW_BITS - 1)
    return SplitProduct(apart, cut, multiplier - cut)
