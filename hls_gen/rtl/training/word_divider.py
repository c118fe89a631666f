"""Divider of words, a bit of the quotient a cycle.  Golden twin: WordFormat.divide (golden/discrete/word.py).

    left --> magnitude, fraction zeros behind it --> remainder <-- less the divisor, wherever it fits --> quotient
    right -> magnitude of the divisor ------------------------------'

The quotient saturates where the divisor is no more than the bits of the dividend above the quotient's: then, and by 0
too, it is the largest word with the signs' product. 0 / 0 is 0. Dividend and quotient share a register: as a bit of
the one leaves, a bit of the other comes in.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    all_of,
    bits,
    choose,
    const,
    eq,
    nonzero,
    resize,
    sub,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .word import largest, magnitude_of, sign_of, word_of


def word_divider(library: Library, machine: MachineParameters) -> Block:
    """The module that divides words: module ``word_divider``."""
    form = machine.form
    header = Header(
        __doc__,
        rate=f"a quotient in {facts.divider_cycles(machine)} cycles: start may come so often, and no earlier",
        latency=f"{facts.divider_latency(machine)} cycles from start to done",
        parameters={"word_bits": form.bits, "fraction": form.fraction},
    )
    b = Block("word_divider", header)
    start = b.input("start", means="left and right are to be divided")
    left = b.input("left", form.bits, means="the dividend, a word")
    right = b.input("right", form.bits, means="the divisor, a word")
    done = b.output_reg("done", means="pulse: the quotient is there")
    out = b.output_reg("quotient", form.bits, init=None, means="left / right, a word")

    # # #

    w = form.bits - 1
    f = form.fraction
    size = magnitude_of(left)
    divisor = b.reg("divisor", w, init=None)
    rest = b.reg("rest", w, init=None)  # the remainder, less than the divisor
    line = b.reg("line", w, init=None)  # bits of the dividend, high ones first; quotient bits behind them
    over = b.reg("over", init=None)
    some = b.reg("some", init=None)  # the dividend is not 0
    sign = b.reg("sign", init=None)
    high = b.wire("high", w, resize(bits(size, w - f, f), w) if f else const(0, w))
    low = Cat(bits(size, 0, w - f), const(0, f)) if f else size
    b.comment("A step: the remainder takes the next bit, and gives the divisor away if it can.")
    longer = b.wire("longer", w + 1, Cat(rest, bits(line, w - 1, 1)))
    less = b.wire("less", w + 1, longer - resize(divisor, w + 1))
    fits = b.wire("fits", 1, ~bits(less, w, 1))  # longer < 2 * divisor, so that the difference has w bits
    running = b.reg("running")
    left_bits = bits_for(w)
    steps = b.reg("steps", left_bits, init=None)
    last = b.wire("last_step", 1, all_of(running, eq(steps, 1)))
    b.on(
        None,
        (rest, choose(fits, bits(less, 0, w), bits(longer, 0, w), w)),
        (line, Cat(bits(line, 0, w - 1), fits)),
        (steps, sub(steps, 1, left_bits)),
    )
    b.on(last, (running, 0))
    b.comment("The beginning and the end.")
    b.on(
        start,
        (running, 1),
        (steps, w),
        (divisor, magnitude_of(right)),
        (rest, high),
        (line, low),
        (over, high >= magnitude_of(right)),
        (some, nonzero(size)),
        (sign, sign_of(left) ^ sign_of(right)),
    )
    ended = b.reg("ended")
    b.on(None, (ended, last), (done, ended))
    most = largest(b, w)
    magnitude = b.wire("magnitude", w, choose(over, choose(some, most, 0, w), line, w))
    b.on(None, (out, word_of(b, "signed_quotient", sign, magnitude)))
    return b
