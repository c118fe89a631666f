"""Counts of words in which writer and reader of the tuple memory meet.

    word written ------> arrived + 1      word claimed -----> arrived - 1      arrived >= 1: the word is there
                 `-----> free - 1         word given back --> free + 1         free >= 1: the writer may go on

Nothing else keeps the reader from words that are not there, and the writer from words that are still read.
"""

from dataclasses import dataclass
from typing import NamedTuple

from veriloggen import Cat, Repeat

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, const, resize, width

from .spec import SequencerSpec


@dataclass(frozen=True)
class Counts:
    """Registers of the issuer, in two's complement of ``SequencerSpec.count_bits``."""

    arrived: Signal
    """Words written and not claimed. Below 0 while words are claimed that are not there yet."""
    arrived_minus_1: Signal
    """One less: its sign says whether there is a word to claim, without a comparison on the longest path."""
    free_minus_1: Signal
    """Words that may be overwritten, less 1."""
    full: Signal
    """No word may be overwritten: the sign of ``free_minus_1``, but 1 in the first cycle after reset, in which the
    writer takes its first row. So the writer asks this register alone."""

    @classmethod
    def registers(cls, b: Block, spec: SequencerSpec) -> "Counts":
        """The registers in ``b``. The tuple memory is empty after reset."""
        w = spec.count_bits
        arrived = b.reg("arrived", w)
        less = b.reg("arrived_minus_1", w, init=-1)
        free_minus_1 = b.reg("free_minus_1", w, init=spec.sequencer.tuple_memory_words - 1)
        return cls(arrived, less, free_minus_1, b.reg("full", init=1))

    def there(self, claims: Signal) -> Signal:
        """Whether the next word is there: one to be claimed if ``claims``, else all that were claimed before."""
        return ~choose(claims, _sign(self.arrived_minus_1), _sign(self.arrived), 1)

    def advance(self, b: Block, write: Signal, claimed: "Claimed", given: Signal) -> None:
        """Keep the counts: ``write`` of a word now, words that are ``claimed`` now, ``given`` back a cycle ago."""
        w = width(self.free_minus_1)
        for name, count in (("arrived", self.arrived), ("arrived_minus_1", self.arrived_minus_1)):
            if claimed.ahead is None:
                count_next = _summed(b, f"{name}_next", count, claimed.less & Repeat(claimed.goes, w), write)
            else:  # so much is claimed that both sums are made, and the late one of conditions chooses
                claims, words = claimed.ahead
                left = b.wire(f"{name}_left", w, choose(claims, count - resize(words, w), count, w))
                less = _summed(b, f"{name}_claimed", left, claimed.less, write)
                count_next = choose(claimed.goes, less, count + resize(write, w), w)
            b.on(None, (count, count_next))
        free_next = b.wire("free_minus_1_next", w, self.free_minus_1 - resize(write, w) + given)
        b.on(None, (self.free_minus_1, free_next), (self.full, _sign(free_next)))


class Claimed(NamedTuple):
    """Words that are claimed in this cycle."""

    goes: Signal
    """They are; known late. The others mean nothing where it is 0."""
    less: Signal
    """Number that is added to a count for them: 0 or below, in two's complement."""
    ahead: tuple[Signal, Signal] | None
    """Whether a tap is taken that claims words ahead, and how many words; None where no tap does."""


def _summed(b: Block, name: str, count: Signal, less: Signal, write: Signal) -> Signal:
    """The sum of the three: one adder, since the lowest bit of each of its numbers makes the carry."""
    w = width(count)
    total = b.wire(name, w + 1, Cat(count, const(1, 1)) + Cat(less, write))
    b.wire(f"{name}_carry_unused", 1, bits(total, 0, 1))
    return bits(total, 1, w)


def _sign(count: Signal) -> Signal:
    """1 where a count is below 0."""
    return bits(count, width(count) - 1, 1)
