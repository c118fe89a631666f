"""Random choices of a campaign."""

import random
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


class Pick:
    """The choices that belong to a seed, the same on every machine.

    Parameters
    ----------
    *seed
        Anything whose text says which choices are meant.
    """

    def __init__(self, *seed: object):
        self._random = random.Random(" ".join(map(str, seed)))

    def integer(self, low: int, high: int) -> int:
        """An integer of ``low`` to ``high``, both included."""
        return self._random.randint(low, high)

    def of(self, several: Sequence[Choice]) -> Choice:
        """One of several."""
        return several[self._random.randrange(len(several))]

    def flip(self) -> bool:
        """True or False."""
        return self._random.random() < 0.5

    def seed(self) -> int:
        """A seed of numpy's random generators."""
        return self.integer(0, 2**32 - 1)
