"""Multipliers that several processing elements share: each makes a feature's products with one weight of every PE
(spec B11; hls_gen/design/packed_products.py).

    weights of a lane, one a PE --> added, so many bits apart --> operand --+
    feature of the lane ----------> operand --------------------------------+--> product: PE 0 | PE 1 | ...

Operands and products are registers, as DSP blocks have them; the addition in front of them is what a DSP block's
pre-adder does. A product below 0 has taken 1 off the one above: ``carries_<PE>`` gives it back, and the PE adds it
(pe_sums.py).
"""

from functools import reduce

from veriloggen import Cat

from bitloom.hls_gen.design import packed_products
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, const, eq, product, side_by_side, sign_extend
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES

LATENCY = 2
"""Cycles from features and weights to products: registers of operands and of products."""


def multipliers(library: Library, npu: Npu, kernels: int) -> Block:
    """The multipliers of a word's lanes for the kernels of several PEs.

    Parameters
    ----------
    npu : Npu
        The NPU whose array they are part of.
    kernels : int
        PEs that share them, >= 2.

    Returns
    -------
    Block
        Module ``multipliers_<kfp>x<kernels>``.
    """
    features_of = npu.array.feature_bits
    weights_of = npu.array.weight_bits
    sizes = npu.values("kfp", "feature_bits", "weight_bits")
    header = Header(
        __doc__,
        rate="one beat a cycle",
        latency=f"{LATENCY} cycles from features and weights to products and carries",
        parameters={"kernels": kernels, **sizes},
    )
    b = Block(library.name(f"multipliers_{npu.array.kfp}x{kernels}", npu), header, reset=False)
    features = b.input("features", npu.array.word_bits, means=FEATURES)
    weights = b.input("weights", kernels * npu.array.kfp * weights_of, means="weights of the beat, those of PE 0 low")

    # # #

    lanes = [_lane(b, npu, k, kernels, features, weights) for k in range(npu.array.kfp)]
    b.comment("The products of each PE side by side, lane 0 low, and what it adds to them.")
    w = features_of + weights_of
    for j in range(kernels):
        b.output(
            f"products_{j}",
            npu.array.kfp * w,
            side_by_side([products[j] for products, _ in lanes]),
            f"products of PE {j}",
        )
    for j in range(1, kernels):
        means = f"what PE {j} adds to each of its products"
        b.output(f"carries_{j}", npu.array.kfp, side_by_side([carries[j - 1] for _, carries in lanes]), means)
    return b


def _lane(
    b: Block, npu: Npu, k: int, kernels: int, features: Signal, weights: Signal
) -> tuple[list[Signal], list[Signal]]:
    """The multiplier of lane k: the product of each PE, and what all but the first PE add to it."""
    f = npu.array.feature_bits
    w = npu.array.weight_bits
    spacing = packed_products.spacing(kernels, f, w)
    operand_bits = packed_products.operand_bits(kernels, spacing, w)
    product_bits = (kernels - 1) * spacing + f + w
    feature = b.reg(f"feature_{k}", f, init=None)
    b.on(None, (feature, bits(features, k * f, f)))
    lane_weights = [b.reg(f"weight_{k}_{j}", w, init=None) for j in range(kernels)]
    b.on(None, *[(weight, bits(weights, (j * npu.array.kfp + k) * w, w)) for j, weight in enumerate(lane_weights)])
    spaced = [
        Cat(sign_extend(weight, operand_bits - j * spacing), *([const(0, j * spacing)] * (j > 0)))
        for j, weight in enumerate(lane_weights)
    ]
    operand = b.wire(f"operand_{k}", operand_bits, reduce(lambda a, c: a + c, spaced))
    packed = b.reg(f"product_{k}", product_bits, init=None)
    b.on(None, (packed, product(operand, feature)))
    carries = [bits(packed, j * spacing - 1, 1) for j in range(1, kernels)]
    if spacing == f + w:
        return [bits(packed, j * spacing, f + w) for j in range(kernels)], carries
    smallest = b.reg(f"smallest_{k}", init=None)  # the lower product is 2^(spacing - 1), which looks negative
    b.on(None, (smallest, eq(feature, 1 << f - 1) & eq(lane_weights[0], 1 << w - 1)))
    carry = b.wire(f"carry_{k}", 1, carries[0] & ~smallest)
    return [Cat(carry, bits(packed, 0, spacing)), bits(packed, spacing, f + w)], [carry]
