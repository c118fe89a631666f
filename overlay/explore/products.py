"""Products of the integer engine: DSP blocks by Yosys' rule, and the sizes by which the area of what adds, rounds and
shifts them goes (parts.py).
"""

from typing import Any

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.split_product import split_product

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
Features = dict[str, float]
"""Sizes of a block by name."""


def dsps(left: int, right: int) -> int:
    """DSP blocks of a product of signed numbers of so many bits, as Yosys makes them of DSP48E1 (25 x 18 bits).

    Products of fewer than LEAST_PRODUCT_BITS bits become LUTs. What is too wide is cut into pieces of 17 bits, so that
    blocks can be cascaded, and a last one. Source: Yosys, techlibs/xilinx/synth_xilinx.cc and common/mul2dsp.v.
    """
    if left + right < LEAST_PRODUCT_BITS:
        return 0
    pieces = lambda bits, most: 1 + max(0, -(-(bits - most) // 17))  # noqa: E731
    return pieces(max(left, right), 25) * pieces(min(left, right), 18)


def narrow_product_luts(left: int, right: int) -> float:
    """LUTs of a product of signed numbers of so many bits that has no DSP block (`dsps`).

    An operand of one bit takes a LUT for each bit of the product.
    """
    return NARROW_PRODUCT_LUTS.get((min(left, right), max(left, right)), float(left + right))


def addition_products(npu: Npu) -> dict[str, Any]:
    """DSP blocks and LUTs, by ``dsp`` and ``lut``, of the products of an addition of maps."""
    left = npu.value_bits
    right = present(npu.stores.skip).factor_bits
    count = 2 * npu.results.ol
    if "addition" in npu.results.lut_products:
        return {"dsp": 0, "lut": count * PRODUCT_LUTS * left * right}
    return {"dsp": count * dsps(left, right), "lut": 0.0}


def multiplier_dsps(npu: Npu) -> int:
    """DSP blocks of the product of a lane's requantisation; 0 where all multipliers are 1."""
    multiplies = npu.requantises and npu.results.multiplier_bits
    if multiplies and split_product(npu) is not None:
        return 2
    return dsps(npu.biased_bits, npu.results.multiplier_bits + 1) if multiplies else 0


def requantise_sizes(npu: Npu) -> Features:
    """Features of requantisation: its stages are as wide as the product, which several DSP blocks give in pieces; one
    block alone has the product's registers, too, and so have those of a product that is split between them."""
    ol = npu.results.ol
    wide = npu.product_bits
    blocks = multiplier_dsps(npu)
    split = split_product(npu) is not None
    apart = blocks != 1 and not split
    return {
        "wide": ol * wide,
        "apart": ol * wide * apart,
        "pieces": ol * wide * max(0, blocks - 1),
        "even": ol * wide * npu.results.half_even,
        "factor": ol * npu.results.multiplier_bits,
        "fraction": ol * npu.results.bias_fraction_bits,
        "twice": ol * (wide - npu.results.first_shift + 1) * npu.results.round_twice * (not split),
    }


def sum_sizes(npu: Npu) -> Features:
    """Bits of an integer PE's adders and sums, also without the first stage, which DSP blocks do.

    Each stage adds up to SUM_TERMS terms, and its sums have two bits more than they.
    """
    made = {"adders": 0.0, "sums": 0.0, "late_adders": 0.0, "late_sums": 0.0}
    terms = npu.array.kfp
    bits = npu.array.feature_bits + npu.array.weight_bits
    for stage in range(timing.sum_stages(npu)):
        sums = -(-terms // timing.SUM_TERMS)
        bits = min(npu.array.acc_bits, bits + 2)
        for name in ("", "late_") if stage else ("",):
            made[f"{name}adders"] += (terms - sums) * bits
            made[f"{name}sums"] += sums * bits
        terms = sums
    return made
