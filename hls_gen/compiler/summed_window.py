"""Sums that are added up before anything else: a sum pool, or an average in front of thresholds, directly behind the
sums of a convolution (spec A11, docs/decisions/0026).

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
from math import lcm

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.layers.pool import AvgPool, Pool
from bitloom.golden.limits import TAPS
from bitloom.golden.window import Pair, Window


@dataclass(frozen=True, kw_only=True)
class SummedWindow:
    """All windows of a convolution that one window of a pool over its sums reads, as one window of the convolution's
    map. It has the methods of `Window` that the compiler asks.

    Attributes
    ----------
    inner : Window or SummedWindow
        Of the convolution, or of another pool over its sums.
    outer : Window
        Of the pool.
    repeated : int
        How many windows of ``inner`` each window has: those that lie on the map, each of them as often as the others of
        the same window. 0: those that lie on the map, each of them once.
    """

    inner: "Window | SummedWindow"
    outer: Window
    repeated: int = 0

    def __post_init__(self) -> None:
        make_fields_plain(self)

    def check(self, name: str) -> None:
        """Raise ValueError, naming ``name``, if a parameter is out of range."""
        self.inner.check(name)
        self.outer.check(name)

    @property
    def kernel(self) -> Pair:
        """Rows and columns of the weights."""
        return self.inner.kernel

    @property
    def places(self) -> int:
        """Places of the kernel, which the taps go through again and again."""
        return places_of(self.inner)

    @property
    def sums(self) -> int:
        """Sums of the convolution that a whole window adds."""
        return (self.repeated or self.outer.taps) * sums_of(self.inner)

    @property
    def taps(self) -> int:
        """Taps of a whole window, valid or not."""
        return self.sums * self.places

    def output_size(self, height: int, width: int) -> Pair:
        """(rows, columns) of the output; (0, ...) or less if a window does not fit."""
        return self.outer.output_size(*self.inner.output_size(height, width))

    def positions(self, height: int, width: int) -> Array:
        """The positions of a map that each window reads: (outputs, taps), as of `Window.positions`. The taps of one
        window of ``inner`` follow one another."""
        taps = self.inner.positions(height, width)
        windows = self.outer.positions(*self.inner.output_size(height, width))
        if self.repeated:
            windows = np.stack([np.repeat(own, self.repeated // len(own)) for own in (w[w >= 0] for w in windows)])
        beside = np.full_like(taps[:1], -1)  # window -1: beside the map
        found: Array = np.concatenate([taps, beside])[windows]
        return found.reshape(len(windows), -1)


Taps = Window | SummedWindow
"""What one sum reads: a window of a convolution, or all those whose sums pools add up."""


def summed(window: Window, pools: tuple[Pool, ...], size: Pair) -> Taps:
    """The window of a convolution behind which pools add up sums.

    Parameters
    ----------
    window
        Of the convolution.
    pools
        Sum pools; the last one may be an average.
    size
        Of the map that the convolution reads.

    Returns
    -------
    Taps
        ``window`` itself where there are no pools.

    Raises
    ------
    ValueError
        If it has more taps than the compiler makes tables for.
    """
    made: Taps = window
    for pool in pools:
        on = made.output_size(*size)
        counts = (pool.window.positions(*on) >= 0).sum(axis=1)
        repeated = lcm(*np.unique(counts).tolist()) if isinstance(pool, AvgPool) else 0
        made = SummedWindow(inner=made, outer=pool.window, repeated=repeated)
        TAPS.check(pool.name, len(counts) * made.taps)
    return made


def sums_of(window: Taps) -> int:
    """Sums of a convolution that a whole window adds: 1 where no pool does."""
    return window.sums if isinstance(window, SummedWindow) else 1


def places_of(window: Taps) -> int:
    """Places of the kernel: one a tap, but where sums of several windows are added up."""
    return window.places if isinstance(window, SummedWindow) else window.taps


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
