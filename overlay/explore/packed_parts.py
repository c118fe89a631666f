"""Area of integer PEs that share multipliers, by rule: what their adders and registers have bits.

Modules: hls_gen/rtl/array/multipliers.py, of which a DSP block holds the product and one addition of weights, and
pe_sums.py, in which each bit of an adder takes a LUT. tests/overlay/explore/test_packed_parts.py has Yosys' figures.
"""

from collections.abc import Iterator

from bitloom.hls_gen.design import packed_products, timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for


def sharing(npu: Npu) -> list[int]:
    """How many PEs share their multipliers, group by group; 1: one that is left over, with multipliers of its own."""
    full, rest = divmod(npu.array.kgp, npu.array.kernels_per_multiplier)
    return [npu.array.kernels_per_multiplier] * full + [rest] * (rest > 0)


def sum_bits(npu: Npu) -> tuple[int, int]:
    """Bits of the adders and of the registers of a PE without multipliers. Carries go into adders at no cost."""
    adders = registers = 0
    for terms, w in _stages(npu):
        for first in range(0, terms, timing.SUM_TERMS):
            count = min(timing.SUM_TERMS, terms - first)
            wide = min(npu.array.acc_bits, w + (bits_for(count - 1) if count > 1 else 0))
            adders += (count - 1) * wide
            registers += wide
    totals = npu.array.acc_bits * (2 if npu.array.accumulators == 1 else 0)
    return adders + npu.array.acc_bits, registers + totals


def multiplier_bits(npu: Npu, kernels: int) -> tuple[int, int]:
    """LUTs and flip-flops of the multipliers of ``kernels`` PEs, beside DSP blocks.

    Of the additions of weights one is a DSP block's, and so is the register of one weight. Where products lie as close
    as they can, both smallest operands are looked for, and no weight's register is the block's. Registers of features,
    those of all groups, are not counted: they are the blocks', or there once.
    """
    f = npu.array.feature_bits
    w = npu.array.weight_bits
    apart = packed_products.spacing(kernels, f, w)
    lut = (kernels - 2) * packed_products.operand_bits(kernels, apart, w)
    close = apart < f + w
    return npu.array.kfp * (lut + 4 * close), npu.array.kfp * (kernels * w + 1 if close else (kernels - 1) * w)


def _stages(npu: Npu) -> Iterator[tuple[int, int]]:
    """Terms of each stage of the adder tree, and their bits."""
    terms = npu.array.kfp
    w = npu.array.feature_bits + npu.array.weight_bits
    for _ in range(timing.sum_stages(npu)):
        yield terms, w
        most = min(timing.SUM_TERMS, terms)
        terms = -(-terms // timing.SUM_TERMS)
        w = min(npu.array.acc_bits, w + (bits_for(most - 1) if most > 1 else 0))
