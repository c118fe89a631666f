"""Which words of the ring a tap claims, and which it gives back (spec B6).

    claim of a tuple --> hold counts down to 0; from then on each claim gives back as many words

A layer's windows keep a fixed number of tuples in the ring: the oldest of them is given back when the next one is
claimed. So no tuple needs a mark of its own, and the writer may overwrite words as soon as no tap reads them any more.
"""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    bits,
    choose,
    eq,
    nonzero,
    resize,
    sub,
    width,
)

from .tap import Tap


@dataclass(frozen=True)
class Claims:
    """Words that change hands as the issuer takes a tap; ``SequencerSpec.count_bits`` wide.

    Attributes
    ----------
    given : Signal
        Words that are given back.
    ahead : Signal or None
        Words that are claimed beside the tap's own. None without ``raster``.
    """

    given: Signal
    ahead: Signal | None


def by_words(b: Block, tap: Tap, count: int) -> Claims:
    """Claims with counters, which claim several tuples at once: ``hold`` counts words."""
    hold = b.reg("hold", width(tap.gap_words))  # words still to be claimed before the first is given back
    ahead = b.wire("claimed_ahead", count, choose(tap.step, tap.gap_words, 0, count))
    claims = add(tap.words_minus_1, 1, count) + resize(tap.gap_words, count)
    claimed = b.wire("claimed_words", count, choose(tap.step & tap.claim, claims, 0, count))
    left = b.wire("hold_left", count, sub(hold, claimed, count))
    negative = bits(left, count - 1, 1)
    b.on(tap.step, (hold, choose(negative, 0, bits(left, 0, width(hold)), width(hold))))
    b.on(tap.begin, (hold, tap.hold_next))
    return Claims(b.wire("given", count, choose(negative, sub(claimed, hold, count), 0, count)), ahead)


def by_tuples(b: Block, tap: Tap, count: int) -> Claims:
    """Claims without counters, one tuple at a time: ``hold`` counts tuples, which takes less logic."""
    w = width(tap.hold_next)
    hold = b.reg("hold", w)  # tuples still to be claimed before the first is given back
    holding = b.reg("holding")  # hold is not 0: a register, since the sum below is on the longest path
    b.on(all_of(tap.step, tap.claim, holding), (hold, sub(hold, 1, w)), (holding, ~eq(hold, 1)))
    b.on(tap.begin, (hold, tap.hold_next), (holding, nonzero(tap.hold_next)))
    gives = all_of(tap.step, tap.claim, ~holding)
    return Claims(b.wire("given", count, choose(gives, add(tap.words_minus_1, 1, count), 0, count)), None)
