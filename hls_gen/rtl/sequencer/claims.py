"""Which words of the ring a tap gives back (spec B6).

    claim of a tuple --> register --> hold counts down to 0; from then on each claim gives back as many words

A layer's windows keep a fixed number of tuples in the ring: the oldest of them is given back when the next one is
claimed. So no tuple needs a mark of its own, and the writer may overwrite words as soon as no tap reads them any more.

What a tap gives back is told a cycle after the tap was taken, from registers, because whether a tap is taken is known
last in a cycle.
"""

from typing import NamedTuple

from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    choose,
    eq,
    nonzero,
    resize,
    sub,
    width,
)

from .layers import Layers
from .tap_events import TapEvents


class Ahead(NamedTuple):
    """Words that the tap at hand claims beside its own tuple. ``any`` is known late in a cycle, so ``words`` is not
    masked with it: the issuer's sums begin with ``words``."""

    any: Signal
    words: Signal
    """How many, where there are any."""


def given_back(b: Block, layers: Layers, events: TapEvents, claim: Signal, ahead: Ahead | None) -> Signal:
    """Words that the tap taken at the last clock edge gives back, 0 or more; ``claim``, ``ahead``: what the tap at hand
    claims."""
    if ahead is None:
        return _given_by_tuples(b, layers, events, claim)
    return _given_by_words(b, layers, events, claim, ahead)


def _given_by_words(b: Block, layers: Layers, events: TapEvents, claim: Signal, ahead: Ahead) -> Signal:
    """Words that are given back where several tuples may be claimed at once: with counters, or with a table of tuples
    that taps claim ahead.

    Parameters
    ----------
    layers : Layers
        The layer at hand.
    events : TapEvents
        Events of the tap at hand.
    claim : Signal
        The tap at hand claims its tuple.
    ahead : Ahead
        Words that it claims beside its own.

    Returns
    -------
    Signal
        Words that the tap taken at the last clock edge gives back, 0 or more.
    """
    gap_words = b.wire("gap_claimed", width(ahead.words), choose(ahead.any, ahead.words, 0, width(ahead.words)))
    start = layers.now.hold_words
    w = width(start)
    count = max(w, width(gap_words)) + 1
    hold = b.reg("hold", w)  # words still to be claimed before the first is given back
    if layers.start.ahead_base is None:  # counters: a tap that claims words ahead claims its own tuple, too
        tuple_words = add(layers.now.words_minus_1, 1, count)
        claims = choose(claim, tuple_words + resize(gap_words, count), 0, count)
    else:
        tuple_words = b.reg("own_words", count)  # a register, since what is given back is on a long path
        b.on(events.begin, (tuple_words, add(layers.upcoming.words_minus_1, 1, count)))
        claims = choose(claim, tuple_words, 0, count) + resize(gap_words, count)
    claimed, begun = b.reg("claimed_words", count), b.reg("layer_begun")  # both of the cycle before
    b.on(None, (claimed, choose(events.taken, claims, 0, count)), (begun, events.begin))
    left = b.wire("hold_left", count, sub(resize(hold, count), claimed, count))
    negative = bits(left, count - 1, 1)
    if count > w + 1:  # else all of them are looked at
        b.wire("hold_left_unused", count - 1 - w, bits(left, w, count - 1 - w))
    b.on(None, (hold, choose(begun, start, choose(negative, 0, bits(left, 0, w), w), w)))
    return choose(negative, sub(claimed, hold, count), 0, count)


def _given_by_tuples(b: Block, layers: Layers, events: TapEvents, claim: Signal) -> Signal:
    """As _given_by_words where one tuple at a time is claimed, and counting needs less logic."""
    start = layers.start.hold_tuples
    w = width(start)
    count = w + 1
    hold = b.reg("hold", w)  # tuples still to be claimed before the first is given back
    holding = b.reg("holding")  # hold is not 0: a register, since what is given back is on a long path
    change = events.change
    b.on(
        events.move & any_of(events.change, claim & holding),
        (hold, choose(change, start, sub(hold, 1, w), w)),
        (holding, choose(change, nonzero(start), ~eq(hold, 1), 1)),
    )
    given = b.reg("given_words", count)
    gives = b.wire("gives_back", 1, all_of(layers.have, claim, ~holding) & events.move)
    b.on(None, (given, choose(gives, add(layers.now.words_minus_1, 1, count), 0, count)))
    return given
