"""Bit-serial dot product of codes with words, a plane of bits a cycle (C12).  Golden twin: golden/discrete/dot.py.

    plane[lanes] --> exclusive or with signs, of lanes in use --> count --> 2 * pass + count --> sum of passes
    minus[lanes], used[lanes] --^

Words are sign and magnitude. A pass goes through the planes of a group of words: their signs, then their magnitudes
from the high bit down to bit k. The lanes in use have codes +-2^-k, so that planes below k are what truncation drops:
a group of words takes a pass for each magnitude of the table, one for codes of 1 bit. Codes +-2, whose products
saturate, are not among them. As -y is ~y + 1, a word's sign
turned by its code's flips all planes, and each such word lacks one.

No machine has this unit: docs/explanation/training-machine.md compares its area with that of the shifting units.
"""

from veriloggen import Cat, Repeat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.training import SERIAL_DOT_LATENCY, sum_bits
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.array.popcount import popcount
from bitloom.hls_gen.rtl.primitives.block import Block, all_of, bits, choose, const, resize, sign_extend
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header


def serial_dot(library: Library, machine: MachineParameters, lanes: int) -> Block:
    """The module that adds up products plane by plane.

    Parameters
    ----------
    lanes : int
        Words of a group, whose planes come together.

    Returns
    -------
    Block
        Module ``serial_dot``.
    """
    form = machine.form
    header = Header(
        __doc__,
        rate=f"a plane a cycle: {lanes} products with 2^-k in {form.bits} - k cycles",
        latency=f"{SERIAL_DOT_LATENCY} cycles from the last plane of a sum to done",
        parameters={"word_bits": form.bits, "lanes": lanes},
    )
    b = Block("serial_dot", header)
    valid = b.input("valid", means="there is a plane")
    plane = b.input("plane", lanes, means="a bit of each word, the first word's low")
    minus = b.input("minus", lanes, means="with the signs: codes below 0")
    used = b.input("used", lanes, means="with the signs: lanes that take part in the pass")
    signs = b.input("signs", means="the plane is that of the signs: a pass begins")
    lowest = b.input("lowest", means="the plane is the last one of its pass")
    first = b.input("first", means="with the lowest plane: the pass is the sum's first one")
    last = b.input("last", means="with the lowest plane: the pass is the sum's last one")
    done = b.output_reg("done", means="pulse: the sum is there")
    out = b.output_reg("sum", sum_bits(machine), init=None, means="exact sum of products, two's complement")

    # # #

    b.comment("Bits of products whose signs are those of word and code.")
    negative = b.reg("negative", lanes, init=None)  # signs of the products, of lanes in use
    taking = b.reg("taking", lanes, init=None)
    turned = b.wire("turned", lanes, (plane ^ minus) & used)
    begins = b.wire("begins", 1, all_of(valid, signs))
    b.on(begins, (negative, turned), (taking, used))
    ones = b.wire("ones", lanes, choose(signs, turned, (plane ^ negative) & taking, lanes))
    count_bits = bits_for(lanes)
    counted = b.wire("counted", count_bits)
    b.instance(
        library.get(popcount, lanes, library.target), "counter", features=ones, weights=const(-1, lanes), count=counted
    )
    count = b.reg("count", count_bits, init=None)
    b.on(None, (count, counted))
    b.comment("The pass: minus the count of signs, then twice what is there and the count; at the end the signs again.")
    w = form.bits + count_bits
    here = delayed(b, valid, "valid", 3, init=0)
    sign_plane = delayed(b, signs, "signs", 2)[-1]
    lowest_plane, first_pass, last_pass = (
        delayed(b, signal, name, 3)[-1] for name, signal in (("lowest", lowest), ("first", first), ("last", last))
    )
    total = b.reg("pass_total", w, init=None)
    signs_count = b.reg("signs_count", count_bits, init=None)
    start = all_of(here[2], sign_plane)
    b.on(start, (signs_count, count))
    doubled = Cat(bits(total, 0, w - 1), const(0, 1))
    turn = Repeat(sign_plane, w)
    number = (resize(count, w) ^ turn) + resize(sign_plane, w)
    b.on(here[2], (total, choose(sign_plane, 0, doubled, w) + number))
    b.comment("The sum of passes.")
    wide = sum_bits(machine)
    ends = all_of(here[3], lowest_plane)
    whole = b.wire("pass_sum", w, total + resize(signs_count, w))
    b.on(ends, (out, choose(first_pass, 0, out, wide) + sign_extend(whole, wide)))
    b.on(None, (done, all_of(ends, last_pass)))
    return b
