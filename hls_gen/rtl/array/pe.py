"""Processing element: KFP products a cycle, summed, accumulated over a window.

Golden twins: golden/layers/conv.py, golden/layers/accumulate.py.

    features[kfp] -+
                   XNOR --> popcount --> register --> weigh --> accumulator --> result
    weights[kfp] --+

A product of two bits is their XNOR, so the sum of a beat's products is the number of lanes that match. ``result``
holds from the last beat of a window to that of the next. The convolver delays what says how a beat counts so that it
comes with the beat's count.

See Also
--------
PLANES, SHIFTS, BOTH, WORDS : what a beat counts for, by what the NPU has.
popcount_planes.py : the one tree that adds all lane groups up.
words.py : which words have a match.
pe_signed.py : for an NPU that reads nothing but integers.
pe_or.py : for an NPU that knows only OR.
pe_collect.py : for an NPU that collects a window's products first.
"""

from collections.abc import Callable
from functools import reduce

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import BinaryReducer, OrWords
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    any_of,
    bits,
    choose,
    nonzero,
    resize,
    sign_extend,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES, WEIGHTS, WindowPorts, accumulator
from .popcount import popcount
from .popcount_planes import popcount_planes, times, weighted_bits
from .words import count_ones, words_with_a_match

PLANES = """
Where ``code`` is 1, lane group g holds bit plane g of an integer input of {planes} planes. The matches of group g have
weight 2^g, those of the last group -2^{last}; group 0 also takes the constant lanes, the last group what is left over.
Where ``code`` is 0 every lane has weight 1.
"""
"""Added to the contract where the NPU has bit planes."""
SHIFTS = """
The low bits of ``code`` are a shift and, above it, a sign: the count of the whole word is shifted left and, with sign
1, subtracted.
"""
"""Added to the contract where the NPU has no bit planes, and weighs its words."""
BOTH = """
The top bit of ``code`` chooses OR: a beat with any match makes the total 1, and the other bits of ``code`` are 0. One
adder serves both ways.
"""
"""Added to the contract where the NPU accumulates in both ways: by sums and by OR."""
WORDS = """
Words of {lanes} lanes are counted that have a match (words.py){when}.
"""
"""Added to the contract where the NPU counts words."""


def kind_in_name(reducer: BinaryReducer) -> str:
    """Part of a PE's module name that says how the PE reduces products; "" where it only counts them."""
    kind = "" if reducer.accumulate == "popcount" else f"{reducer.accumulate}_"
    return kind + "words_" * ("or_words" in reducer.choices)


def pe(library: Library, npu: Npu) -> Block:
    """Processing element of a binary NPU.

    Module ``pe_<kfp>``, with ``both``, ``or_words`` or ``words`` before the number where it can do so.
    """
    reducer = npu.array.reducer
    header = Header(
        _contract(npu),
        rate="one beat a cycle",
        latency=f"{timing.pe_latency(npu)} cycles from the features of a window's last beat to result",
        parameters=npu.values(*_parameters(npu)),
    )
    b = Block(library.name(f"pe_{kind_in_name(reducer)}{npu.array.kfp}", npu), header, reset=False)
    features = b.input("features", npu.array.kfp, means=FEATURES)
    weights = b.input("weights", npu.array.kfp, means=WEIGHTS)
    window = WindowPorts.ports(b, npu)
    code = b.input("code", npu.code_bits, means="how the beat's matches are weighed") if npu.code_bits else None

    # # #

    weight_bits = npu.code_bits - len(reducer.choices)
    weight_code = bits(code, 0, weight_bits) if weight_bits else None
    if npu.array.planes:
        assert weight_code is not None, "integers alone are added by pe_signed.py"
        sums, carry = _plane_sums(b, library, npu, features, weights)
        term = _choose_sum(b, npu, sums, weight_code)
        parts = [sums[-1], carry]
    else:
        count = _words if isinstance(reducer, OrWords) else _count
        parts = [count(b, library, npu, features, weights)]
        term, carry = _weigh(b, npu, parts[0], weight_code)
    if "or_words" in reducer.choices:
        words = _words(b, library, npu, features, weights)
        chosen = bits(code, npu.code_bits - 1, 1)
        term = b.wire("term_or_words", npu.array.acc_bits, choose(chosen, words, term, npu.array.acc_bits))
        carry = None if carry is None else b.wire("carry_or_words", 1, carry & ~chosen)
    if "or" in reducer.choices:
        merge = _either(b, npu, parts, term, carry, bits(code, weight_bits, 1))
    else:
        merge = lambda base: _sum(b, npu, term, base, carry)  # noqa: E731
    accumulator(b, library, npu, merge, window)
    return b


def _contract(npu: Npu) -> str:
    """The header's text: this file's text, and those of PLANES to WORDS that hold for the NPU."""
    reducer = npu.array.reducer
    weighing_bits = npu.code_bits - len(reducer.choices)
    texts = [__doc__.partition("\nSee Also\n")[0]]
    if npu.array.planes:
        texts.append(PLANES.format(planes=npu.array.planes, last=npu.array.planes - 1))
    elif weighing_bits:
        texts.append(SHIFTS)
    if "or" in reducer.choices:
        texts.append(BOTH)
    if "or_words" in reducer.accumulations:
        when = ", where one more bit of ``code``, above all others, is 1" * ("or_words" in reducer.choices)
        texts.append(WORDS.format(lanes=reducer.word_lanes, when=when))
    return "".join(texts)


def _parameters(npu: Npu) -> tuple[str, ...]:
    """Names of the NPU's values that shape the processing element, for the header."""
    words = ("word_lanes",) if "or_words" in npu.array.reducer.accumulations else ()
    weighs = ("planes",) if npu.array.planes else ("shift_bits",) if npu.value("shift_bits") else ()
    return ("kfp", *weighs, "acc_bits", "accumulators", *words)


def _sum(b: Block, npu: Npu, term: Signal, base: Signal, carry: Signal | None) -> Signal:
    """base + term + carry. The carry is a bit below both, so that the carry chain of the adder takes it at no cost; its
    first operand is a register, so that a LUT a bit makes the second one, too."""
    if carry is None:
        return base + term
    acc = npu.array.acc_bits
    return bits(b.wire("sum_and_unused_bit", acc + 1, Cat(base, carry) + Cat(term, carry)), 1, acc)


def _either(
    b: Block, npu: Npu, parts: list[Signal], term: Signal, carry: Signal | None, by_or: Signal
) -> Callable[[Signal], Signal]:
    """A function from the sum so far to the next one: it adds the term, or with ``by_or`` makes the sum 1 where one of
    ``parts`` is not 0."""
    acc = npu.array.acc_bits
    some = b.wire("any", 1, any_of(*[nonzero(part) for part in parts]))
    carry = None if carry is None else b.wire("carry", 1, carry & ~by_or)

    def merge(base: Signal) -> Signal:
        news = b.wire("news", 1, some & ~bits(base, 0, 1))  # adding it to 0 or 1 is OR
        return _sum(b, npu, b.wire("addend", acc, choose(by_or, news, term, acc)), base, carry)

    return merge


def _plane_sums(b: Block, library: Library, npu: Npu, features: Signal, weights: Signal) -> tuple[list[Signal], Signal]:
    """Registers: (sums of a beat without lane 0, whether lane 0 matches). The sums are the weighted one and the plain
    one."""
    weighted = min(weighted_bits(npu.array.kfp, npu.array.planes), npu.array.acc_bits)
    block = library.get(popcount_planes, npu.array.kfp, npu.array.planes, weighted, library.target)
    widths = {"weighted": weighted, "plain": bits_for(npu.array.kfp - 1), "rest": 1}
    now = {name: b.wire(f"{name}_now", w) for name, w in widths.items()}
    b.instance(block, "popcount", features=features, weights=weights, **now)
    held = {name: b.reg(name, w, init=None) for name, w in widths.items()}
    b.on(None, *[(held[name], now[name]) for name in widths])
    rest = held.pop("rest")
    return list(held.values()), rest


def _choose_sum(b: Block, npu: Npu, sums: list[Signal], code: Signal) -> Signal:
    """The beat's contribution but for lane 0: the weighted sum, or the plain one where ``code`` is 0."""
    w = npu.array.acc_bits
    weighted, plain = sums
    part = min(w, max(width(weighted), width(plain) + 1))
    chosen = b.wire("chosen", part, choose(code, sign_extend(weighted, part), plain, part))
    return b.wire("term", w, sign_extend(chosen, w))


def _count(b: Block, library: Library, npu: Npu, features: Signal, weights: Signal) -> Signal:
    """Registered number of matches."""
    chunks = []
    lanes = npu.array.kfp
    for i, start in enumerate(range(0, lanes, timing.POPCOUNT_LANES)):
        n = min(timing.POPCOUNT_LANES, lanes - start)
        ones = b.wire(f"ones_{i}", bits_for(n))
        ports = {"features": bits(features, start, n), "weights": bits(weights, start, n)}
        b.instance(library.get(popcount, n, library.target), f"popcount_{i}", **ports, count=ones)
        part = b.reg(f"part_{i}", bits_for(n), init=None)
        b.on(None, (part, ones))
        chunks.append(part)
    return _added(b, npu, chunks, lanes, "count")


def _words(b: Block, library: Library, npu: Npu, features: Signal, weights: Signal) -> Signal:
    """Registered number of words with a match, in as many cycles as `_count` takes."""
    match = b.wire("match", npu.array.kfp, ~(features ^ weights))
    n = npu.array.kfp // npu.array.reducer.word_lanes
    hits = words_with_a_match(b, npu, match, npu.array.kfp)
    parts = []
    for k, ones in enumerate(count_ones(b, library, hits, n, "word_")):
        parts.append(b.reg(f"word_part_{k}", width(ones), init=None))
        b.on(None, (parts[k], ones))
    return _added(b, npu, parts, n, "word_count")


def _added(b: Block, npu: Npu, parts: list[Signal], most: int, name: str) -> Signal:
    """The sum of ``parts``, at most ``most``, a cycle later where the NPU counts in parts; else the only part."""
    if not timing.counts_in_parts(npu):
        return parts[0]
    count = b.reg(name, bits_for(most), init=None)
    b.on(None, (count, reduce(lambda a, c: a + c, [resize(c, bits_for(most)) for c in parts])))
    return count


def _weigh(b: Block, npu: Npu, count: Signal, code: Signal | None) -> tuple[Signal, Signal | None]:
    """The beat's contribution to the sum, in accumulator width, and the carry that it wants: -v = ~v + 1."""
    w = npu.array.acc_bits
    if code is None:
        return b.wire("term", w, count), None
    shift_bits = npu.array.reducer.shift_bits
    shift = bits(code, 0, shift_bits)
    negative = bits(code, shift_bits, 1)
    value = count
    for k in range(shift_bits):
        wide = min(width(value) + (1 << k), w)
        value = b.wire(f"shifted_{k}", wide, choose(bits(shift, k, 1), times(value, 1 << k, wide), value, wide))
    return b.wire("term", w, resize(value, w) ^ Repeat(negative, w)), negative
