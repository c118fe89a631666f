"""Converter with a multiplier: a word becomes a code by chance, of either pair (C4 to C7).

    word --> clip to the zone --> rank --> distances to the values below, here, above --> z * sum < one of them --> code
    draw ------------------------------------------------------------------------------> z

Golden twin: golden/discrete/converter.py. Of two candidates a and b, a is taken where z * (d_a + d_b) < d_b. Pair
"bracket": a is the value above the word, b the one at or below it. Pair "nearest": a is the nearest value, b the closer
one of its two neighbours. Since words are clipped to the zone first, distances have a few bits more than the fraction.
"""

from veriloggen import Cat, Repeat

from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.hls_gen.design.training import ENTRY_BITS, PAIR_CONVERTER_LATENCY
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    by_number,
    choose,
    const,
    eq,
    nonzero,
    resize,
    sign_extend,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import leave, parts, power
from .converter import ConversionPorts, rank_of
from .word import magnitude_of, sign_of


def pair_converter(library: Library, machine: MachineParameters) -> Block:
    """The module that converts by either pair: module ``pair_converter``."""
    form = machine.form
    codes = machine.code_bits
    header = Header(
        __doc__,
        rate="a word a cycle",
        latency=f"{PAIR_CONVERTER_LATENCY} cycles",
        parameters={"word_bits": form.bits, "fraction": form.fraction, "code_bits": codes},
    )
    b = Block("pair_converter", header, reset=False)
    word = b.input("word", form.bits, means="a word")
    draw = b.input("draw", DRAW_BITS, means="its number of the generator")
    table = ConversionPorts.ports(b, machine)
    code = b.output_reg("code", codes, init=None, means="the code")

    # # #

    assert table.pair is not None
    plain = _clipped(b, machine, word, table)
    rank, rank_now = _rank(b, machine, plain, table)
    offsets = _offsets(b, machine, table, rank_now, delayed(b, plain, "plain", 2, width(plain))[-1])
    ranks = delayed(b, rank, "rank", 5, codes)
    lower, upper = (b.wire(f"has_{name}", 1, has) for name, has in (
        ("below", nonzero(ranks[1])), ("above", ~eq(ranks[1], table.mask))))  # fmt: skip
    b.comment("Distances: to the value of the rank, and to the other candidate, above or below it.")
    n = width(offsets["here"])
    balance = b.wire("balance", n + 1, sign_extend(offsets["below"], n + 1) + sign_extend(offsets["above"], n + 1))
    leave(b, "balance_low", bits(balance, 0, n))
    closer = any_of(~lower, ~bits(balance, n, 1))
    rises = b.wire("rises_now", 1, choose(table.pair, all_of(upper, closer), 1, 1))
    late_rises = delayed(b, rises, "rises", 4)
    outside = bits(offsets["here"], n - 1, 1)
    may = b.wire("may_now", 1, all_of(table.chance, any_of(table.pair, all_of(upper, ~outside))))
    late_may = delayed(b, may, "may", 3)
    here = b.reg("here_size", n - 1, init=None)
    ones = b.reg("other_ones", n - 1, init=None)  # of the value above minus the distance, less one
    size = b.wire("here_distance", n, (offsets["here"] ^ Repeat(outside, n)) + resize(outside, n))
    leave(b, "here_sign", bits(size, n - 1, 1))
    other = b.wire("other_offset", n, choose(rises, ~offsets["above"], offsets["below"], n))
    leave(b, "other_sign", bits(other, n - 1, 1))
    b.on(None, (here, bits(size, 0, n - 1)), (ones, bits(other, 0, n - 1)))
    b.comment("Their sum times z, and which of them is compared with it.")
    total = b.reg("distances", n, init=None)
    limit = b.reg("limit", n - 1, init=None)
    b.on(
        None,
        (total, add(here, ones, n) + resize(late_rises[1], n)),
        (limit, choose(table.pair, ones, here, n - 1) + resize(all_of(table.pair, late_rises[1]), n - 1)),
    )
    reach = b.reg("reach", DRAW_BITS + 1 + n, init=None)
    odd = Cat(delayed(b, draw, "draw", 6, DRAW_BITS)[-1], const(1, 1))  # a draw stands for the middle of its part
    b.on(None, (reach, resize(odd, DRAW_BITS + 1 + n) * resize(total, DRAW_BITS + 1 + n)))
    late_limit = delayed(b, limit, "limit", 1, n - 1)[-1]
    leave(b, "lost", bits(reach, 0, DRAW_BITS + 1))
    less = bits(reach, DRAW_BITS + 1, n) < resize(late_limit, n)  # the limit is whole
    moves = b.reg("moves", init=None)
    b.on(None, (moves, all_of(late_may[3], less ^ table.pair)))
    b.comment("Code of the rank, or of its neighbour.")
    step = choose(moves, choose(late_rises[4], 1, -1, codes), 0, codes)
    final = b.wire("final_rank", codes, add(ranks[5], step, codes))
    b.on(None, (code, b.wire("found", codes, by_number(final, parts(table.order, 1 << codes), codes))))
    return b


def _clipped(b: Block, machine: MachineParameters, word: Signal, table: ConversionPorts) -> Signal:
    """Register: the word in the zone, two's complement with the bits of the fraction and three more."""
    b.comment("Clipped to the zone.")
    assert table.wide is not None
    f = machine.form.fraction
    n = f + 3
    size = magnitude_of(word)
    beyond_two = nonzero(bits(size, f + 1, machine.form.bits - f - 2))
    over = b.wire("outside_zone", 1, any_of(beyond_two, all_of(~table.wide, bits(size, f, 1))))
    one = const(1 << f, n - 1)
    two = const(2 << f, n - 1)
    within = resize(bits(size, 0, f + 1), n - 1)
    clipped = b.wire("clipped", n - 1, choose(over, choose(table.wide, two, one, n - 1), within, n - 1))
    plain = b.reg("plain", n, init=None)
    sign = sign_of(word)
    b.on(None, (plain, (resize(clipped, n) ^ Repeat(sign, n)) + resize(sign, n)))
    return plain


def _rank(b: Block, machine: MachineParameters, plain: Signal, table: ConversionPorts) -> tuple[Signal, Signal]:
    """As of `rank_of`: how many thresholds are not above the doubled word."""
    b.comment("Rank: how many thresholds are not above the doubled word.")
    n = width(plain) + 1
    doubled = b.wire("doubled", n, Cat(plain, const(0, 1)))
    reached = []
    for k, threshold in enumerate(parts(table.thresholds, (1 << machine.code_bits) - 1), 1):
        if n <= machine.form.bits:
            leave(b, f"threshold_{k}_high", bits(threshold, n, machine.form.bits + 1 - n))
        used = bits(table.mask, k.bit_length() - 1, 1)  # the table has so many values
        reached.append(all_of(used, signed_at_least(doubled, b.wire(f"threshold_{k}", n, bits(threshold, 0, n)))))
    return rank_of(b, reached)


def _offsets(
    b: Block, machine: MachineParameters, table: ConversionPorts, rank: Signal, plain: Signal
) -> dict[str, Signal]:
    """Registers, two stages after ``rank`` is known: the word less the values of the ranks below, here and above."""
    b.comment("Distances from the values of the rank and of its neighbours, with signs.")
    entries = parts(table.ranked, 1 << machine.code_bits)
    n = machine.form.fraction + 4
    offsets = {}
    for name, by in (("below", -1), ("here", 0), ("above", 1)):
        index = b.wire(f"rank_{name}", machine.code_bits, add(rank, by, machine.code_bits))
        entry = b.reg(f"{name}_entry", ENTRY_BITS, init=None)
        b.on(None, (entry, b.wire(f"{name}_found", ENTRY_BITS, by_number(index, entries, ENTRY_BITS))))
        size = power(b, machine, name, entry, n - 2)
        plus = ~bits(entry, PLACES_BITS, 1)
        offsets[name] = b.reg(f"{name}_offset", n, init=None)
        minus = (resize(size, n) ^ Repeat(plus, n)) + resize(plus, n)
        b.on(None, (offsets[name], sign_extend(plain, n) + minus))
    return offsets
