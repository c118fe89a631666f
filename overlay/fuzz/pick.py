"""Random choices of a campaign: few kinds of them, so that Hypothesis can make them too."""

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

Choice = TypeVar("Choice")


class Pick(Protocol):
    """Makes choices."""

    def integer(self, low: int, high: int) -> int:
        """An integer of ``low`` to ``high``, both included."""

    def of(self, several: Sequence[Choice]) -> Choice:
        """One of several."""

    def flip(self) -> bool:
        """True or False."""


class SeededPick:
    """The choices that belong to a seed, the same on every machine.

    Parameters
    ----------
    *seed
        Anything whose text says which choices are meant.
    """

    def __init__(self, *seed: object):
        self._random = random.Random(" ".join(map(str, seed)))

    def integer(self, low: int, high: int) -> int:
        """As ``Pick.integer``."""
        return self._random.randint(low, high)

    def of(self, several: Sequence[Choice]) -> Choice:
        """As ``Pick.of``."""
        return several[self._random.randrange(len(several))]

    def flip(self) -> bool:
        """As ``Pick.flip``."""
        return self._random.random() < 0.5
