"""Product of two codes, or another operation of them, by a table in LUT RAM (C9).

    part, left, right --> row of the table --> result
    load -------------------^

Golden twin: look_up_table (golden/discrete/arithmetic.py). A part of the table is for sums, the other one for weight
gradients, so that neither is filled anew for the other. The row of a pair of codes has the right one in its low bits,
the part in its high one. Bits of a code that its own table lacks are no part of the code: rows that differ in them hold
the same word. The latency is that of the shifting product, whose place the table may take.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.training import PRODUCT_LATENCY
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.text import Header


def product_table(library: Library, machine: MachineParameters) -> Block:
    """The module that looks results up: module ``product_table``."""
    codes = machine.code_bits
    header = Header(
        __doc__,
        rate="a result and a write a cycle",
        latency=f"{PRODUCT_LATENCY} cycles from the codes to the result, 1 from a write until its row is read",
        parameters={"word_bits": machine.form.bits, "code_bits": codes},
    )
    b = Block("product_table", header, reset=False)
    part = b.input("part", means="part of the table")
    left = b.input("left", codes, means="the left code")
    right = b.input("right", codes, means="the right code")
    write = b.input("write", means="load: write_data goes into row write_row")
    row = b.input("write_row", 2 * codes + 1, means="load: part, left code, and the right one in the low bits")
    data = b.input("write_data", machine.form.bits, means="load: the result, a word")
    out = b.output_reg("product", machine.form.bits, init=None, means="the result of the two codes")

    # # #

    pair = delayed(b, Cat(part, left, right), "pair", PRODUCT_LATENCY - 1, 2 * codes + 1)[-1]
    word = b.wire("found", machine.form.bits)
    table = ram(library, machine.form.bits, 2 << 2 * codes, latency=0)
    b.instance(table, "results", write=write, write_row=row, write_data=data, read_row=pair, read_data=word)
    b.on(None, (out, word))
    return b
