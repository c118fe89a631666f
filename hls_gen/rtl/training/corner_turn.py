"""Corner turn: words come in, their planes of bits go out, for bit-serial sums (C12).

    word after word --> square of cells --> plane after plane, high bits first

A group is as many words as a word has bits. While one comes in, a word a cycle, the planes of the group before go out,
a plane with each word: words come in from the left and move to the right, planes come in from below and move up, group
by group in turn, so that a square of cells holds both. The last group's planes go out as zeros come in.

No machine has this unit: see serial_dot.py.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, add, bits, choose, eq
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header


def corner_turn(library: Library, machine: MachineParameters) -> Block:
    """The module that makes planes of words: module ``corner_turn``."""
    w = machine.form.bits
    header = Header(
        __doc__,
        rate="a word and a plane a cycle",
        latency=f"a group's first plane goes out with the word {w} words after the group's first one",
        parameters={"word_bits": w},
    )
    b = Block("corner_turn", header)
    valid = b.input("valid", means="a word comes in and a plane goes out")
    word = b.input("word", w, means="the word")
    plane = b.output("plane", w, means="with valid: a bit of each word of the group before, the first word's low")
    signs = b.output("signs", means="with valid: the plane is that of the sign bits")
    lowest = b.output("lowest", means="with valid: the plane is that of the low bits")

    # # #

    b.comment("Columns move to the right, or rows move up.")
    up = b.reg("up")
    index_bits = bits_for(w - 1)
    index = b.reg("index", index_bits)
    last = b.wire("last_of_group", 1, eq(index, w - 1))
    b.on(valid, (index, choose(last, 0, add(index, 1, index_bits), index_bits)), (up, up ^ last))
    rows = [b.reg(f"row_{i}", w, init=None) for i in range(w)]
    for i, row in enumerate(rows):
        right = Cat(bits(row, 0, w - 1), bits(word, i, 1))
        below = rows[i - 1] if i else word
        b.on(valid, (row, choose(up, below, right, w)))
    column = Cat(*[bits(row, w - 1, 1) for row in rows])  # row 0 has the newest word of a group that moved up
    newest = Cat(*[bits(rows[w - 1], k, 1) for k in range(w)])
    plane.assign(choose(up, newest, column, w))
    signs.assign(eq(index, 0))
    lowest.assign(last)
    return b
