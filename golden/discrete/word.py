"""Words: the fixed-point numbers of discrete training and the one rule by which their arithmetic rounds.

A word has ``bits`` bits in sign-magnitude: the top bit is the sign, 1 for minus; below it stands the magnitude, of
which the lowest ``fraction`` bits are behind the binary point. In numpy a word is an int64 n of value n * 2^-fraction,
from -largest to largest; minus zero is read as 0 and never written.

The rule: **a result is exact, then truncated towards zero to a whole number of 2^-fraction, then saturated to
+-largest.** It holds for each operation here, and whatever a machine stores is such a word. A sum of products (`dot`)
truncates and saturates each product, adds them exactly, and saturates once at the end: so the order of the additions,
and how many units share them, can't be seen in the result. Adders on the way are ``sum_bits`` wide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain

ROOT_BITS = 3
"""Bits behind the first one of a number to which `WordFormat.inverse_root` looks."""
ROOT_FRACTION = 6
"""Bits behind the binary point of roots in its table."""


@lru_cache(1)
def inverse_roots() -> Array:
    """(2, 8) int64 in units of 2^-6: 1 / root of the middle of m / 8 and (m + 1) / 8 over 1; in row 1 times root 2."""
    middle = 1 + (np.arange(1 << ROOT_BITS) + 0.5) / (1 << ROOT_BITS)
    roots = np.array([[1.0], [2.0]]) ** 0.5 * middle**-0.5
    return np.asarray(np.rint(roots * 2.0**ROOT_FRACTION), np.int64)


@dataclass(frozen=True)
class WordFormat:
    """A format of words, bits and binary point, and the arithmetic of such words.

    Words are int64 arrays of any shape, within +-`largest`; those of two operands are broadcast. Results are words.
    """

    bits: int = 32
    """All bits of a word, the sign included: 4 to 32."""
    fraction: int = 20
    """Bits behind the binary point: 0 to bits - 2, so that 1.0 is a word."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if type(self.bits) is not int or not 4 <= self.bits <= 32:
            raise ValueError(f"word: bits must be 4..32, got {self.bits!r}")
        if type(self.fraction) is not int or not 0 <= self.fraction <= self.bits - 2:
            raise ValueError(f"word: fraction must be 0..{self.bits - 2} for {self.bits} bits, got {self.fraction!r}")

    @property
    def largest(self) -> int:
        """Largest word: all bits of the magnitude are 1."""
        return (1 << (self.bits - 1)) - 1

    @property
    def one(self) -> int:
        """The word of value 1."""
        return 1 << self.fraction

    def sum_bits(self, terms: int) -> int:
        """Bits of a two's complement number that holds every sum of ``terms`` words, terms >= 1."""
        return (terms * self.largest).bit_length() + 1

    def words(self, values: Array | float) -> Array:
        """The words of real numbers, by the rule; ValueError if one is no number."""
        real = np.asarray(values, np.float64)
        if np.isnan(real).any():
            raise ValueError("word: values must be numbers, got nan")
        bound = float(self.values(np.array(self.largest)))
        return np.asarray(np.trunc(np.clip(real, -bound, bound) * 2.0**self.fraction), np.int64)

    def values(self, words: Array) -> Array:
        """The values of words, float64, exact."""
        return np.asarray(np.asarray(words, np.float64) * 2.0**-self.fraction)

    def pack(self, words: Array) -> Array:
        """The bits of words as int64, 0 to 2^bits - 1: what memories and streams hold."""
        return np.where(words < 0, np.abs(words) | (self.largest + 1), words)

    def unpack(self, bits: Array) -> Array:
        """The words of `pack`'s bits; minus zero becomes 0. ValueError for what has more than ``bits`` bits."""
        bits = np.asarray(bits, np.int64)
        if bits.size and not (bits.min() >= 0 and bits.max() >> self.bits == 0):
            raise ValueError(f"word: must have {self.bits} bits, got {bits[(bits < 0) | (bits >> self.bits != 0)][0]}")
        magnitude = bits & self.largest
        return np.where(bits > self.largest, -magnitude, magnitude)

    def saturate(self, exact: Array) -> Array:
        """The nearest words to integers in units of 2^-fraction."""
        return np.clip(exact, -self.largest, self.largest)

    def add(self, a: Array, b: Array) -> Array:
        """The words of a + b."""
        return self.saturate(a + b)

    def subtract(self, a: Array, b: Array) -> Array:
        """The words of a - b."""
        return self.saturate(a - b)

    def multiply(self, a: Array, b: Array) -> Array:
        """The words of a * b."""
        magnitude = np.abs(a) * np.abs(b) >> self.fraction  # below 2^62
        return np.asarray(np.sign(a) * np.sign(b) * np.minimum(magnitude, self.largest))

    def divide(self, a: Array, b: Array) -> Array:
        """The words of a / b. Where b is 0 the result is +-largest by the sign of a, and 0 / 0 is 0."""
        divisor = np.abs(b)
        magnitude = (np.abs(a) << self.fraction) // np.maximum(divisor, 1)
        magnitude = np.where(divisor == 0, self.largest, np.minimum(magnitude, self.largest))
        return np.asarray(np.sign(a) * np.where(b < 0, -1, 1) * magnitude)

    def inverse_root(self, a: Array) -> Array:
        """The words of about 1 / root of ``|a|``, which is taken as 2^-fraction at least: within 4 %.

        ``|a|`` in units of 2^-fraction is 2^e (1 + m / 8 + less than 1 / 8), and `inverse_roots` has a root for m
        and whether fraction - e is odd.
        """
        size = np.maximum(np.abs(a), 1)
        e = np.frexp(size.astype(np.float64))[1] - 1  # exact: size is below 2^31
        places = self.fraction - e
        root = inverse_roots()[places & 1, (size << ROOT_BITS >> e) & (1 << ROOT_BITS) - 1]
        return self.shift(root, ROOT_FRACTION - self.fraction - (places >> 1))

    def shift(self, a: Array, places: Array | int) -> Array:
        """The words of a * 2^-places: the magnitude moves to the right, or to the left where places < 0.

        ``places`` is -31 to 62.
        """
        right = np.maximum(places, 0)
        left = np.maximum(-np.asarray(places), 0)
        return np.asarray(np.sign(a) * np.minimum((np.abs(a) >> right) << left, self.largest))

    def dot(self, rows: Array, x: Array) -> Array:
        """Sums of products, each product truncated and saturated, each sum exact and then saturated.

        Parameters
        ----------
        rows : (outputs, inputs) words
        x : (inputs,) or (N, inputs) words

        Returns
        -------
        (outputs,) or (N, outputs) words
        """
        if x.ndim > 1:  # one vector's products stay in a CPU's cache
            return np.array([self.dot(rows, vector) for vector in x], np.int64).reshape(len(x), len(rows))
        return self.saturate(self.multiply(rows, x).sum(axis=-1))


WordFunction = Callable[[Array, Array], Array]


def operation(form: WordFormat, name: str) -> WordFunction:
    """The operation "+", "-", "*" or "/" of words; ValueError for another name."""
    known = {"+": form.add, "-": form.subtract, "*": form.multiply, "/": form.divide}
    if name not in known:
        raise ValueError(f"arithmetic: operation must be one of + - * /, got {name!r}")
    return known[name]
