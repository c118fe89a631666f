"""Reducers: what makes one number of the products of a window, in each PE (golden/layers/accumulate.py).

    features[kfp] --products--> reducer --sum of the window--> results

Each kind has only the values that mean something in it:

    ProductSum           adds products of integers: the only reducer of an integer array
    SerialPopcount       counts products that are 1, beat by beat, and may weigh each count by its bit plane
    CollectedPopcount    collects the products of a window, and counts those that are 1 once
    Or                   says whether any product is 1, beat by beat or of a window's collected products
    OrWords              takes the OR of each word of products, and counts the words whose OR is 1, in the same two ways

Files and command lines have these values in one flat list of names; `kind_of` says which kind they mean.
"""

from dataclasses import dataclass
from typing import ClassVar

from .lanes import lane_groups
from .parts import NpuPart, choice, number
from .rules import require
from .widths import PLANES, bits_for

ACCUMULATE = ("popcount", "or", "both", "or_words")
"""Values of ``accumulate`` in files and on command lines: the ways of reducing that an NPU has besides those that
``word_lanes`` adds."""
COLLECT = "Products that a PE collects before they are reduced at once: a multiple of kfp, or 0."
WORD_LANES = "Lanes whose products are ORed to the bit of a word, where PEs count words: a divisor of kfp, or 0."


@dataclass(frozen=True, kw_only=True)
class Reducer(NpuPart):
    """The values and rules that reducers of every kind have."""

    @property
    def accumulations(self) -> tuple[str, ...]:
        """The ways in which the reducer reduces products, as values of ``accumulate`` of golden's layers."""
        return ("popcount",)

    @property
    def choices(self) -> tuple[str, ...]:
        """The accumulations behind the first one: a layer chooses one of them by a bit of its kernel rows."""
        return self.accumulations[1:]

    @property
    def collects(self) -> bool:
        """Whether the reducer collects the products of a window and reduces them once; else it reduces each beat's."""
        return False

    def code_bits(self, integers_alone: bool) -> int:
        """Bits beside the weights in a kernel row, which say how the sum of a word counts: one for each of the
        ``choices``. ``integers_alone``: whether all words that ever come are those of integers from the host."""
        return len(self.choices)


@dataclass(frozen=True, kw_only=True)
class ProductSum(Reducer):
    """The sum of products of integers."""


@dataclass(frozen=True, kw_only=True)
class BinaryReducer(Reducer):
    """The values and rules that reducers of a binary array have, popcount or OR."""

    engine: ClassVar[str] = "binary"

    def products(self, kfp: int) -> int:
        """The most products that are reduced at once: those of a beat, ``kfp``, or those that are collected."""
        return kfp

    def terms(self, kfp: int) -> int:
        """The most numbers that are counted at once: products, or words of products."""
        return self.products(kfp)

    def counter_terms(self, kfp: int) -> int:
        """The most numbers that one counter counts at once: fewer than `terms` where each bit plane has a counter."""
        return self.terms(kfp)

    def least_acc_bits(self, kfp: int) -> int:
        """Width of an accumulator that holds what is counted at once, >= 4."""
        return max(4, bits_for(self.terms(kfp)) + 1)

    def check_lanes(self, kfp: int) -> None:
        """Raise ValueError unless its values go with words of ``kfp`` lanes."""


@dataclass(frozen=True, kw_only=True)
class Popcount(BinaryReducer):
    """The values and rules that both kinds of popcount have: of a beat's products, and of all products of a window."""

    accumulate: str = choice(
        "popcount",
        ("popcount", "both"),
        means="How binary PEs accumulate; both: chosen by layer; or_words: OR within words, count over words.",
    )
    word_lanes: int = number(0, least=0, rare=True, means=WORD_LANES)

    @property
    def accumulations(self) -> tuple[str, ...]:
        return ("popcount", *["or"] * (self.accumulate == "both"), *["or_words"] * (self.word_lanes > 0))

    def check_lanes(self, kfp: int) -> None:
        lanes = self.word_lanes
        require(lanes == 0 or kfp % lanes == 0, f"word_lanes must be 0 or divide kfp = {kfp}", lanes)


@dataclass(frozen=True, kw_only=True)
class SerialPopcount(Popcount):
    """A popcount of each beat, which may be weighed by its bit plane and is added to an accumulator."""

    planes: int = number(
        0,
        least=2,
        most=PLANES,
        or_zero=True,
        means="Bit planes of an integer input side by side: 0, or 2 to 9 and below kfp.",
    )
    shift_bits: int = number(
        3,
        least=0,
        most=bits_for(PLANES - 1),
        means="Bit planes of an integer input one after another: as many as 2 to the power of this.",
    )

    def counter_terms(self, kfp: int) -> int:
        return max(lanes for _, lanes in lane_groups(kfp, self.planes))

    def code_bits(self, integers_alone: bool) -> int:
        """Bits of `Reducer.code_bits`, and below them 1 bit for planes side by side, unless every word is of an integer
        input, or shift and sign for planes one after another."""
        choices = super().code_bits(integers_alone)
        if self.planes:
            return 0 if integers_alone and not choices else choices + 1
        return choices + (1 + self.shift_bits if self.shift_bits else 0)

    def check_lanes(self, kfp: int) -> None:
        require(self.planes < kfp, f"planes must be 0 or below kfp = {kfp}", self.planes)
        super().check_lanes(kfp)


@dataclass(frozen=True, kw_only=True)
class CollectedPopcount(Popcount):
    """A popcount of all products of a window at once."""

    collect: int = number(means=COLLECT)

    @property
    def collects(self) -> bool:
        return True

    def products(self, kfp: int) -> int:
        return self.collect

    def check_lanes(self, kfp: int) -> None:
        super().check_lanes(kfp)
        _check_collect(self.collect, kfp)


@dataclass(frozen=True, kw_only=True)
class OrReducer(BinaryReducer):
    """The values and rules that both kinds of OR have: of all products of a window, and of words that are counted."""

    accumulate: ClassVar[str]

    collect: int = number(0, least=0, means=COLLECT)

    @property
    def accumulations(self) -> tuple[str, ...]:
        return (self.accumulate,)

    @property
    def collects(self) -> bool:
        return self.collect > 0

    def products(self, kfp: int) -> int:
        return self.collect or kfp

    def check_lanes(self, kfp: int) -> None:
        _check_collect(self.collect, kfp)


@dataclass(frozen=True, kw_only=True)
class Or(OrReducer):
    """The OR of all products."""

    accumulate: ClassVar[str] = "or"

    def least_acc_bits(self, kfp: int) -> int:
        return 4


@dataclass(frozen=True, kw_only=True)
class OrWords(OrReducer):
    """A popcount of the ORs of words."""

    accumulate: ClassVar[str] = "or_words"

    word_lanes: int = number(means=WORD_LANES)

    def terms(self, kfp: int) -> int:
        return self.products(kfp) // self.word_lanes

    def check_lanes(self, kfp: int) -> None:
        require(kfp % self.word_lanes == 0, f"word_lanes must divide kfp = {kfp}", self.word_lanes)
        super().check_lanes(kfp)


def _check_collect(collect: int, kfp: int) -> None:
    """Raise ValueError unless whole beats of ``kfp`` products are collected, or none."""
    require(collect % kfp == 0, f"collect must be 0 or a multiple of kfp = {kfp}", collect)


def kind_of(accumulate: str, collect: int) -> type[BinaryReducer]:
    """The kind of reducer of a binary array.

    Parameters
    ----------
    accumulate
        One of `ACCUMULATE`.
    collect
        Products that are collected; 0: none are.
    """
    if accumulate == "or":
        return Or
    if accumulate == "or_words":
        return OrWords
    return CollectedPopcount if collect else SerialPopcount
