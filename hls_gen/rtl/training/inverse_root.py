"""1 / root of a word's magnitude by a table (C20).  Golden twin: inverse_root in golden/discrete/word.py.

word --> first bit that is 1 --> the three behind it --> root in the table --> shift --> saturate --> root
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.word import ROOT_BITS, ROOT_FRACTION, inverse_roots
from bitloom.hls_gen.design.training import ROOT_LATENCY
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, bits, choose, const, eq
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import leave


def inverse_root(library: Library, machine: MachineParameters) -> Block:
    """The module that gives inverse roots: module ``inverse_root``."""
    form = machine.form
    header = Header(
        __doc__,
        rate="a root a cycle",
        latency=f"{ROOT_LATENCY} cycles",
        parameters={"word_bits": form.bits, "fraction": form.fraction},
    )
    b = Block("inverse_root", header, reset=False)
    word = b.input("word", form.bits, means="a word, of which the magnitude counts")
    out = b.output_reg("root", form.bits, init=None, means="the root, a word that isn't below 0")

    # # #

    sizes = form.bits - 1
    leave(b, "sign", bits(word, sizes, 1))
    b.comment("The first bit that is 1; 0 is taken as the least word.")
    first = []
    for e in range(sizes):
        higher = [bits(word, k, 1) for k in range(e + 1, sizes)]
        here = [bits(word, e, 1)] if e else []
        first.append(all_of(*here, ~any_of(*higher)) if higher else here[0])
    place = b.reg("first", sizes, init=None)
    size = b.reg("size", sizes - 1, init=None)  # nothing stands in front of the first bit
    b.on(None, (place, Cat(*reversed(first))), (size, bits(word, 0, sizes - 1)))
    b.comment("The three bits behind it; whether its place is odd, counted from the binary point; pairs of places.")
    pairs: dict[int, list[Signal]] = {}
    odd = []
    behind = [[const(0, 1)] for _ in range(ROOT_BITS)]
    for e in range(sizes):
        at = bits(place, e, 1)
        pairs.setdefault(form.fraction - e >> 1, []).append(at)
        odd += [at] * ((form.fraction - e) % 2)
        for k in range(min(e, ROOT_BITS)):
            behind[-1 - k].append(all_of(at, bits(size, e - 1 - k, 1)))
    index_bits = ROOT_BITS + 1
    index = b.reg("index", index_bits, init=None)
    pair = b.reg("pair", len(pairs), init=None)
    b.on(
        None,
        (index, Cat(any_of(*odd), *(any_of(*terms) for terms in reversed(behind)))),
        (pair, Cat(*(any_of(*places) for places in reversed(pairs.values())))),
    )
    b.comment("The table of roots.")
    roots = inverse_roots().reshape(-1).tolist()
    root_bits = bits_for(max(roots))
    value: Signal = const(roots[0], root_bits)
    for number, root in enumerate(roots[1:], 1):
        value = choose(eq(index, number), const(root, root_bits), value, root_bits)
    table = b.reg("table_root", root_bits, init=None)
    late = b.reg("late_pair", len(pairs), init=None)
    b.on(None, (table, value), (late, pair))
    b.comment("The root at its place; what is too large is the largest word.")
    terms: list[list[Signal]] = [[] for _ in range(sizes)]
    over = []
    lefts = [half + form.fraction - ROOT_FRACTION for half in pairs]
    for number, left in enumerate(lefts):
        at = bits(late, number, 1)
        if root_bits + left <= 0:
            leave(b, f"pair_{number}", at)  # its roots are less than the least word
        for k in range(max(0, -left), root_bits):
            term = all_of(at, bits(table, k, 1))
            (over if k + left >= sizes else terms[k + left]).append(term)
    if max(lefts) < 0:
        leave(b, "root_low", bits(table, 0, -max(lefts)))
    full = b.wire("full", 1, any_of(const(0, 1), *over))
    magnitude = [any_of(full, *bit) for bit in reversed(terms)]
    b.on(None, (out, Cat(const(0, 1), *magnitude)))
    return b
