"""Processing element that collects a window's products and reduces them once (spec A3, "collect").

Golden twin: golden/layers/accumulate.py, structure "collect".

    features[kfp] -+
                   XNOR --> register[collect] --> popcount or OR --> result
    weights[kfp] --+

The register shifts, which costs no LUT; golden writes product i to bit i, but neither reducer looks at the order. The
first beat of a window clears the rest, so that a short window adds nothing. The next window may begin while this one
is reduced; ``result`` holds until that of the next window. OR is reduced in the cycle after the last products; popcount
has registers among its adders.
"""

from functools import reduce

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, choose, const, nonzero, resize
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES, WEIGHTS
from .popcount import popcount


def pe_collect(library: Library, npu: Npu) -> Block:
    """Processing element that collects.

    Parameters
    ----------
    library : Library
        Where further modules come from.
    npu : Npu
        The NPU whose array it is part of; its ``collect`` is the most products that a window may have.

    Returns
    -------
    Block
        Module ``pe_collect_<collect>_<kfp>``.
    """
    acc = npu.acc_bits
    kind = {"popcount": "", "or": "or_", "both": "both_"}[npu.accumulate]
    header = Header(
        __doc__,
        rate="one beat of kfp products a cycle",
        latency=f"{timing.pe_latency(npu)} cycles from the features of a window's last beat to result",
        parameters={"kfp": npu.kfp, "collect": npu.collect, "accumulate": npu.accumulate, "acc_bits": acc},
    )
    b = Block(library.name(f"pe_collect_{kind}{npu.collect}_{npu.kfp}", npu), header, reset=False)
    features, weights = b.input("features", npu.kfp, means=FEATURES), b.input("weights", npu.kfp, means=WEIGHTS)
    valid = b.input("valid", means="there is a beat: features and weights are its")
    first = b.input("first", means="the beat is the first of its window")
    last = b.input("last", means="result is to take what was collected, at this clock edge")
    by_or = b.input("code", means="1: reduce by OR; comes with last") if npu.accumulate == "both" else None

    # # #

    collected = _collect(b, npu, features, weights, valid, first)
    if npu.accumulate == "or":
        held = b.reg("held", init=None)
        b.on(last, (held, nonzero(collected)))
        b.output("result", acc, resize(held, acc), means="whether any product of the window is 1")
        return b
    counts = _counts(b, library, collected, npu.collect)
    count = b.wire("count", acc, reduce(lambda a, c: a + c, [resize(c, acc) for c in counts]))
    if by_or is not None:
        some = b.wire("any", 1, any_of(*[nonzero(c) for c in counts]))
        count = choose(by_or, some, count, acc)
    result = b.output_reg("result", acc, init=None, means="products of the window that are 1")
    b.on(last, (result, count))
    return b


def _collect(b: Block, npu: Npu, features: Signal, weights: Signal, valid: Signal, first: Signal) -> Signal:
    """The register of a window's products."""
    match = b.wire("match", npu.kfp, ~(features ^ weights))
    collected, older = b.reg("collected", npu.collect, init=None), npu.collect - npu.kfp
    if not older:
        b.on(valid & first, (collected, match))
        return collected
    kept = b.wire("kept", older, choose(first, 0, bits(collected, 0, older), older))
    b.on(valid, (collected, Cat(kept, match)))
    return collected


def _counts(b: Block, library: Library, collected: Signal, n: int) -> list[Signal]:
    """Numbers of ones in the parts of the register; two registers later if there are several parts, else one."""
    counts = []
    for k, start in enumerate(range(0, n, timing.POPCOUNT_LANES)):
        size = min(timing.POPCOUNT_LANES, n - start)
        ones = b.wire(f"ones_{k}", bits_for(size))
        ports = {"features": bits(collected, start, size), "weights": const(-1, size), "count": ones}
        b.instance(library.get(popcount, size, library.popcount_body), f"popcount_{k}", **ports)
        counts.append(ones)
    if n <= timing.POPCOUNT_LANES:
        return counts
    sizes = [min(timing.POPCOUNT_LANES, n - low) for low in range(0, n, timing.POPCOUNT_LANES)]
    parts = [b.reg(f"part_{k}", bits_for(size), init=None) for k, size in enumerate(sizes)]
    for part, ones in zip(parts, counts):
        b.on(None, (part, ones))
    return parts
