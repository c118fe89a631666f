"""Processing element that knows only OR: one bit says whether any product of the window is 1 (spec A2).  Golden twin:
golden/layers/accumulate.py, kind "or".

    features[kfp] -+
                   XNOR, OR of each three lanes --> register --> OR --> OR <--> register --> result
    weights[kfp] --+

One beat a cycle. Latency 2 cycles from features to ``result``, which holds from the ``last`` beat of a window to that
of the next. ``first`` and ``last`` come with the beat, delayed by the convolver. Three products and their OR are one
LUT of six inputs.
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, bits, nonzero
from bitloom.hls_gen.rtl.primitives.memory import Library

from .accumulator import accumulator

LANES = 3
"""Lanes of one register."""


def pe_or(library: Library, npu: Npu) -> Block:
    """Processing element of ``npu``."""
    b = Block(library.name(f"pe_or_{npu.kfp}", npu), reset=False)
    features, weights = b.input("features", npu.kfp), b.input("weights", npu.kfp)
    valid, first = b.input("valid"), b.input("first")
    last = b.input("last") if npu.accumulators == 1 else None

    # # #

    match = b.wire("match", npu.kfp, ~(features ^ weights))
    starts = range(0, npu.kfp, LANES)
    found = b.reg("found", len(starts), init=None)
    for k, start in enumerate(starts):
        some = nonzero(bits(match, start, min(LANES, npu.kfp - start)))
        b.on(None, (found if len(starts) == 1 else found[k], some))
    term = b.wire("any", 1, nonzero(found))
    accumulator(b, library, npu, lambda base: term | base, valid, first, last, w=1)
    return b
