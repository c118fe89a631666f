"""Converter: a word becomes a code of a table (C4 to C7).  Golden twin: golden/discrete/converter.py.

    word --> compare with all thresholds --> rank --+--> code of that rank
    draw --------> (1 - z) * low + z * high --> or the rank above

`thresholds` are sums of neighbouring values, with which the doubled word is compared (nearest), or doubled values (by
chance: the rank is then that of the largest value that is not above the word). z * low and z * high are the draw,
shifted, since the table's values are powers of two: there is no multiplier.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from veriloggen import Cat, Repeat
from veriloggen.core.vtypes import Srl

from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.hls_gen.design.training import CONVERTER_LATENCY, ENTRY_BITS
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    bits,
    by_number,
    choose,
    const,
    eq,
    resize,
    side_by_side,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import constant, leave, parts
from .word import twos


@dataclass(frozen=True)
class ConversionPorts:
    """Ports by which a converter is told its table; all signals stand while words are converted."""

    thresholds: Signal
    """2^code_bits - 1 numbers of word_bits + 1 bits, two's complement; those of no code are the largest number."""
    ranked: Signal
    """Entries in rising order of their values, rank 0 low."""
    order: Signal
    """Codes in that order."""
    mask: Signal
    """The last rank: 2^m - 1."""
    chance: Signal
    """Convert by chance."""
    pair: Signal | None = None
    """By chance: one of the two nearest codes, not of those around the word."""
    wide: Signal | None = None
    """The zone is 2. pair, wide: of converters with a multiplier."""

    @staticmethod
    def widths(machine: MachineParameters) -> dict[str, int]:
        """Bits of each."""
        ranks = 1 << machine.code_bits
        return {
            "thresholds": (ranks - 1) * (machine.form.bits + 1),
            "ranked": ranks * ENTRY_BITS,
            "order": ranks * machine.code_bits,
            "mask": machine.code_bits,
            "chance": 1,
            **({"pair": 1, "wide": 1} if machine.converter == "multiplying" else {}),
        }

    @classmethod
    def ports(cls, b: Block, machine: MachineParameters, prefix: str = "") -> "ConversionPorts":
        """Input ports of ``b``, called ``<prefix>thresholds`` and so on."""
        means = {
            "thresholds": "what doubled words are compared with, lowest first",
            "ranked": "entries of the table in rising order",
            "order": "codes in rising order of their values",
            "mask": "the last rank",
            "chance": "convert by chance, not to the nearest",
            "pair": "by chance: one of the two nearest codes",
            "wide": "the zone is 2",
        }
        return cls(**{n: b.input(prefix + n, w, means=means[n]) for n, w in cls.widths(machine).items()})

    def to(self) -> dict[str, Signal]:
        """Port map of a converter."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name) is not None
        }


def converter(library: Library, machine: MachineParameters) -> Block:
    """The module that converts: module ``converter``."""
    form = machine.form
    codes = machine.code_bits
    header = Header(
        __doc__,
        rate="a word a cycle",
        latency=f"{CONVERTER_LATENCY} cycles",
        parameters={"word_bits": form.bits, "fraction": form.fraction, "code_bits": codes},
    )
    b = Block("converter", header, reset=False)
    word = b.input("word", form.bits, means="a word")
    draw = b.input("draw", DRAW_BITS, means="its number of the generator")
    table = ConversionPorts.ports(b, machine)
    code = b.output_reg("code", codes, init=None, means="the code")

    # # #

    b.comment("Rank: how many thresholds are not above the doubled word.")
    plain = b.reg("plain", form.bits, init=None)  # two's complement
    b.on(None, (plain, twos(word, form.bits)))
    draws = delayed(b, draw, "draw", 3, DRAW_BITS)
    doubled = b.wire("doubled", form.bits + 1, Cat(plain, const(0, 1)))
    thresholds = parts(table.thresholds, (1 << codes) - 1)
    wires = [b.wire(f"threshold_{k}", form.bits + 1, t) for k, t in enumerate(thresholds, 1)]
    rank, rank_now = rank_of(b, [signed_at_least(doubled, t) for t in wires])
    ends = _around(b, machine, table, rank_now)
    plains = delayed(b, plain, "plain", 2, form.bits)
    above = _rises(b, machine, ends, all_of(table.chance, ~eq(rank, table.mask)), (plains[2], draws[3]))
    b.comment("Code of the rank, or of the one above.")
    ranks = delayed(b, rank, "rank", 3, codes)
    final = b.wire("final_rank", codes, add(ranks[3], above, codes))
    final_code = b.wire("found", codes, by_number(final, parts(table.order, 1 << codes), codes))
    b.on(None, (code, final_code))
    return b


def rank_of(b: Block, reached: Sequence[Signal]) -> tuple[Signal, Signal]:
    """How many thresholds a word has reached, two stages late, and the same a stage earlier; ``reached`` says of each
    threshold, the lowest first, whether the word has."""
    count = len(reached)
    codes = count.bit_length()
    late = b.reg("reached", count, init=None)
    b.on(None, (late, side_by_side(reached)))
    number: Signal = const(0, codes)
    for k in range(count):
        number = choose(bits(late, k, 1), const(k + 1, codes), number, codes)
    now = b.wire("rank_now", codes, number)
    rank = b.reg("rank", codes, init=None)
    b.on(None, (rank, now))
    return rank, now


def _around(b: Block, machine: MachineParameters, table: ConversionPorts, rank: Signal) -> dict[str, Signal]:
    """Registers: entries of a rank (low) and of the one above (high); chosen beside the rank, since the shift by an
    entry's places is a long way of its own."""
    entries = parts(table.ranked, 1 << machine.code_bits)
    after = b.wire("after", machine.code_bits, add(rank, 1, machine.code_bits))
    ends = {}
    for name, index in (("low", rank), ("high", after)):
        ends[name] = b.reg(f"{name}_entry", ENTRY_BITS, init=None)
        b.on(None, (ends[name], b.wire(f"{name}_found", ENTRY_BITS, by_number(index, entries, ENTRY_BITS))))
    return ends


def _rises(
    b: Block, machine: MachineParameters, ends: dict[str, Signal], may_rise: Signal, value: tuple[Signal, Signal]
) -> Signal:
    """Register, three stages after (word in two's complement, draw): take the rank above."""
    b.comment("By chance: is the word above low by more than z times the distance to high?")
    form = machine.form
    plain, draw = value
    z_bits = DRAW_BITS + 1 + form.fraction + 2  # an odd number of 17 bits times 2.0, and room for a sign
    odd = b.localparam("ODD", 2 * form.one, form.fraction + 2)  # a draw stands for the middle of its part
    scaled = {}
    for name, entry in ends.items():
        z = b.wire(f"z_{name}_wide", z_bits, Cat(const(0, 1), draw, odd))
        magnitude = b.reg(f"z_{name}", z_bits, init=None)
        sign = b.reg(f"z_{name}_sign", init=None)
        b.on(None, (magnitude, Srl(z, bits(entry, 0, PLACES_BITS))), (sign, bits(entry, PLACES_BITS, 1)))
        scaled[name] = magnitude ^ Repeat(sign, z_bits), sign
    low = b.reg("low", form.bits, init=None)
    plain_late = b.reg("plain_low", form.bits, init=None)
    b.on(None, (low, constant(b, machine, "low_value", ends["low"])), (plain_late, plain))
    may = b.reg("may_rise", init=None)
    b.on(None, (may, may_rise))
    return _compared(b, scaled, (plain_late, low), may)


def _compared(b: Block, scaled: dict[str, tuple[Signal, Signal]], value: tuple[Signal, Signal], may: Signal) -> Signal:
    """Register, two stages late: word - low > z * high - z * low."""
    plain, low = value
    (high_ones, high_sign), (low_ones, low_sign) = scaled["high"], scaled["low"]
    w = width(plain) + 1
    high_part = b.wire("high_part", width(high_ones), high_ones + resize(high_sign, width(high_ones)))
    low_part = b.wire("low_part", width(low_ones), low_ones + resize(low_sign, width(low_ones)))
    distance = b.reg("distance", width(high_part), init=None)
    b.on(None, (distance, high_part - low_part))
    step = b.reg("step", w, init=None)
    b.on(None, (step, Cat(bits(plain, w - 2, 1), plain) - twos(low, w)))
    may_late = b.reg("may_rise_late", init=None)
    b.on(None, (may_late, may))
    leave(b, "lost", bits(distance, 0, DRAW_BITS + 1))
    reach = bits(distance, DRAW_BITS + 1, width(distance) - DRAW_BITS - 1)  # rounded down: the step is whole
    rise = b.reg("rise", init=None)
    size = max(width(reach), w)
    b.on(None, (rise, all_of(may_late, ~bits(step, w - 1, 1), resize(step, size) > resize(reach, size))))
    return rise
