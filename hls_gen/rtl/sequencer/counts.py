"""Counts of words in which writer and reader of the tuple memory meet.

    word written ------> arrived + 1      word claimed -----> arrived - 1      arrived >= 1: the word is there
                 `-----> free - 1         word given back --> free + 1         free >= 1: the writer may go on

Nothing else keeps the reader from words that are not there, and the writer from words that are still read.
"""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, bits, choose, nonzero, resize, width

from .spec import SequencerSpec


@dataclass(frozen=True)
class Counts:
    """Registers of the issuer, in two's complement of ``SequencerSpec.count_bits``.

    Attributes
    ----------
    arrived : Signal
        Words written and not claimed. Below 0 while words are claimed that are not there yet.
    arrived_minus_1 : Signal
        One less: its sign says whether there is a word to claim, without a comparison on the longest path.
    free : Signal
        Words that may be overwritten.
    """

    arrived: Signal
    arrived_minus_1: Signal
    free: Signal

    @classmethod
    def registers(cls, b: Block, spec: SequencerSpec) -> "Counts":
        """The registers in ``b``. The tuple memory is empty after reset."""
        w = spec.count_bits
        arrived, less = b.reg("arrived", w), b.reg("arrived_minus_1", w, init=-1)
        return cls(arrived, less, b.reg("free", w, init=spec.ring_words))

    def there(self, claims: Signal) -> Signal:
        """Whether the next word is there: one to be claimed if ``claims``, else all that were claimed before."""
        return ~choose(claims, _sign(self.arrived_minus_1), _sign(self.arrived), 1)

    @property
    def has_free(self) -> Signal:
        """Whether a word may be overwritten."""
        return all_of(~_sign(self.free), nonzero(self.free))

    def advance(self, b: Block, write: Signal, claimed: Signal, given: Signal) -> None:
        """Keep the counts: ``write`` of a word and so many ``claimed`` now, ``given`` back a cycle ago."""
        w = width(self.free)
        for count in (self.arrived, self.arrived_minus_1):
            b.on(None, (count, add(count, write, w) - claimed))
        b.on(None, (self.free, self.free - resize(write, w) + given))


def _sign(count: Signal) -> Signal:
    """1 where a count is below 0."""
    return bits(count, width(count) - 1, 1)
