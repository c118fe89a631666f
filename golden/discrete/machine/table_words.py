"""A table of codes inside the instruction CONFIG TABLE.

The instruction names the table in kind_a, the bits m of its codes in kind_b and the zone in kind_w. Words 1 to 3 hold
twelve bits for each code c = 0 to 7, from bit 12 c on:

=====  ======  =====================================================================================
bits   part    meaning
=====  ======  =====================================================================================
4..0   places  k + 1 of the value +-2^-k
5      sign    1 for minus
8..6   rank    the code whose value is number c of all values, in rising order
11..9          0
=====  ======  =====================================================================================

What belongs to no code of m bits is 0.
"""

import numpy as np

from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.discrete.word import WordFormat

from .faults import BAD_TABLE, BAD_ZONE, FaultRule
from .instruction import CONFIG, TABLE, Instruction

ENTRY_BITS, PLACES_BITS, SIGN_BIT, RANK_BIT, CODE_BITS = 12, 5, 5, 6, 3
"""Bits of a code's entry, width of its places, and where sign and rank lie; then width of a rank."""
PAYLOAD = ("a", "b", "d", "w", "columns", "rows")
"""Fields that are words 1 to 3, 16 bits each, low bits first."""


def config_table(number: int, table: CodeTable, zone: int) -> Instruction:
    """The instruction that loads a table.

    Parameters
    ----------
    number : int
        The table's number, by which kinds name it: 1 to 7.
    table : CodeTable
    zone : int
        1 or 2, at least the table's largest magnitude.

    Raises
    ------
    ValueError
        If the zone doesn't cover the table, or there is no such number.
    """
    if zone not in (1, 2) or table.span > zone:
        raise ValueError(
            f"table {number}: zone must be 1 or 2 and cover the table, whose largest magnitude is {table.span:g}, "
            f"got {zone}"
        )
    payload = 0
    for code, ranked in enumerate(np.argsort(table.real).tolist()):
        entry = int(table.places[code]) + 1 | (table.signs[code] < 0) << SIGN_BIT | ranked << RANK_BIT
        payload |= int(entry) << ENTRY_BITS * code
    parts = {name: payload >> 16 * k & 0xFFFF for k, name in enumerate(PAYLOAD)}
    return Instruction(operation=CONFIG, function=TABLE, kind_a=number, kind_b=table.bits, kind_w=zone, **parts)


def table_of(instruction: Instruction, form: WordFormat, code_bits: int) -> CodeTable | FaultRule:
    """The table of a CONFIG TABLE, or the rule that it breaks.

    Parameters
    ----------
    instruction : Instruction
    form : WordFormat
        Words of the machine, which must hold each value.
    code_bits : int
        Bits of the machine's widest code.
    """
    bits = instruction.kind_b
    zone = instruction.kind_w
    if not 1 <= bits <= code_bits:
        return BAD_TABLE
    if zone not in (1, 2):
        return BAD_ZONE
    payload = sum(getattr(instruction, name) << 16 * k for k, name in enumerate(PAYLOAD))
    entries = [payload >> ENTRY_BITS * code & ((1 << ENTRY_BITS) - 1) for code in range(1 << bits)]
    shifts = [entry & ((1 << PLACES_BITS) - 1) for entry in entries]
    signs = [-1 if entry >> SIGN_BIT & 1 else 1 for entry in entries]
    order = [entry >> RANK_BIT & ((1 << CODE_BITS) - 1) for entry in entries]
    below: int | None = None
    for code in order:  # by rising value: the first rule that is broken is told
        if code >= 1 << bits or shifts[code] > form.fraction + 1:
            return BAD_TABLE
        if shifts[code] == 0 and zone == 1:
            return BAD_ZONE
        word = signs[code] * (form.one * 2 >> shifts[code])
        if below is not None and word <= below:
            return BAD_TABLE
        below = word
    return CodeTable(tuple(sign * 2.0 ** (1 - shift) for sign, shift in zip(signs, shifts)))
