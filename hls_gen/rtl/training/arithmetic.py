"""Pieces of the arithmetic units: operands with their tables, shifts, sums of words (C8 to C10)."""

from collections.abc import Sequence
from dataclasses import dataclass

from veriloggen import Cat
from veriloggen.core.vtypes import Srl

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.hls_gen.design.training import ENTRY_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, by_number, choose, const, resize, width

from .word import magnitude_of, saturated, sign_of, twos, word_of

FINE_BITS = 3
"""Low bits of a shift's places, which the second stage shifts by."""


def parts(row: Signal, count: int) -> list[Signal]:
    """``count`` equal parts of a variable, low bits first."""
    w = width(row) // count
    return [bits(row, k * w, w) for k in range(count)]


@dataclass(frozen=True)
class CodedOperand:
    """An operand that may be a code."""

    cell: Signal
    """Bits of a word, or a code in its low bits."""
    coded: Signal
    """It is a code."""
    entries: Signal
    """Entries of its table, code 0 low."""
    mask: Signal
    """Bits of the cell that are the code."""

    @classmethod
    def ports(cls, b: Block, machine: MachineParameters, name: str, what: str) -> "CodedOperand":
        """Input ports ``name``, ``name_coded``, ``name_entries`` and ``name_mask``."""
        codes = machine.code_bits
        return cls(
            b.input(name, machine.form.bits, means=f"{what}: bits of a word, or a code"),
            b.input(f"{name}_coded", means=f"{what} is a code"),
            b.input(f"{name}_entries", ENTRY_BITS << codes, means=f"entries of the table of {what}, code 0 low"),
            b.input(f"{name}_mask", codes, means=f"bits of {what} that are the code"),
        )


@dataclass(frozen=True)
class DecodedOperand:
    """An operand with its value."""

    word: Signal
    """Register, OPERAND_LATENCY cycles late."""
    entry: Signal
    """Register, a cycle earlier: its entry in the table, if it is a code."""


def decoded(b: Block, machine: MachineParameters, name: str, operand: CodedOperand) -> DecodedOperand:
    """Two register stages: the entry of a code, and the word that it stands for."""
    codes = machine.code_bits
    form = machine.form
    code = b.wire(f"{name}_code", codes, bits(operand.cell, 0, codes) & operand.mask)
    selected = b.wire(f"{name}_found", ENTRY_BITS, by_number(code, parts(operand.entries, 1 << codes), ENTRY_BITS))
    entry = b.reg(f"{name}_entry", ENTRY_BITS, init=None)
    cell = b.reg(f"{name}_cell", form.bits, init=None)
    b.on(None, (entry, selected), (cell, operand.cell))
    word = b.reg(f"{name}_word", form.bits, init=None)
    b.on(None, (word, choose(operand.coded, constant(b, machine, name, entry), cell, form.bits)))
    return DecodedOperand(word, entry)


def constant(b: Block, machine: MachineParameters, name: str, entry: Signal) -> Signal:
    """Wire: the word of a table's entry."""
    form = machine.form
    magnitude = power(b, machine, name, entry, form.bits - 1)
    return b.wire(f"{name}_constant", form.bits, Cat(bits(entry, PLACES_BITS, 1), magnitude))


def power(b: Block, machine: MachineParameters, name: str, entry: Signal, w: int) -> Signal:
    """The magnitude of a table's entry, ``w`` bits: more than the fraction has."""
    wide = max(w, PLACES_BITS)  # a shift is as wide as its places at least
    two = b.localparam("TWO", 2 * machine.form.one, wide)
    magnitude = b.wire(f"{name}_power", wide, Srl(two, bits(entry, 0, PLACES_BITS)))
    if wide > w:
        leave(b, f"{name}_power_high", bits(magnitude, w, wide - w))
    return bits(magnitude, 0, w)


def shifted(b: Block, name: str, word: Signal, places: Signal) -> Signal:
    """Register, SHIFT_LATENCY cycles late: a word shifted to the right by 0 to 31 places, towards zero."""
    sign = b.reg(f"{name}_sign", init=None)
    sign_late = b.reg(f"{name}_sign_late", init=None)
    b.on(None, (sign, sign_of(word)), (sign_late, sign))
    return word_of(b, f"{name}_shifted", sign_late, shifted_magnitude(b, name, magnitude_of(word), places))


def shifted_magnitude(b: Block, name: str, magnitude: Signal, places: Signal) -> Signal:
    """Register, SHIFT_LATENCY cycles late: a magnitude shifted to the right by the low PLACES_BITS of ``places``."""
    w = width(magnitude)
    wide = max(w, PLACES_BITS)  # a shift is as wide as its places at least
    coarse = b.reg(f"{name}_coarse", wide, init=None)
    fine = b.reg(f"{name}_fine", wide, init=None)
    rest = b.reg(f"{name}_rest", FINE_BITS, init=None)
    far = Cat(bits(places, FINE_BITS, PLACES_BITS - FINE_BITS), const(0, FINE_BITS))
    b.on(
        None,
        (coarse, Srl(resize(magnitude, wide), far)),
        (rest, bits(places, 0, FINE_BITS)),
        (fine, Srl(coarse, rest)),
    )
    if wide > w:
        leave(b, f"{name}_fine_high", bits(fine, w, wide - w))
    return bits(fine, 0, w)


def word_sum(
    b: Block,
    name: str,
    left: Signal,
    right: Signal,
    minus: Signal | None = None,
    zones: Sequence[tuple[Signal, int]] = (),
) -> Signal:
    """Register, SUM_LATENCY cycles late: the saturated sum of two words; left - right where ``minus`` is 1; clipped to
    a zone of ``zones`` (see `saturated`)."""
    w = width(left)
    left_twos = b.reg(f"{name}_left", w, init=None)
    right_twos = b.reg(f"{name}_right", w, init=None)
    total = b.reg(f"{name}_total", w + 1, init=None)
    word = b.reg(name, w, init=None)
    b.on(None, (left_twos, twos(left, w)), (right_twos, twos(right, w, minus)))
    wide = [Cat(bits(side, w - 1, 1), side) for side in (left_twos, right_twos)]
    b.on(None, (total, wide[0] + wide[1]))
    b.on(None, (word, saturated(b, f"{name}_word", total, w, zones)))
    return word


def leave(b: Block, name: str, signal: Signal) -> None:
    """Name bits that nothing reads, for lint: a wire ``<name>_unused``."""
    b.wire(f"{name}_unused", width(signal), signal)
