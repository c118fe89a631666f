"""Taps: what one sum reads. That is a window of a convolution; or several windows, where a sum pool, or an average in
front of thresholds, adds up sums directly behind the convolution (spec A11, docs/decisions/0026).

    conv, sum_pool               -->  conv with longer windows: the taps of all its windows that one of the pool's reads
    conv, avg_pool, threshold    -->  the same, and other thresholds

A sum of sums of products is a sum of products, so the array goes on accumulating from window to window, and the pool
costs no hardware. A position that lies in several windows is a tap several times, each time with the weights of another
place of the kernel.

The average of n sums whose total is S is S / n, rounded to the nearest integer, halves away from zero. It never falls
as S rises, so that a threshold of the average is a threshold of S. Where windows of the pool reach beyond the map, n
differs from window to window; their taps are then repeated until every window adds the same number of sums.
"""

from dataclasses import dataclass
from math import lcm, prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.layers.pool import AvgPool, Pool
from bitloom.golden.limits import TAPS
from bitloom.golden.window import Pair, Window


@dataclass(frozen=True)
class AddedSums:
    """A pool that adds up sums."""

    window: Window
    """Of the pool."""
    repeated: int = 0
    """How many sums each window adds: those that lie on the map, each of them as often as the others of the same
    window. 0: those that lie on the map, each of them once."""

    def __post_init__(self) -> None:
        make_fields_plain(self)

    @property
    def sums(self) -> int:
        """Sums that a whole window adds."""
        return self.repeated or self.window.taps


@dataclass(frozen=True)
class Taps:
    """The taps of one sum: of a window of a convolution, or of all windows whose sums pools add up."""

    window: Window
    """Of the convolution, or of a pool."""
    pools: tuple[AddedSums, ...] = ()
    """The pools that add up sums, in the order in which they do."""

    @classmethod
    def of(cls, window: Window, pools: tuple[Pool, ...], size: Pair) -> "Taps":
        """The taps of a convolution behind which pools add up sums.

        Parameters
        ----------
        window
            Of the convolution.
        pools
            Sum pools; the last one may be an average.
        size
            Of the map that the convolution reads.

        Raises
        ------
        ValueError
            If there are more taps than the compiler makes tables for.
        """
        taps = cls(window)
        for pool in pools:
            counts = (pool.window.positions(*taps.output_size(*size)) >= 0).sum(axis=1)
            repeated = lcm(*np.unique(counts).tolist()) if isinstance(pool, AvgPool) else 0
            taps = cls(window, (*taps.pools, AddedSums(pool.window, repeated)))
            TAPS.check(pool.name, len(counts) * taps.taps)
        return taps

    def check(self, name: str) -> None:
        """Raise ValueError, naming ``name``, if a parameter is out of range."""
        self.window.check(name)
        for pool in self.pools:
            pool.window.check(name)

    @property
    def alone(self) -> Window | None:
        """The window itself, where no pool adds up its sums; else None."""
        return None if self.pools else self.window

    @property
    def kernel(self) -> Pair:
        """Rows and columns of the weights."""
        return self.window.kernel

    @property
    def places(self) -> int:
        """Places of the kernel, which the taps go through for each sum that is added."""
        return self.window.taps

    @property
    def sums(self) -> int:
        """Sums of the convolution that a whole window adds: 1 where no pool does."""
        return prod(pool.sums for pool in self.pools)

    @property
    def taps(self) -> int:
        """Taps of a whole window, valid or not."""
        return self.sums * self.places

    def output_size(self, height: int, width: int) -> Pair:
        """(rows, columns) of the output; (0, ...) or less if a window does not fit."""
        size = self.window.output_size(height, width)
        for pool in self.pools:
            size = pool.window.output_size(*size)
        return size

    def positions(self, height: int, width: int) -> Array:
        """The positions of a map that each window reads: (outputs, taps), as of `Window.positions`. The taps of one
        window of the convolution follow one another."""
        taps = self.window.positions(height, width)
        size = self.window.output_size(height, width)
        for pool in self.pools:
            windows = pool.window.positions(*size)
            if pool.repeated:
                on_map = [window[window >= 0] for window in windows]
                windows = np.stack([np.repeat(window, pool.repeated // len(window)) for window in on_map])
            beside = np.full_like(taps[:1], -1)  # window -1: beside the map
            taps = np.concatenate([taps, beside])[windows].reshape(len(windows), -1)
            size = pool.window.output_size(*size)
        return taps


def limits_of_sums(threshold: Array, direction: Array, count: int) -> Array:
    """Thresholds of the totals of ``count`` sums that give the same bits as those of their averages.

    Parameters
    ----------
    threshold
        (channels, levels) thresholds of averages, rounded to the nearest integer, halves away from zero.
    direction
        (channels,) of +1, where a bit is average >= threshold, and -1, where it is average <= threshold.
    count
        How many sums.

    Returns
    -------
    (channels, levels) int64
        Thresholds of totals, with the same directions.
    """
    falls = (direction < 0)[:, None]
    average = threshold.astype(np.int64) + falls  # average <= t is not average >= t + 1
    # average >= t: total / count >= t - 1/2; from below zero a half is rounded down, so that t is reached beyond it
    halves = count * (2 * average - 1)
    least: Array = np.where(average > 0, -(-halves // 2), halves // 2 + 1) - falls
    return least
