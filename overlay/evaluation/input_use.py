"""How much of a network's input images use: a wrong transform uses little of its range, or leaves the range."""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.host.host import RealRange

LEAST_SHARE = 0.25
"""Share of an input's range that images use at least, where the transform is likely to be right."""
MOST_CLIPPED = 0.01
"""Share of the values of images that are clipped at most, where the transform is likely to be right."""


@dataclass(frozen=True)
class InputUse:
    """How much of the range of a network's input images use."""

    numbers: tuple[float, float]
    """The smallest and the largest number that images give: real numbers if ``takes`` has real numbers."""
    takes: tuple[float, float]
    """The smallest and the largest number that the input takes: of an imported network real numbers, where its host
    knows them, else values of the input's encoding."""
    share: float
    """Share of the encoding's range, 0..1, between the smallest and the largest value that reach the network."""
    clipped: float
    """Share of the numbers, 0..1, that lie outside of what the input takes."""

    @property
    def doubts(self) -> list[str]:
        """Sentences that speak against the transform; none if it looks right."""
        given, taken = (f"{ends[0]:.6g}..{ends[1]:.6g}" for ends in (self.numbers, self.takes))
        doubts = []
        if self.share < LEAST_SHARE:
            doubts.append(f"images give {given}, and the input takes {taken}: {self.share:.1%} of its range is used")
        if self.clipped > MOST_CLIPPED:
            doubts.append(f"images give {given}, and the input takes {taken}: {self.clipped:.1%} of them are clipped")
        return doubts


class InputWatch:
    """Finds the `InputUse` of images that come part by part.

    Parameters
    ----------
    encoding
        Of the network's input.
    real
        The real numbers that the input of an imported network takes; None where nobody knows them.
    """

    def __init__(self, encoding: Encoding, real: RealRange | None = None) -> None:
        self._encoding = encoding
        self._real = real
        self._values = [np.inf, -np.inf]
        self._numbers = [np.inf, -np.inf]
        self._clipped = self._count = 0

    def see(self, values: Array, numbers: Array | None) -> None:
        """Take images.

        Parameters
        ----------
        values
            (N, H, W, C), of the encoding.
        numbers
            The real numbers that these stand for, of the same shape; None where the images are no real numbers.
        """
        if not values.size:
            return
        _widen(self._values, values)
        self._count += values.size
        if self._real is not None and numbers is not None:
            _widen(self._numbers, numbers)
            self._clipped += int(np.count_nonzero(self._real.clipped(numbers)))

    def use(self) -> InputUse:
        """The part of the input's range that the images have used so far; at least one image."""
        e = self._encoding
        low, high = self._values
        share = (high - low) / (e.high - e.low)
        if self._real is None or self._numbers[0] > self._numbers[1]:
            return InputUse((low, high), (e.low, e.high), share, 0.0)
        smallest, largest = self._numbers
        return InputUse((smallest, largest), self._real.ends, share, self._clipped / self._count)


def _widen(ends: list[float], values: Array) -> None:
    """Let ``ends``, a smallest and a largest number, enclose ``values``."""
    ends[:] = min(ends[0], float(values.min())), max(ends[1], float(values.max()))
