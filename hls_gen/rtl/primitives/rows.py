"""Products in LUTs: rows of one factor, chosen by the bits of the other factor and added up. The Verilog has no
multiplication, so that no tool takes a DSP block for it."""

from veriloggen import Cat, Repeat

from .block import Block, Signal, any_of, bits, choose, const, resize, sign_extend, width


def sum_of_rows(left: Signal, right: Signal) -> Signal:
    """The product of two variables without sign, in as many bits as both have: a row for each bit of ``left``, which
    should be few."""
    wide = width(left) + width(right)
    terms = []
    for place in range(width(left)):
        row = choose(bits(left, place, 1), resize(right, wide - place), 0, wide - place)
        terms.append(Cat(row, const(0, place)) if place else row)
    return added(terms)[0]


def product_in_luts(b: Block, name: str, left: Signal, right: Signal) -> Signal:
    """The product of two variables in two's complement, in as many bits as both have; see `rows_of_product`."""
    return added(rows_of_product(b, name, left, right))[0]


def rows_of_product(b: Block, name: str, left: Signal, right: Signal) -> list[Signal]:
    """Rows whose sum is the product of two variables in two's complement: one for every two bits of ``left`` (Booth's
    digits, -2..2), and one more.

    Parameters
    ----------
    name : str
        Beginning of the wires' names.
    left : Signal
        The factor whose digits choose rows: the narrower one.
    right : Signal
        The other factor, of which a row is 0, one or two, negative or not.

    Returns
    -------
    list of Signal
        Expressions in as many bits as both factors have; so many bits of their sum count.
    """
    n = width(left)
    wide = width(left) + width(right)
    terms = []
    ones = []
    for place in range(0, n, 2):
        below = bits(left, place - 1, 1) if place else const(0, 1)
        at = bits(left, place, 1)
        above = bits(left, min(place + 1, n - 1), 1)
        is_one = b.wire(f"{name}_one_{place}", 1, at ^ below)
        is_two = b.wire(f"{name}_two_{place}", 1, any_of(above & ~at & ~below, ~above & at & below))
        once = b.wire(f"{name}_row_{place}", wide - place - 1, sign_extend(right, wide - place - 1))
        twice = Cat(once, const(0, 1))
        size = choose(is_two, twice, choose(is_one, sign_extend(right, wide - place), 0, wide - place), wide - place)
        row = size ^ Repeat(above, wide - place)  # less one where it is negative: ``ones`` make up for that
        terms.append(Cat(row, const(0, place)) if place else row)
        ones = [above, *([const(0, 1)] if place else []), *ones]
    return [*terms, resize(Cat(*ones) if len(ones) > 1 else ones[0], wide)]


def added(terms: list[Signal], levels: int | None = None) -> list[Signal]:
    """Expressions of one width, added in pairs so many ``levels`` deep, by default until one is left."""
    while len(terms) > 1 and levels != 0:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2])]
        terms = [*pairs, *terms[2 * len(pairs) :]]
        levels = None if levels is None else levels - 1
    return terms
