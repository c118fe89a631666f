"""Processing element that knows only OR: one bit says whether any product of the window is 1 (spec A2).

Golden twin: golden/layers/accumulate.py, "or".

    features[kfp] -+
                   XNOR, OR of each three lanes --> register --> OR --> OR <--> register --> result
    weights[kfp] --+

``result`` holds from the last beat of a window to that of the next. The convolver delays ``valid``, ``first`` and
``last`` so that they come with the beat's term. Three products and their OR are one LUT of six inputs.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, bits, nonzero
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES, WEIGHTS, WindowPorts, accumulator

LANES = 3
"""Lanes of one register."""


def pe_or(library: Library, npu: Npu) -> Block:
    """Processing element that ORs the products of a window: module ``pe_or_<kfp>``."""
    header = Header(
        __doc__,
        rate="one beat a cycle",
        latency=f"{timing.pe_latency(npu)} cycles from the features of a window's last beat to result",
        parameters={"kfp": npu.array.kfp, "accumulators": npu.array.accumulators},
    )
    b = Block(library.name(f"pe_or_{npu.array.kfp}", npu), header, reset=False)
    features = b.input("features", npu.array.kfp, means=FEATURES)
    weights = b.input("weights", npu.array.kfp, means=WEIGHTS)
    window = WindowPorts.ports(b, npu)

    # # #

    match = b.wire("match", npu.array.kfp, ~(features ^ weights))
    starts = range(0, npu.array.kfp, LANES)
    hits = b.reg("found", len(starts), init=None)
    for k, start in enumerate(starts):
        some = nonzero(bits(match, start, min(LANES, npu.array.kfp - start)))
        b.on(None, (hits if len(starts) == 1 else hits[k], some))
    term = b.wire("any", 1, nonzero(hits))
    accumulator(b, library, npu, lambda base: term | base, window, w=1)
    return b
