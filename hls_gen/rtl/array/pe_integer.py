"""Integer processing element: KFP products a cycle, summed, accumulated over a window (spec B11).  Golden twin:
golden/layers/conv.py.

    features[kfp x feature_bits] --> operands --> products --> sums of 4, in stages --> accumulator --> result
    weights[kfp x weight_bits]  ---^

One beat a cycle. Latency 3 cycles and one for each stage of sums (operands and products are registers, as DSP blocks
have them); ``result`` holds from the ``last`` beat of a window to that of the next.
"""

from functools import reduce

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, product, sign_extend
from bitloom.hls_gen.rtl.primitives.memory import Library

from .accumulator import accumulator


def pe_integer(library: Library, npu: Npu) -> Block:
    """Integer processing element of ``npu``."""
    b = Block(library.name(f"pe_integer_{npu.kfp}", npu), reset=False)
    features, weights = b.input("features", npu.word_bits), b.input("weights", npu.kfp * npu.weight_bits)
    valid, first = b.input("valid"), b.input("first")
    last = b.input("last") if npu.accumulators == 1 else None

    # # #

    terms: list[Signal] = []
    for k in range(npu.kfp):
        feature, weight = (
            b.reg(f"feature_{k}", npu.feature_bits, init=None),
            b.reg(f"weight_{k}", npu.weight_bits, init=None),
        )
        b.on(
            None,
            (feature, bits(features, k * npu.feature_bits, npu.feature_bits)),
            (weight, bits(weights, k * npu.weight_bits, npu.weight_bits)),
        )
        term = b.reg(f"product_{k}", npu.feature_bits + npu.weight_bits, init=None)
        b.on(None, (term, product(feature, weight)))
        terms.append(term)
    for stage in range(timing.sum_stages(npu)):
        sums = []
        for i in range(0, len(terms), timing.SUM_TERMS):
            part = b.reg(f"sum_{stage}_{i // timing.SUM_TERMS}", npu.acc_bits, init=None)
            wide = [sign_extend(t, npu.acc_bits) for t in terms[i : i + timing.SUM_TERMS]]
            b.on(None, (part, reduce(lambda a, c: a + c, wide)))
            sums.append(part)
        terms = sums
    accumulator(b, library, npu, lambda base: terms[0] + base, valid, first, last)
    return b
