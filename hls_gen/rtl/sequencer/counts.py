"""Counts of words in which writer and reader of the tuple memory meet.

    word written ------> arrived + 1      word claimed -----> arrived - 1      arrived >= 1: the word is there
                 `-----> free - 1         word given back --> free + 1         free >= 1: the writer may go on

Nothing else keeps the reader from words that are not there, and the writer from words that are still read.
"""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, bits, choose, resize, width

from .spec import SequencerSpec


@dataclass(frozen=True)
class Counts:
    """Registers of the issuer, in two's complement of ``SequencerSpec.count_bits``."""

    arrived: Signal
    """Words written and not claimed. Below 0 while words are claimed that are not there yet."""
    arrived_minus_1: Signal
    """One less: its sign says whether there is a word to claim, without a comparison on the longest path."""
    free_minus_1: Signal
    """Words that may be overwritten, less 1: its sign says whether there is one."""

    @classmethod
    def registers(cls, b: Block, spec: SequencerSpec) -> "Counts":
        """The registers in ``b``. The tuple memory is empty after reset."""
        w = spec.count_bits
        arrived = b.reg("arrived", w)
        less = b.reg("arrived_minus_1", w, init=-1)
        return cls(arrived, less, b.reg("free_minus_1", w, init=spec.sequencer.ring_words - 1))

    def there(self, claims: Signal) -> Signal:
        """Whether the next word is there: one to be claimed if ``claims``, else all that were claimed before."""
        return ~choose(claims, _sign(self.arrived_minus_1), _sign(self.arrived), 1)

    @property
    def has_free(self) -> Signal:
        """Whether a word may be overwritten."""
        return ~_sign(self.free_minus_1)

    def advance(
        self, b: Block, write: Signal, claimed: Signal, given: Signal, ahead: tuple[Signal, Signal] | None = None
    ) -> None:
        """Keep the counts: ``write`` of a word and so many ``claimed`` now, ``given`` back a cycle ago.

        ``ahead``: (a tap that claims words ahead is taken now, how many words); None where no tap does.
        """
        w = width(self.free_minus_1)
        for count in (self.arrived, self.arrived_minus_1):
            left = count
            if ahead is not None:  # whether it is taken, and claims them, is known late: no sum waits for it
                claims, words = ahead
                left = choose(claims, count - resize(words, w), count, w)
            b.on(None, (count, add(left, write, w) - claimed))
        b.on(None, (self.free_minus_1, self.free_minus_1 - resize(write, w) + given))


def _sign(count: Signal) -> Signal:
    """1 where a count is below 0."""
    return bits(count, width(count) - 1, 1)
