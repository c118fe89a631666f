"""Integer processing element: KFP products a cycle, summed, accumulated over a window (spec B11).

Golden twin: golden/layers/conv.py.

    features[kfp x feature_bits] --> operands --> products --> sums of 4, in stages --> accumulator --> result
    weights[kfp x weight_bits]  ---^

Features and weights are two's complement. Operands and products are registers, as DSP blocks have them, and so is each
stage of sums. ``result`` holds from the last beat of a window to that of the next.
"""

from functools import reduce

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, product, sign_extend
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES, WEIGHTS, WindowPorts, accumulator


def pe_integer(library: Library, npu: Npu) -> Block:
    """Integer processing element: module ``pe_integer_<kfp>``."""
    sizes = ("kfp", "feature_bits", "weight_bits", "acc_bits", "accumulators")
    header = Header(
        __doc__,
        rate="one beat a cycle",
        latency=f"{timing.pe_latency(npu)} cycles from the features of a window's last beat to result",
        parameters=npu.values(*sizes),
    )
    b = Block(library.name(f"pe_integer_{npu.array.kfp}", npu), header, reset=False)
    features = b.input("features", npu.array.word_bits, means=FEATURES)
    weights = b.input("weights", npu.array.kfp * npu.array.weight_bits, means=WEIGHTS)
    window = WindowPorts.ports(b, npu)

    # # #

    b.comment("Operands and products, each in a register, as a DSP block has them.")
    terms: list[Signal] = []
    for k in range(npu.array.kfp):
        feature = b.reg(f"feature_{k}", npu.array.feature_bits, init=None)
        weight = b.reg(f"weight_{k}", npu.array.weight_bits, init=None)
        b.on(
            None,
            (feature, bits(features, k * npu.array.feature_bits, npu.array.feature_bits)),
            (weight, bits(weights, k * npu.array.weight_bits, npu.array.weight_bits)),
        )
        term = b.reg(f"product_{k}", npu.array.feature_bits + npu.array.weight_bits, init=None)
        b.on(None, (term, product(feature, weight)))
        terms.append(term)
    b.comment("Sums, a register a stage.")
    for stage in range(timing.sum_stages(npu)):
        sums = []
        for i in range(0, len(terms), timing.SUM_TERMS):
            part = b.reg(f"sum_{stage}_{i // timing.SUM_TERMS}", npu.array.acc_bits, init=None)
            wide = [sign_extend(t, npu.array.acc_bits) for t in terms[i : i + timing.SUM_TERMS]]
            b.on(None, (part, reduce(lambda a, c: a + c, wide)))
            sums.append(part)
        terms = sums
    accumulator(b, library, npu, lambda base: base + terms[0], window)
    return b
