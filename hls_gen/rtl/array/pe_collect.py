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
from bitloom.hls_gen.design.reducer import Or, Popcount
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, choose, nonzero, resize, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES, WEIGHTS
from .pe import kind_in_name
from .words import count_ones, words_with_a_match

WORDS = """
With word_lanes words of so many products are counted that have a 1 (words.py): always where the NPU accumulates by
``or_words``, else where the top bit of ``code`` is 1.
"""
"""Added to the contract where the NPU counts words."""


def pe_collect(library: Library, npu: Npu) -> Block:
    """Processing element that collects at most ``collect`` products: module ``pe_collect_<collect>_<kfp>``."""
    acc = npu.array.acc_bits
    reducer = npu.array.reducer
    counts_words = "or_words" in reducer.accumulations
    words = {"word_lanes": reducer.word_lanes} if counts_words else {}
    header = Header(
        __doc__ + WORDS * counts_words,
        rate="one beat of kfp products a cycle",
        latency=f"{timing.pe_latency(npu)} cycles from the features of a window's last beat to result",
        parameters={
            "kfp": npu.array.kfp,
            "collect": reducer.collect,
            "accumulate": reducer.accumulate,
            "acc_bits": acc,
            **words,
        },
    )
    name = f"pe_collect_{kind_in_name(reducer)}{reducer.collect}_{npu.array.kfp}"
    b = Block(library.name(name, npu), header, reset=False)
    features = b.input("features", npu.array.kfp, means=FEATURES)
    weights = b.input("weights", npu.array.kfp, means=WEIGHTS)
    valid = b.input("valid", means="there is a beat: features and weights are its")
    first = b.input("first", means="the beat is the first of its window")
    last = b.input("last", means="result is to take what was collected, at this clock edge")
    code = _code(b, npu) if npu.code_bits else None

    # # #

    collected = _collect(b, npu, features, weights, valid, first)
    if isinstance(reducer, Or):
        held = b.reg("held", init=None)
        b.on(last, (held, nonzero(collected)))
        b.output("result", acc, resize(held, acc), means="whether any product of the window is 1")
        return b
    count = None
    if isinstance(reducer, Popcount):
        counts = _counts(b, library, npu, collected, reducer.collect)
        count = b.wire("count", acc, reduce(lambda a, c: a + c, [resize(c, acc) for c in counts]))
        if "or" in reducer.choices:
            some = b.wire("any", 1, any_of(*[nonzero(c) for c in counts]))
            count = choose(bits(code, 0, 1), some, count, acc)
    if counts_words:
        hits = words_with_a_match(b, npu, collected, reducer.collect)
        counts = _counts(b, library, npu, hits, reducer.collect // reducer.word_lanes, "word_")
        words = b.wire("word_count", acc, reduce(lambda a, c: a + c, [resize(c, acc) for c in counts]))
        count = words if count is None else choose(bits(code, npu.code_bits - 1, 1), words, count, acc)
    result = b.output_reg("result", acc, init=None, means="products of the window that are 1")
    b.on(last, (result, count))
    return b


def _collect(b: Block, npu: Npu, features: Signal, weights: Signal, valid: Signal, first: Signal) -> Signal:
    """The register of a window's products."""
    match = b.wire("match", npu.array.kfp, ~(features ^ weights))
    collect = npu.array.reducer.collect
    collected = b.reg("collected", collect, init=None)
    older = collect - npu.array.kfp
    if not older:
        b.on(valid & first, (collected, match))
        return collected
    kept = b.wire("kept", older, choose(first, 0, bits(collected, 0, older), older))
    b.on(valid, (collected, Cat(kept, match)))
    return collected


def _code(b: Block, npu: Npu) -> Signal:
    """The port that says how a window is reduced."""
    texts = {"or": "by OR", "or_words": "by words"}
    ways = [texts[choice] for choice in npu.array.reducer.choices]
    said = f"1: reduce {ways[0]}"
    if len(ways) > 1:
        said = " and ".join(f"bit {k}: reduce {way}" for k, way in enumerate(ways))
    return b.input("code", npu.code_bits, means=f"{said}; comes with last")


def _counts(b: Block, library: Library, npu: Npu, ones: Signal, n: int, name: str = "") -> list[Signal]:
    """Numbers of ones in the parts of ``n`` bits; two registers later where the NPU counts in parts, else one."""
    counts = count_ones(b, library, ones, n, name)
    if not timing.counts_in_parts(npu):
        return counts
    parts = [b.reg(f"{name}part_{k}", width(count), init=None) for k, count in enumerate(counts)]
    for part, count in zip(parts, counts):
        b.on(None, (part, count))
    return parts
