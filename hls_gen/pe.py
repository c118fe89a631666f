"""Processing element: KFP products a cycle, summed, accumulated over a window.  Golden twins: golden/conv.py,
golden/accumulate.py.

    features[kfp] -+
                   XNOR --> popcount of each lane group --> weigh --> accumulator --> result
    weights[kfp] --+

One beat a cycle. Latency 3 cycles (4 above 64 lanes) from features to ``result``, which holds from the ``last`` beat
of a window to that of the next. ``first`` and ``last`` come with the beat, delayed by the convolver; so does
``code``.

Groups (``planes`` = P > 0): lane group g holds bit plane g of an integer input; where ``code`` is 1, its count has
weight 2^g, the last one -2^(P-1); group 0 also takes the constant lanes, the last group what is left over. Where
``code`` is 0 every lane has weight 1. Without groups ``code`` is (shift, sign): the count of the whole word is
shifted and, with sign 1, subtracted.

Where the NPU accumulates ``both`` ways, the top bit of ``code`` chooses OR: a beat with any match makes the total 1;
the other bits of ``code`` are 0. One adder serves both. (An NPU that knows only OR has pe_or.py; one that collects a
window's products first, pe_collect.py.)
"""

from collections.abc import Callable
from functools import reduce

from veriloggen import Cat, Repeat

from .accumulator import accumulator
from .design import Npu
from .memory import Library
from .popcount import popcount
from .rtl import Block, Signal, any_of, bits, bits_for, choose, const, fit, nonzero, width

CHUNK = 64
"""Lanes of one popcount module; wider groups are summed in one more register stage."""


def groups(npu: Npu) -> list[tuple[int, int]]:
    """(first lane, lanes) of each lane group. Source: ../design, "Bit planes"."""
    if not npu.planes:
        return [(0, npu.kfp)]
    size = npu.plane_lanes
    spare = npu.kfp - size * (npu.planes + 1)
    return [(0, 2 * size)] + [
        ((g + 1) * size, size + (spare if g == npu.planes - 1 else 0)) for g in range(1, npu.planes)
    ]


def extra_stage(npu: Npu) -> bool:
    """Whether a popcount is wide enough to take two register stages."""
    return max(lanes for _, lanes in groups(npu)) > CHUNK


def pe_latency(npu: Npu) -> int:
    """Cycles from features to result."""
    return 4 if extra_stage(npu) else 3


def pe(library: Library, npu: Npu) -> Block:
    """Processing element of ``npu``."""
    both = npu.accumulate == "both"
    b = Block(library.name(f"pe_both_{npu.kfp}" if both else f"pe_{npu.kfp}", npu), reset=False)
    features, weights = b.input("features", npu.kfp), b.input("weights", npu.kfp)
    valid, first = b.input("valid"), b.input("first")
    last = b.input("last") if npu.accumulators == 1 else None
    code = b.input("code", npu.code_bits) if npu.code_bits else None

    # # #

    words = (features, weights)
    counts = [_count(b, library, words, g, low, lanes, extra_stage(npu)) for g, (low, lanes) in enumerate(groups(npu))]
    weight_bits = npu.code_bits - both
    term = _weigh(b, npu, counts, bits(code, 0, weight_bits) if weight_bits else None)
    merge = _either(b, npu, counts, term, bits(code, weight_bits, 1)) if both else lambda base: term + base
    accumulator(b, library, npu, merge, valid, first, last)
    return b


def _either(b: Block, npu: Npu, counts: list[Signal], term: Signal, by_or: Signal) -> Callable[[Signal], Signal]:
    """What adds the term, or with ``by_or`` makes the total 1 where a count is not 0."""
    acc = npu.acc_bits
    some = b.wire("any", 1, any_of(*[nonzero(count) for count in counts]))

    def merge(base: Signal) -> Signal:
        news = b.wire("news", 1, some & ~bits(base, 0, 1))  # adding it to 0 or 1 is OR
        return b.wire("addend", acc, choose(by_or, news, term, acc)) + base

    return merge


def _count(
    b: Block, library: Library, words: tuple[Signal, Signal], group: int, low: int, lanes: int, two_stages: bool
) -> Signal:
    """Registered number of matches of features and weights in ``lanes`` lanes from ``low`` on."""
    chunks = []
    for i, start in enumerate(range(low, low + lanes, CHUNK)):
        n = min(CHUNK, low + lanes - start)
        ones = b.wire(f"ones_{group}_{i}", bits_for(n))
        ports = {name: bits(word, start, n) for name, word in zip(("features", "weights"), words)}
        b.instance(library.get(popcount, n, library.popcount_body), f"popcount_{group}_{i}", **ports, count=ones)
        part = b.reg(f"part_{group}_{i}", bits_for(n), init=None)
        b.on(None, (part, ones))
        chunks.append(part)
    if not two_stages:
        return chunks[0]
    count = b.reg(f"count_{group}", bits_for(lanes), init=None)
    b.on(None, (count, reduce(lambda a, c: a + c, [fit(c, bits_for(lanes)) for c in chunks])))
    return count


def _weigh(b: Block, npu: Npu, counts: list[Signal], code: Signal | None) -> Signal:
    """The beat's contribution to the sum, in accumulator width."""
    w = npu.acc_bits
    if code is None:
        return b.wire("term", w, counts[0])
    if not npu.planes:
        shift, negative = bits(code, 0, npu.shift_bits), bits(code, npu.shift_bits, 1)
        value = counts[0]
        for k in range(npu.shift_bits):
            wide = min(width(value) + (1 << k), w)
            value = b.wire(f"shifted_{k}", wide, choose(bits(shift, k, 1), _times(value, 1 << k, wide), value, wide))
        value = b.wire("shifted", w, value)
        return b.wire("term", w, choose(negative, ~value + const(1, w), value, w))
    weighed = [counts[0]]
    for g, count in enumerate(counts[1:], 1):
        wide = min(width(count) + g, w)
        weighed.append(b.wire(f"weighed_{g}", w, choose(code, _times(count, g, wide), count, wide)))
    low = reduce(lambda a, c: a + c, [fit(v, w) for v in weighed[:-1]])
    sign = Repeat(code, w)  # -v = ~v + 1
    return b.wire("term", w, low + (weighed[-1] ^ sign) + fit(code, w))


def _times(value: Signal, shift: int, w: int) -> Signal:
    """value * 2^shift in w bits; what is cut was never set, since the accumulator holds the sum."""
    return fit(Cat(bits(value, 0, min(width(value), w - shift)), const(0, shift)), w)
