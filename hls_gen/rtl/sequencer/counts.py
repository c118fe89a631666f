"""Counts of words in which writer and reader of the tuple memory meet.

    word written ------> arrived + 1      word claimed -----> arrived - 1      arrived >= 1: the word is there
                 `-----> free - 1         word given back --> free + 1         free >= 1: the writer may go on

Nothing else keeps the reader from words that are not there, and the writer from words that are still read.
"""

from dataclasses import dataclass

from veriloggen import Cat

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
        free_minus_1 = b.reg("free_minus_1", w, init=spec.sequencer.ring_words - 1)
        return cls(arrived, less, free_minus_1, b.reg("full", init=1))

    def there(self, claims: Signal) -> Signal:
        """Whether the next word is there: one to be claimed if ``claims``, else all that were claimed before."""
        return ~choose(claims, _sign(self.arrived_minus_1), _sign(self.arrived), 1)

    def advance(
        self, b: Block, write: Signal, less: Signal, given: Signal, ahead: tuple[Signal, Signal] | None = None
    ) -> None:
        """Keep the counts: ``write`` of a word now, ``given`` back a cycle ago. ``less`` is added to the words that
        have arrived, for those that are claimed now: 0 or below, in two's complement.

        ``ahead``: (a tap that claims words ahead is taken now, how many words); None where no tap does.
        """
        w = width(self.free_minus_1)
        for name, count in (("arrived", self.arrived), ("arrived_minus_1", self.arrived_minus_1)):
            left = count
            if ahead is not None:  # whether it is taken, and claims them, is known late: no sum waits for it
                claims, words = ahead
                left = b.wire(f"{name}_left", w, choose(claims, count - resize(words, w), count, w))
            # one adder for three numbers: the lowest bit of each makes the carry
            total = b.wire(f"{name}_next", w + 1, Cat(left, const(1, 1)) + Cat(less, write))
            b.wire(f"{name}_carry_unused", 1, bits(total, 0, 1))
            b.on(None, (count, bits(total, 1, w)))
        free_next = b.wire("free_minus_1_next", w, self.free_minus_1 - resize(write, w) + given)
        b.on(None, (self.free_minus_1, free_next), (self.full, _sign(free_next)))


def _sign(count: Signal) -> Signal:
    """1 where a count is below 0."""
    return bits(count, width(count) - 1, 1)
