"""Sign-magnitude words in the hardware.  Golden twin: golden/discrete/word.py.

    {sign, magnitude} <--> two's complement, for sums

A word that is made here has no minus zero.
"""

from collections.abc import Sequence

from veriloggen import Cat, Repeat

from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    all_of,
    any_of,
    bits,
    choose,
    const,
    nonzero,
    resize,
    width,
)


def sign_of(word: Signal) -> Signal:
    """The sign bit."""
    return bits(word, width(word) - 1, 1)


def magnitude_of(word: Signal) -> Signal:
    """The magnitude."""
    return bits(word, 0, width(word) - 1)


def largest(b: Block, w: int) -> Signal:
    """Constant: the largest magnitude, of ``w`` bits."""
    return b.localparam("LARGEST", (1 << w) - 1, w)


def word_of(b: Block, name: str, sign: Signal, magnitude: Signal) -> Signal:
    """Wire: the word of a sign and a magnitude variable; 0 has no sign."""
    return b.wire(name, width(magnitude) + 1, Cat(all_of(sign, nonzero(magnitude)), magnitude))


def twos(word: Signal, w: int, flip: Signal | None = None) -> Signal:
    """The word in two's complement of ``w`` bits, more than the magnitude has; times -1 where ``flip`` is 1."""
    sign = sign_of(word) if flip is None else sign_of(word) ^ flip
    return (resize(magnitude_of(word), w) ^ Repeat(sign, w)) + resize(sign, w)


def saturated(b: Block, name: str, total: Signal, w: int, zones: Sequence[tuple[Signal, int]] = ()) -> Signal:
    """Wire: the word of ``w`` bits nearest to a two's complement variable.

    ``zones``, at most one of which holds, are (condition, k): the word is clipped to [-2^k, 2^k], too.
    """
    wide = width(total)
    sign = bits(total, wide - 1, 1)
    size = b.wire(f"{name}_size", wide, (total ^ Repeat(sign, wide)) + resize(sign, wide))
    over = nonzero(bits(size, w - 1, wide - w + 1))
    most = largest(b, w - 1)
    for condition, k in zones:
        over = any_of(over, all_of(condition, nonzero(bits(size, k, w - 1 - k))))
        most = choose(condition, const(1 << k, w - 1), most, w - 1)
    if zones:
        over = b.wire(f"{name}_over", 1, over)
        most = b.wire(f"{name}_bound", w - 1, most)
    magnitude = b.wire(f"{name}_magnitude", w - 1, choose(over, most, bits(size, 0, w - 1), w - 1))
    return word_of(b, name, sign, magnitude)
