"""Sums of bits in carry-save form, for synthesis: columns by weight, compressed until one add is left.

    matches of three lanes as a number of 2 bits --> registers --> 6:3, 5:3 and 3:2 compressors, column by column from
    weight 1 up, those bits first that arrive first --> two rows, three bits in the lowest column --> add

For popcount.py and popcount_planes.py, whose bodies for simulation say what the sum is. The third bit of the lowest
column is the add's carry in. Why this and not something else: popcount.py has what was tried.

Yosys prices two LUT5 below one and a half LUT6, since a pair with the same inputs is one LUT6_2: three lanes become an
LUT2 and two LUT5, which are 3 LUTs in a count of unpaired ones and fewer in silicon than two LUT6.
"""

from collections.abc import Callable, Sequence

from veriloggen import Cat

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, const, side_by_side

BitAtLevel = tuple[int, Signal]
"""A wire and the level of logic at which it arrives."""
BitColumns = list[list[BitAtLevel]]
"""Bits by weight: 1, 2, 4, ..."""


def matches_by_threes(b: Block, match: Signal, lanes: Sequence[int], singles: int, tag: str = "") -> BitColumns:
    """Registers of matches: a number of 2 bits for each three of ``lanes``, a bit for each of the last ``singles``."""
    columns: BitColumns = [[], []]
    full = len(lanes) - singles
    for k in range(0, full, 3):
        triple = b.reg(f"triple_{tag}{k // 3}", 2, init=None)
        b.on(None, (triple, _full_add(*(match[lane] for lane in lanes[k : k + 3]))))
        for weight in range(2):
            columns[weight].append((0, triple[weight]))
    for k in range(full, len(lanes)):
        single = b.reg(f"single_{tag}{k}", init=None)
        b.on(None, (single, match[lanes[k]]))
        columns[0].append((0, single))
    return columns


def compress(b: Block, columns: BitColumns, tag: str = "", *, sparing: bool = False) -> BitColumns:
    """Add bits until each column has two at the most, three in the lowest that has several.

    The sum modulo 2^columns stays the same.

    Parameters
    ----------
    b
        The module that gets the adders.
    columns
        Bits of each weight, with the level at which each arrives.
    tag
        Beginning of the names of the adders' wires.
    sparing
        Whether a step takes only as many bits as must go. The logic is then shallower where all columns are full, as
        with bit planes. Bits that arrive later than the first ones of a column also wait, if that saves further levels:
        then no carry runs through all columns.

    Returns
    -------
    list
        The columns that are left.
    """
    patient = sparing and _depth(columns, patient=True) < _depth(columns, patient=False)
    return _compressed(columns, lambda ones, name: _compress(b, ones, tag + name), sparing, patient)


def _depth(columns: BitColumns, *, patient: bool) -> int:
    """The level at which the last bit arrives after sparing compression."""
    final = _compressed(columns, lambda ones, _: ones[: len(ones).bit_length()], True, patient)
    return max((level for column in final for level, _ in column), default=0)


def _compressed(
    columns: BitColumns, count: Callable[[list[Signal], str], list[Signal]], sparing: bool, patient: bool
) -> BitColumns:
    """The columns that `compress` returns; ``count`` returns the number of ones among some wires, and takes a name for
    that number."""
    columns = [list(column) for column in columns]
    carry_in = False
    for weight, column in enumerate(columns):
        number = 0
        most = 2 if carry_in else 3
        while len(column) > most:
            column.sort(key=lambda bit: bit[0])
            take = next(n for n in (6, 5, 3) if len(column) >= n)
            if sparing:
                take = next((n for n in (3, 5) if len(column) - n < most), 6)
            if patient:
                early = sum(arrives == column[0][0] for arrives, _ in column)
                take = next((n for n in (6, 5, 3) if n <= min(take, early)), take)
            level = max(arrives for arrives, _ in column[:take]) + 1
            ones = count([wire for _, wire in column[:take]], f"{weight}_{number}")
            del column[:take]
            for k, digit in enumerate(ones):
                if weight + k < len(columns):
                    columns[weight + k].append((level, digit))
            number += 1
        carry_in |= len(column) > 1
    return columns


def add(b: Block, columns: BitColumns, tag: str = "") -> Signal:
    """Sum of compressed columns, as wide as there are columns; carries above are lost."""
    rows = [[column[r][1] if r < len(column) else const(0, 1) for column in columns] for r in range(3)]
    low = next((k for k, column in enumerate(columns) if len(column) > 1), len(columns))
    if low == len(columns):
        return side_by_side(rows[0])
    carry = [rows[2][low]] * (len(columns[low]) == 3)  # a bit below both rows: the carry into the lowest column
    w = len(columns) - low
    high = len(columns) - low + len(carry)
    row_a, row_b = (b.wire(f"{tag}row_{name}", high, side_by_side(carry + row[low:])) for name, row in zip("ab", rows))
    name = f"{tag}row_sum" + "_and_unused_bit" * len(carry)
    total = bits(b.wire(name, high, row_a + row_b), len(carry), w)
    return Cat(total, *reversed(rows[0][:low])) if low else total


def _compress(b: Block, ones: list[Signal], tag: str) -> list[Signal]:
    """Number of ones among 3, 5 or 6 wires, low bit first: two full adders, then one over their carries."""
    if len(ones) == 3:
        small = b.wire(f"count_{tag}", 2, _full_add(*ones))
        return [small[0], small[1]]
    left = b.wire(f"left_{tag}", 2, _full_add(*ones[:3]))
    rest = _full_add(*ones[3:]) if len(ones) == 6 else Cat(ones[3] & ones[4], ones[3] ^ ones[4])
    right = b.wire(f"right_{tag}", 2, rest)
    both = b.wire(f"both_{tag}", 1, left[0] & right[0])
    whole = b.wire(f"count_{tag}", 3, Cat(_full_add(left[1], right[1], both), left[0] ^ right[0]))
    return [whole[0], whole[1], whole[2]]


def _full_add(x: Signal, y: Signal, z: Signal) -> Signal:
    """{carry, sum} of three bits."""
    return Cat((x & y) | (x & z) | (y & z), x ^ y ^ z)
