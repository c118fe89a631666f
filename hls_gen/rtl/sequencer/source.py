"""The interface that the three sorts of tap source share, and the choice between them.

    direct    every tap's tuple is the next one of the stream, and windows have a fixed number of taps: dense layers
    tables    flags, addresses and jumps from memories: any window in any order
    counters  a few counters, for windows in raster order (only in NPUs with ``raster``)

All work at the same time; the layer's row says which one is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, choose, const, width

from .tap_events import TapEvents

ALWAYS: Signal = const(1, 1)
NEVER: Signal = const(0, 1)
"""Signals of sources that never change. `served_tap` makes no gates for them."""


class TapSource(Protocol):
    """A part that makes the taps of a layer; each attribute is a signal that says something of the tap at hand."""

    serves: Signal
    """1 in layers whose taps this source makes. Exactly one source serves a layer."""
    will_serve: Signal
    """Value of ``serves`` after the next move."""
    new: Signal
    """The tap's tuple is read for the first time. It is claimed, but for later passes over the same window."""
    skip: Signal
    """The tap is no tap of a window: its tuple arrives now and is read later."""
    placed: Signal
    """The tuple lies at ``word``. Else it lies where the next new tuple does."""
    word: Signal | None
    """Address of the tuple's first word, counted from the layer's first word; address bits. None if ``placed`` is
    NEVER."""

    def advance(self, events: TapEvents) -> Signal:
        """Say what the source's registers do when the issuer takes the tap at hand, and when a layer begins.

        Returns
        -------
        Signal
            The tap after the next move is the last one of its window, if the source serves then.
        """


@dataclass(frozen=True)
class ServedTap:
    """The tap at hand, as the source that serves the layer says it; fields as in TapSource."""

    new: Signal
    skip: Signal
    placed: Signal
    word: Signal


def served_tap(b: Block, sources: Sequence[TapSource]) -> ServedTap:
    """Wires in ``b`` with what the source that serves the layer says."""
    return ServedTap(
        new=b.wire("tap_at_hand_new", 1, _served([(source.serves, source.new) for source in sources])),
        skip=b.wire("tap_at_hand_skip", 1, _served([(source.serves, source.skip) for source in sources])),
        placed=b.wire("tap_at_hand_placed", 1, _served([(source.serves, source.placed) for source in sources])),
        word=_word(b, [source for source in sources if source.word is not None]),
    )


def next_last(b: Block, sources: Sequence[TapSource], events: TapEvents) -> Signal:
    """Let all sources advance. The result is a wire in ``b``: the tap after the next move is the last one of a pass
    over its window. Much follows from that, so it goes to a register."""
    lasts = [(source.will_serve, source.advance(events)) for source in sources]
    return b.wire("next_tap_last", 1, _served(lasts))


def _served(signals: Sequence[tuple[Signal, Signal]]) -> Signal:
    """The 1-bit signal of the source that serves the layer, of pairs (it does, its signal); the first source is looked
    at if no other does.

    A chain of choices rather than an OR of ANDs: the sources whose signals arrive late are last in the chain, next to
    the logic that follows.
    """
    (_, signal), *others = signals
    for served, value in others:
        if value is ALWAYS:
            signal = any_of(served, signal)
        elif value is NEVER:
            signal = all_of(~served, signal)
        else:
            signal = choose(served, value, signal, 1)
    return signal


def _word(b: Block, sources: Sequence[TapSource]) -> Signal:
    """``word`` of the source that serves the layer; any value where none of them does."""
    word = sources[0].word
    for source in sources[1:]:
        word = choose(source.serves, source.word, word, width(word))
    return b.wire("relative_word", width(word), word)
