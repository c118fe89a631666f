"""Fills the slaves' tables of products before an instruction's first beat.  Golden twin: Configuration.product.

    pair after pair of codes --> shifting product --> beats that all slaves write into their tables

The master has this one shifter for all slaves. Codes are those of the two tables of the factors. Where the instruction
before of the same kind, for sums or for weight gradients, had the same ones, nothing is filled.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.training import PRODUCT_LATENCY, operand_widths
from bitloom.hls_gen.rtl.primitives.block import Block, add, all_of, bits, const, eq
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .product import product_unit


def table_filler(library: Library, machine: MachineParameters) -> Block:
    """The module that fills tables: module ``table_filler``."""
    codes = machine.code_bits
    w = 2 * codes
    header = Header(
        __doc__,
        rate="a row a cycle",
        latency=f"{machine.table_rows + PRODUCT_LATENCY + 1} cycles from start to done",
        parameters={"word_bits": machine.form.bits, "code_bits": codes},
    )
    b = Block("table_filler", header)
    start = b.input("start", means="an instruction begins; its operands stand two cycles later")
    factors = {
        f"{side}_{part}": b.input(f"{side}_{part}", size, means=f"{side} factor: {part} of its table")
        for side in ("left", "right")
        for part, size in operand_widths(machine).items()
    }
    row = b.output("row", w, means="row of the word that data is in the next cycle")
    fills = b.output("fills", means="there is such a word")
    data = b.output("data", machine.form.bits, means="the product of the pair whose row was there a cycle ago")
    done = b.output("done", means="pulse: row is the last one")

    # # #

    filling = b.reg("filling")
    pair = b.reg("pair", w, init=None)
    last = all_of(filling, eq(pair, machine.table_rows - 1))
    begins = b.reg("begins")
    b.on(None, (begins, start))
    b.on(filling, (pair, add(pair, 1, w)))
    b.on(last, (filling, 0))
    b.on(begins, (filling, 1), (pair, 0))
    unused = {name: b.wire(f"{name}_unused", machine.form.bits) for name in ("left_value", "right_value")}
    zeros = const(0, machine.form.bits - codes)
    b.instance(
        library.get(product_unit, library, machine),
        "shifter",
        left=b.wire("left_code", machine.form.bits, Cat(zeros, bits(pair, codes, codes))),
        right=b.wire("right_code", machine.form.bits, Cat(zeros, bits(pair, 0, codes))),
        **factors,
        product=data,
        **unused,
    )
    late = PRODUCT_LATENCY - 1
    row.assign(delayed(b, pair, "pair", late, w)[-1])
    fills.assign(delayed(b, filling, "filling", late, init=0)[-1])
    done.assign(delayed(b, b.wire("last", 1, last), "last", late, init=0)[-1])
    return b
