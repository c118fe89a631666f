"""Base of random files of all formats: steps that each read maps of a file and make others.

A format is a subclass: its steps, its input, and what a file of it ends in. A step that can't read a map gives None,
and another one is picked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from bitloom.overlay.fuzz.pick import Pick

MOST_STEPS = 7
"""Steps between input and end at most."""
MOST_VALUES = 1_500
"""Values of a map at most."""
MOST_CHANNELS = 24
MOST_OUTPUTS = 3
TRIES = 12
"""Steps that are picked at most until one can read a map."""


@dataclass(frozen=True, kw_only=True)
class RandomFile:
    """A file that was drawn."""

    data: bytes
    twin: bytes = b""
    """The same network with integers as real numbers in between, where the file has none: its quantisers say which
    values lie on a boundary."""
    halves: bool = False
    """Whether floating point of 32 bits computes every number exactly, so that halves are halves."""


MapT = TypeVar("MapT")


class Drawing(Generic[MapT]):
    """A file while it is drawn.

    Parameters
    ----------
    pick
        Makes all choices, and the seed of all numbers in the file.
    """

    STEPS: ClassVar[tuple[str, ...]] = ()
    """Names of the methods that are steps; one that stands twice is picked twice as often."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.rng = np.random.default_rng(pick.integer(0, 2**32 - 1))
        self.powers = pick.integer(0, 2) == 0
        """Whether all scales are powers of two, so that many values are halves."""
        self.maps: list[MapT] = []

    def chance(self, count: int) -> bool:
        """True once in ``count`` times."""
        return self.pick.integer(1, count) == 1

    def scale(self, about: float) -> float:
        """A scale near another number, in single precision."""
        value = about * 2.0 ** (self.pick.integer(-100, 100) / 100)
        if self.powers:
            value = 2.0 ** round(log2(value))
        return float(np.float32(value))

    def grow(self, here: MapT) -> MapT:
        """Append steps; gives the last map."""
        for _ in range(self.pick.integer(1, MOST_STEPS)):
            here = self.step(self.pick.of(self.maps) if self.chance(6) else here)
        return here

    def step(self, here: MapT) -> MapT:
        """Append a step that can read a map."""
        for _ in range(TRIES):
            step: Callable[[MapT], MapT | None] = getattr(self, self.pick.of(self.STEPS))
            result = step(here)
            if result is not None:
                return result
        return here

    def leaving(self, last: MapT) -> list[MapT]:
        """The maps that leave: the last one, and sometimes others."""
        others = [each for each in self.maps[1:] if each is not last]
        count = self.pick.integer(1, MOST_OUTPUTS - 1) if self.chance(6) else 0
        return [last, *others[-count:]] if count and others else [last]

    def kernel(self, sizes: Sequence[int], most: int = 3) -> tuple[int, ...]:
        """Rows and columns of a window, no more than those of a map."""
        return tuple(self.pick.integer(1, min(most, size)) for size in sizes)

    def strides(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """How far windows are apart, mostly 1."""
        return tuple(self.pick.of([1, 1, 2, 3]) if size > 1 else 1 for size in sizes)

    def dilations(self, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """How far the taps of a window are apart, mostly 1, so that the window has room on the map."""
        if not self.chance(5):
            return (1,) * len(sizes)
        most = [(size - 1) // max(1, taps - 1) if taps > 1 else 1 for size, taps in zip(sizes, kernel)]
        return tuple(self.pick.integer(1, max(1, min(3, room))) for room in most)

    def channels(self) -> int:
        """Channels of a map."""
        return self.pick.of([1, 2, 3, 4, 5, 6, 8, 8, 12, 16])

    def groups(self, channels: int) -> int:
        """The groups of a convolution of so many channels: mostly one, some, or as many as channels."""
        if not self.chance(3):
            return 1
        return self.pick.of([each for each in range(1, channels + 1) if channels % each == 0])

    def weights(self, shape: Sequence[int], low: int, high: int) -> np.ndarray[Any, Any]:
        """Integers for weights: any, or few that are not 0."""
        values = self.rng.integers(low, high + 1, shape)
        return np.where(self.rng.random(shape) < 0.3, values, 0) if self.chance(6) else values
