"""Arithmetic for training whose results are the same bits on every CPU, BLAS and number of threads.

Two things differ between machines: the order in which a sum is added up, and functions such as exp. So

* everything that is summed lies on a grid, multiples of a power of two, with so few terms that no partial sum
  leaves the 53 bits of a float64: every order (and every fused multiply-add) gives the exact sum;
* everything else is one IEEE operation an element: + - * / sqrt, comparison, rounding. No exp, no power;
* random numbers are raw words of PCG64, whose stream numpy guarantees; its distributions may change.

Integers (features, accumulators, +-1 weights) are on the grid already; errors are put on it by `to_grid`.
"""

import numpy as np

from bitloom.golden.encoding import Array

STEP = 2.0**-20
"""The grid of errors: multiples of STEP ..."""
LIMIT = 2.0**4
"""... of at most this magnitude, 24 bits."""
TERMS = int(2.0**53 * STEP / LIMIT)
"""(errors in a sum) x (largest magnitude of the integers that they are multiplied by) must not exceed this."""


def to_grid(x: Array) -> Array:
    """Round any float64 array to the nearest values of the grid, halves to even, clipped to +-LIMIT."""
    y: Array = np.rint(x * (1 / STEP))
    np.clip(y, -LIMIT / STEP, LIMIT / STEP, out=y)
    y *= STEP
    return y


def check_terms(name: str, count: int, magnitude: int) -> None:
    """Refuse sums that could round.

    Parameters
    ----------
    name : str
        Name of the sum, for the message.
    count : int
        Errors in a sum.
    magnitude : int
        Largest magnitude of the integers that the errors are multiplied by.

    Raises
    ------
    ValueError
        If count * magnitude exceeds TERMS.
    """
    if count * magnitude > TERMS:
        raise ValueError(
            f"{name}: exact training needs (positions of a batch) x (largest value) <= {TERMS}, "
            f"got {count} x {magnitude}: use a smaller batch"
        )


def random_words(count: int, *key: int) -> Array:
    """The first ``count`` uint64 of the random stream that ``key``, integers >= 0, names."""
    return np.random.PCG64(np.random.SeedSequence(key)).random_raw(count)


def random_order(count: int, *key: int) -> Array:
    """A random permutation of 0 ... count - 1; ``key`` names the random stream."""
    return np.argsort(random_words(count, *key), kind="stable")


def random_signs(shape: tuple[int, ...], *key: int) -> Array:
    """Random float64, spread evenly over the open interval (-1, 1); ``key`` names the random stream."""
    words = random_words(int(np.prod(shape)), *key) >> np.uint64(40)  # 24 bits
    return ((words.astype(np.float64) + 0.5) * 2.0**-23 - 1).reshape(shape)
