"""Processing element that collects a window's products and reduces them once (spec A3, *collect*).  Golden twin:
golden/layers/accumulate.py, structure "collect".

    features[kfp] -+
                   XNOR --> register[collect] --> popcount or OR --> result
    weights[kfp] --+

One beat a cycle, KFP products a beat. The register shifts, which costs no LUT; golden writes product i to bit i, but
neither reducer looks at the order. ``valid`` and ``first`` come with the features; the first beat of a window clears
the rest, so that a short window adds nothing. ``last`` comes a cycle before ``result``.

Latency from the features of the last beat to ``result``: OR 2 cycles, so that it is reduced in the cycle after the last
products, as golden has it; popcount 3 (4 above 64 bits), since there are registers among its adders. The next window
may begin while this one is reduced. ``result`` holds until that of the next window.

Where the NPU accumulates ``both`` ways ``code``, which comes with ``last``, chooses OR.
"""

from functools import reduce

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, choose, const, nonzero, resize
from bitloom.hls_gen.rtl.primitives.memory import Library

from .popcount import popcount


def pe_collect(library: Library, npu: Npu) -> Block:
    """Processing element of ``npu``."""
    acc = npu.acc_bits
    kind = {"popcount": "", "or": "or_", "both": "both_"}[npu.accumulate]
    b = Block(library.name(f"pe_collect_{kind}{npu.collect}_{npu.kfp}", npu), reset=False)
    features, weights = b.input("features", npu.kfp), b.input("weights", npu.kfp)
    valid, first, last = b.input("valid"), b.input("first"), b.input("last")
    by_or = b.input("code") if npu.accumulate == "both" else None

    # # #

    collected = _collect(b, npu, features, weights, valid, first)
    if npu.accumulate == "or":
        held = b.reg("held", init=None)
        b.on(last, (held, nonzero(collected)))
        b.output("result", acc, resize(held, acc))
        return b
    counts = _counts(b, library, collected, npu.collect)
    count = b.wire("count", acc, reduce(lambda a, c: a + c, [resize(c, acc) for c in counts]))
    if by_or is not None:
        some = b.wire("any", 1, any_of(*[nonzero(c) for c in counts]))
        count = choose(by_or, some, count, acc)
    result = b.output_reg("result", acc, init=None)
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
