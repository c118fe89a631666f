"""Quotients of averages, module ``divide``; the module's text, `_contract`, says how they are made."""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, const, product, resize, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header


def divide(library: Library, npu: Npu) -> Block:
    """The quotient of one lane, a sum of features divided by their number: module ``divide``."""
    w = npu.pool_sum_bits
    out = npu.array.feature_bits
    power = npu.reciprocal_bits
    latency = f"{timing.DIVIDE_LATENCY} cycles from sum to quotient"
    header = Header(_contract(npu), rate="one quotient a cycle", latency=latency, parameters={"feature_bits": out})
    b = Block(library.name("divide", npu), header, reset=False)
    inputs = (
        ("sum", w, "sum of the features, two's complement"),
        ("count", COUNT_BITS, "number of features"),
        ("average", 1, "1: divide; 0: quotient is the low bits of sum"),
        ("reciprocal", power, "what belongs to count"),
    )
    given = {name: (b.input(name, bit_count, means), bit_count) for name, bit_count, means in inputs}
    quotient = b.output_reg("quotient", out, init=None, means="sum divided by count, two's complement")

    # # #

    held = {name: b.reg(f"held_{name}", bit_count, init=None) for name, (_, bit_count) in given.items()}
    b.on(None, *[(held[name], port) for name, (port, _) in given.items()])
    total = held["sum"]
    count = held["count"]
    average = held["average"]
    reciprocal = held["reciprocal"]
    sign = bits(total, w - 1, 1)
    size = b.wire("size", w, choose(sign, ~total + const(1, w), total, w))
    numerator = b.reg("numerator", w + 1, init=None)
    factor = b.reg("factor", power, init=None)
    negative = b.reg("negative", init=None)
    plain = b.reg("plain", out, init=None)
    divided = b.reg("divided", init=None)
    b.on(
        None,
        (numerator, Cat(size, const(0, 1)) + resize(count, w + 1)),
        (factor, reciprocal),
        (negative, sign),
        (plain, bits(total, 0, out)),
        (divided, average),
    )
    wide = w + 1 + power
    scaled = b.reg("made", wide + 2, init=None)
    b.on(None, (scaled, product(Cat(const(0, 1), numerator), Cat(const(0, 1), factor))))  # both are positive
    late_negative, late_plain, late_divided = (_late(b, signal) for signal in (negative, plain, divided))
    magnitude = b.wire("magnitude", out, bits(scaled, power, out))
    b.wire("fraction_unused", power, bits(scaled, 0, power))
    b.wire("above_unused", wide + 2 - power - out, bits(scaled, power + out, wide + 2 - power - out))
    signed = b.wire("signed_quotient", out, choose(late_negative, ~magnitude + const(1, out), magnitude, out))
    b.on(None, (quotient, choose(late_divided, signed, late_plain, out)))
    return b


def _contract(npu: Npu) -> str:
    """The module's text. Features of fewer than 8 bits have the reciprocals of 8."""
    power = f"2^{npu.reciprocal_bits}"
    wide = max(8, npu.array.feature_bits)
    twin = "golden.layers.pool.rounded_quotient"
    return f"""Average: a sum divided by a count, rounded half away from zero.  Golden twin: {twin}.

    sum, count, reciprocal --> register --> 2 |sum| + count --> product --> >> {npu.reciprocal_bits}, sign --> quotient

quotient = floor((2 |sum| + count) / (2 count)) with the sign of the sum. The reciprocal is ceil({power} / (2 count)),
from a memory that the program fills; exact, since the numerator n and divisor d = 2 count obey n (d - 1) < {power} for
counts to 127 and features of {wide} bits (n <= 2 * 127 * {1 << wide - 1} + 127). Nothing stalls inside.
"""


def _late(b: Block, signal: Signal) -> Signal:
    """A register that is a cycle behind ``signal``."""
    register = b.reg(f"late_{signal.name}", width(signal), init=None)
    b.on(None, (register, signal))
    return register
