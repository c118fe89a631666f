"""Quotient by a code: a shift to the left (C10).  Golden twin: scale (golden/discrete/arithmetic.py).

left --> value --> shift by a code's places, in two stages --> saturate --> quotient
right -----------> sign, places -'
"""

from veriloggen import Cat
from veriloggen.core.vtypes import Sll

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.hls_gen.design.training import ENTRY_BITS, PRODUCT_LATENCY
from bitloom.hls_gen.rtl.primitives.block import Block, any_of, bits, choose, const, eq, nonzero, resize
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import FINE_BITS, CodedOperand, decoded, leave
from .word import largest, magnitude_of, sign_of, word_of


def quotient_unit(library: Library, machine: MachineParameters) -> Block:
    """The module that divides by codes: module ``quotient_unit``."""
    form = machine.form
    header = Header(
        __doc__,
        rate="a quotient a cycle",
        latency=f"{PRODUCT_LATENCY} cycles, those of a product",
        parameters={"word_bits": form.bits, "fraction": form.fraction},
    )
    b = Block("quotient_unit", header, reset=False)
    left = CodedOperand.ports(b, machine, "left", "the dividend")
    right = CodedOperand.ports(b, machine, "right", "the divisor, a code")
    out = b.output_reg("quotient", form.bits, init=None, means="the quotient, a word")

    # # #

    w = form.bits
    x = decoded(b, machine, "x", left)
    y = decoded(b, machine, "y", right)
    leave(b, "divisor", y.word)
    entry = b.reg("late_entry", ENTRY_BITS, init=None)
    b.on(None, (entry, y.entry))
    b.comment("The magnitude times 2^places, then halved: an entry has the places of twice the code's value.")
    least = max(w, PLACES_BITS)  # a shift is as wide as its places at least
    coarse = b.reg("coarse", least, init=None)
    far = bits(entry, FINE_BITS, PLACES_BITS - FINE_BITS)
    size = magnitude_of(x.word)
    steps = 1 << (PLACES_BITS - FINE_BITS)
    lost = []
    for k in range(1, steps):
        out_bits = min((k << FINE_BITS) - 1, w - 1)  # high bits that leave
        lost.append(eq(far, k) & nonzero(bits(size, w - 1 - out_bits, out_bits)))
    over = b.reg("over", init=None)
    rest = b.reg("rest", FINE_BITS, init=None)
    amount = Cat(far, const(0, FINE_BITS))
    b.on(None, (coarse, Sll(resize(size, least), amount)), (over, any_of(*lost)), (rest, bits(entry, 0, FINE_BITS)))
    wide = w + (1 << FINE_BITS) - 1
    fine = b.reg("fine", wide, init=None)
    late_over = b.reg("late_over", init=None)
    if least > w:
        leave(b, "coarse_high", bits(coarse, w, least - w))
    b.on(None, (fine, Sll(resize(bits(coarse, 0, w), wide), rest)), (late_over, over))
    leave(b, "half", bits(fine, 0, 1))
    most = largest(b, w - 1)
    above = any_of(late_over, nonzero(bits(fine, w, wide - w)))
    magnitude = b.wire("magnitude", w - 1, choose(above, most, bits(fine, 1, w - 1), w - 1))
    sign = delayed(b, b.wire("sign", 1, sign_of(x.word) ^ bits(entry, PLACES_BITS, 1)), "sign", 2)[-1]
    b.on(None, (out, word_of(b, "signed_quotient", sign, magnitude)))
    return b
