"""Converter: continuous numbers become codes of a table, the nearest ones or by chance (C3 to C7).

A number x is clipped to the zone, which gives y, and two candidates of the table are looked at with their distances
from y. "nearest" takes the closer one, the larger value where both are equally close. "stochastic" takes the first
candidate a rather than b where z * (d_a + d_b) < d_b, z from the generator, so with probability d_b / (d_a + d_b).
The candidates:

* pair "bracket": a is the smallest value >= y and b the largest <= y, so that the mean is y. Beyond the ends of the
  table, and on a value of it, both are the same;
* pair "nearest", the source's: the closest value and the second closest, of equally close ones the larger first. On
  an uneven table both may lie on one side of y, and then the mean is not y: of 0.3 with {+-1, +-1/8} it is 0.052.

For words (golden/discrete/word.py) everything is exact: they have 32 bits and z has 17, so float64 holds each product.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain

from .draws import Draws
from .lfsr import open_interval
from .table import CodeTable
from .word import WordFormat

ROUNDINGS = ("nearest", "stochastic")
PAIRS = ("bracket", "nearest")
ZONES = (1, 2)


@dataclass(frozen=True, kw_only=True)
class Converter:
    """How continuous numbers become codes."""

    table: CodeTable
    zone: int = 1
    """Numbers are clipped to [-zone, zone]: 1 or 2, and at least the table's largest magnitude."""
    rounding: str = "nearest"
    """"nearest" or "stochastic"."""
    pair: str = "bracket"
    """Candidates of stochastic rounding: "bracket" or "nearest"."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what, known in (("rounding", ROUNDINGS), ("pair", PAIRS), ("zone", ZONES)):
            if getattr(self, what) not in known:
                choices = ", ".join(map(str, known))
                raise ValueError(f"converter: {what} must be one of {choices}, got {getattr(self, what)!r}")
        if self.table.span > self.zone:
            raise ValueError(
                f"converter: zone must cover the table, whose largest magnitude is {self.table.span:g}, got {self.zone}"
            )

    @property
    def draws(self) -> bool:
        """Whether the generator is needed."""
        return self.rounding == "stochastic"

    @property
    def about(self) -> str:
        """Bits, and whether they are by chance, in words."""
        bits = self.table.bits
        return f"{bits} bit{'s' * (bits > 1)}{' by chance' * self.draws}"

    def codes(self, x: Array, generator: Draws | None = None) -> Array:
        """Convert real numbers.

        Parameters
        ----------
        x : (...) float64 or float32
        generator : Draws, optional
            Needed for stochastic rounding: one number for each element, in C order. Nearest rounding takes none.

        Returns
        -------
        (...) int64
            Codes of the table.

        Raises
        ------
        ValueError
            If rounding is stochastic and there is no generator.
        """
        return np.asarray(self._order[self._indices(x, generator)])

    def values(self, x: Array, generator: Draws | None = None) -> Array:
        """The values of `codes`, (...) float32 if ``x`` is, else float64."""
        return np.asarray(self._rising.astype(_real(x))[self._indices(x, generator)])

    def _indices(self, x: Array, generator: Draws | None) -> Array:
        """Places of the codes in the table, by rising value."""
        y = np.clip(x, -self.zone, self.zone)
        rising = self._rising
        if not self.draws:
            return _count(y >= step for step in (rising[1:] + rising[:-1]) / 2)  # sums of two powers of two are exact
        if generator is None:
            raise ValueError("converter: stochastic rounding needs a generator, got none")
        z = open_interval(generator.draw(y.size)).astype(_real(y)).reshape(y.shape)
        if self.pair == "bracket":
            # d_a + d_b is the gap between a and b. The comparison holds for all gaps below y and for none above it.
            return _count(z * (above - below) < y - below for below, above in pairwise(rising))
        a, b = self._nearest_two(y, rising)
        distance_a = np.abs(rising[a] - y)
        distance_b = np.abs(rising[b] - y)
        return np.where(z * (distance_a + distance_b) < distance_b, a, b)

    @cached_property
    def _order(self) -> Array:
        """Codes by rising value."""
        return np.argsort(self.table.real)

    @cached_property
    def _rising(self) -> Array:
        """Values in rising order."""
        return np.sort(self.table.real)

    def word_codes(self, form: WordFormat, words: Array, generator: Draws | None = None) -> Array:
        """Convert words of a format; see `codes`."""
        return self.codes(form.values(words), generator)

    def clipped(self, form: WordFormat, words: Array) -> Array:
        """Words of a format, clipped to the zone."""
        most = self.zone * form.one
        return np.asarray(np.clip(words, -most, most))

    @staticmethod
    def _nearest_two(y: Array, values: Array) -> tuple[Array, Array]:
        """Indices of the closest value and of the second closest; of equally close ones the larger value first."""
        last = len(values) - 1
        distances = np.abs(y[..., None] - values[::-1])  # falling values: a stable sort keeps the larger one first
        closest = np.argsort(distances, axis=-1, kind="stable")[..., :2]
        return last - closest[..., 0], last - closest[..., 1]


def _real(x: Array) -> "np.dtype[Any]":  # quoted: numpy 1.21 on boards can't subscript it
    """The type of what is made from numbers: float32 stays, all others become float64."""
    return np.dtype(np.float32 if x.dtype == np.float32 else np.float64)


def _count(conditions: Iterable[Array]) -> Array:
    """How many of a few conditions hold, element by element."""
    first, *others = (condition.view(np.uint8) for condition in conditions)
    for condition in others:
        first += condition
    return first
