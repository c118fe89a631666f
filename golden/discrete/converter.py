"""Converter: continuous numbers become codes of a table, the nearest ones or by chance (C3 to C7).

A number x is clipped to the zone, which gives y, and two candidates of the table are looked at with their distances
from y. "nearest" takes the closer one, the larger value where both are equally close. "stochastic" takes the first
candidate a rather than b where z * (d_a + d_b) < d_b, z from the generator, so with probability d_b / (d_a + d_b).
The candidates:

* pair "bracket": a is the smallest value >= y and b the largest <= y, so that the mean is y. Beyond the ends of the
  table, and on a value of it, both are the same;
* pair "nearest", the source's: the closest value and the second closest, of equally close ones the larger first. On
  an uneven table both may lie on one side of y, and then the mean is not y: of 0.3 with {+-1, +-1/8} it is 0.052.

Everything is exact: words (golden/discrete/word.py) have 32 bits and z has 17, so float64 holds each product.
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

from .draws import Draws
from .lfsr import open_interval
from .table import CodeTable
from .word import WordFormat

ROUNDINGS, PAIRS, ZONES = ("nearest", "stochastic"), ("bracket", "nearest"), (1, 2)


@dataclass(frozen=True, kw_only=True)
class Converter:
    """How continuous numbers become codes.

    Attributes
    ----------
    table : CodeTable
    zone : int
        Numbers are clipped to [-zone, zone]: 1 or 2, and at least the table's largest magnitude.
    rounding : str
        "nearest" or "stochastic".
    pair : str
        Candidates of stochastic rounding: "bracket" or "nearest".
    """

    table: CodeTable
    zone: int = 1
    rounding: str = "nearest"
    pair: str = "bracket"

    def __post_init__(self) -> None:
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

    def codes(self, x: Array, generator: Draws | None = None) -> Array:
        """Convert real numbers.

        Parameters
        ----------
        x : (...) float64
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
        y = np.clip(x, -self.zone, self.zone)
        order = np.argsort(self.table.real)  # codes by rising value
        values = self.table.real[order]
        if not self.draws:
            # From a midpoint on the value above it is taken: sums of two powers of two are exact.
            return np.asarray(order[np.searchsorted((values[1:] + values[:-1]) / 2, y, side="right")])
        if generator is None:
            raise ValueError("converter: stochastic rounding needs a generator, got none")
        z = open_interval(generator.draw(y.size)).reshape(y.shape)
        a, b = self._bracket(y, values) if self.pair == "bracket" else self._nearest_two(y, values)
        distance_a, distance_b = np.abs(values[a] - y), np.abs(values[b] - y)
        return np.asarray(order[np.where(z * (distance_a + distance_b) < distance_b, a, b)])

    def word_codes(self, form: WordFormat, words: Array, generator: Draws | None = None) -> Array:
        """Convert words of a format; see `codes`."""
        return self.codes(form.values(words), generator)

    @staticmethod
    def _bracket(y: Array, values: Array) -> tuple[Array, Array]:
        """Indices of the smallest value >= y and of the largest <= y; both are the end's beyond an end."""
        last = len(values) - 1
        above = np.minimum(np.searchsorted(values, y, side="left"), last)
        below = np.maximum(np.searchsorted(values, y, side="right") - 1, 0)
        return above, below

    @staticmethod
    def _nearest_two(y: Array, values: Array) -> tuple[Array, Array]:
        """Indices of the closest value and of the second closest; of equally close ones the larger value first."""
        last = len(values) - 1
        distances = np.abs(y[..., None] - values[::-1])  # falling values: a stable sort keeps the larger one first
        closest = np.argsort(distances, axis=-1, kind="stable")[..., :2]
        return last - closest[..., 0], last - closest[..., 1]
