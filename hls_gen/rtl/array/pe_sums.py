"""Integer processing element whose products come from multipliers that it shares with others (spec B11).

    products[kfp] (multipliers.py) --> sums of 4, in stages --> accumulator --> result

Together with the multipliers it computes what pe_integer.py does, in as many cycles. Sums are as wide as their products
need. ``result`` holds from the last beat of a window to that of the next.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, sign_extend, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import WindowPorts, accumulator, added
from .multipliers import LATENCY

CARRIED = """
To each product a carry is added:

    carries[kfp] (multipliers.py) --> sums of 4

An adder takes a carry at no cost: of the carries that come with the terms of a sum all but one go into its adders, and
one goes on with the sum, up to the accumulator.
"""
"""Added to the header of a PE with carries."""

Term = tuple[Signal, Signal | None]
"""A number in two's complement, and a carry of 0 or 1 that is still to be added to it; None: no carry."""


def pe_sums(library: Library, npu: Npu, carried: bool) -> Block:
    """Integer processing element without multipliers.

    Parameters
    ----------
    npu : Npu
        The NPU whose array it is part of.
    carried : bool
        Whether carries are to be added to the products: for all but the first of the PEs that share multipliers.

    Returns
    -------
    Block
        Module ``pe_sums_<kfp>``, or ``pe_sums_carried_<kfp>``.
    """
    w = npu.array.feature_bits + npu.array.weight_bits
    kind = "pe_sums_carried" if carried else "pe_sums"
    sizes = ("kfp", "feature_bits", "weight_bits", "acc_bits", "accumulators")
    header = Header(
        __doc__ + CARRIED * carried,
        rate="one beat a cycle",
        latency=f"{timing.pe_latency(npu) - LATENCY} cycles from the products of a window's last beat to result",
        parameters=npu.values(*sizes),
    )
    b = Block(library.name(f"{kind}_{npu.array.kfp}", npu), header, reset=False)
    products = b.input("products", npu.array.kfp * w, means="products of the beat, one a lane, lane 0 low")
    carries = b.input("carries", npu.array.kfp, means="what is added to each of them") if carried else None
    window = WindowPorts.ports(b, npu)

    # # #

    terms: list[Term] = [
        (b.wire(f"product_{k}", w, bits(products, k * w, w)), None if carries is None else bits(carries, k, 1))
        for k in range(npu.array.kfp)
    ]
    b.comment("Sums, a register a stage.")
    for stage in range(timing.sum_stages(npu)):
        groups = [terms[i : i + timing.SUM_TERMS] for i in range(0, len(terms), timing.SUM_TERMS)]
        terms = [_sum(b, f"{stage}_{i}", group, npu.array.acc_bits) for i, group in enumerate(groups)]
    ((total, carry),) = terms
    total = b.wire("term", npu.array.acc_bits, sign_extend(total, npu.array.acc_bits))
    accumulator(b, library, npu, lambda base: added(b, "merged", base, total, carry), window)
    return b


def _sum(b: Block, name: str, terms: list[Term], most: int) -> Term:
    """The sum of some terms as a register, of ``most`` bits at most, with the carry that is left over."""
    addends = [value for value, _ in terms]
    w = min(most, max(map(width, addends)) + (bits_for(len(addends) - 1) if len(addends) > 1 else 0))
    addends = [sign_extend(value, w) for value in addends]
    carries = [carry for _, carry in terms if carry is not None]
    while len(addends) > 1:
        count = len(addends)
        pairs = zip(addends[::2], addends[1::2])
        sums = [
            added(b, f"part_{name}_{count}_{i}", *pair, carries.pop() if len(carries) > 1 else None)
            for i, pair in enumerate(pairs)
        ]
        addends = [*sums, *addends[count & ~1 :]]
    total = b.reg(f"sum_{name}", w, init=None)
    b.on(None, (total, addends[0]))
    if not carries:
        return total, None
    (left,) = carries
    carry_out = b.reg(f"carry_{name}", init=None)
    b.on(None, (carry_out, left))
    return total, carry_out
