"""Encodings: which integers a value may be, and how many bits store it.

=========  ============================  =====================================
kind       values                        stored
=========  ============================  =====================================
bipolar    -k, -k + 2, ..., k            k thermometer bits, bit 1 = +1 (spec A)
ternary    -1, 0, 1                      2 bits, two's complement
signed     -2^(n-1) ... 2^(n-1) - 1      n bits, two's complement
unsigned   0 ... 2^n - 1                 n bits
=========  ============================  =====================================

A bipolar value of k bits is the sum of k values of +-1: what k comparators give, one per threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .integers import make_fields_plain

Array = NDArray[Any]
"""A numpy array; contracts say which shape and values."""
Ints = NDArray[np.int64]
"""An array of integers."""

KINDS = ("bipolar", "ternary", "signed", "unsigned")
MOST_BITS = 62
"""Stored bits at most, so that values, and sums of a few, fit 64 bits."""


@dataclass(frozen=True)
class Encoding:
    """A set of integers, and how many bits store one of them."""

    kind: str
    """"bipolar", "ternary", "signed" or "unsigned"; the table above says which integers that are."""
    bits: int = 1
    """Stored bits, 1 to MOST_BITS; of a bipolar value the thermometer bits. Ternary has 2."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if self.kind not in KINDS:
            raise ValueError(f"encoding: kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if type(self.bits) is not int or not 1 <= self.bits <= MOST_BITS:
            raise ValueError(f"encoding {self.kind}: bits must be 1..{MOST_BITS}, got {self.bits!r}")
        if self.kind == "ternary" and self.bits != 2:
            raise ValueError(f"encoding ternary: bits must be 2, got {self.bits}")

    @property
    def low(self) -> int:
        """Smallest value."""
        if self.kind == "bipolar":
            return -self.bits
        if self.kind == "ternary":
            return -1
        return -(1 << (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def high(self) -> int:
        """Largest value."""
        if self.kind == "bipolar":
            return self.bits
        if self.kind == "ternary":
            return 1
        return (1 << (self.bits - 1)) - 1 if self.kind == "signed" else (1 << self.bits) - 1

    @property
    def step(self) -> int:
        """Distance between neighbouring values: 2 for bipolar, else 1."""
        return 2 if self.kind == "bipolar" else 1

    def check(self, name: str, values: Array) -> None:
        """Refuse what is not of this encoding.

        Parameters
        ----------
        name : str
            Name of the values, for the message.
        values : array
            Of any shape.

        Raises
        ------
        ValueError
            If the array's dtype is no integer, it is a masked array, or a value is not of the encoding.
        """
        refuse_masked(name, values)
        if not np.issubdtype(values.dtype, np.integer):
            raise ValueError(f"{name}: values must be integers, got dtype {values.dtype}")
        if values.size == 0:
            return
        in_range = self.low <= int(values.min()) and int(values.max()) <= self.high
        if in_range and (self.step == 1 or not ((values & 1) != (self.low & 1)).any()):
            return
        wide = values.astype(np.int64)  # uint64 may wrap to below 0, but then fails the first test
        bad = (values > self.high) | (wide < self.low) | ((wide - self.low) % self.step != 0)
        raise ValueError(f"{name}: values must be {self}, got {values[bad].flat[0]}")

    def __str__(self) -> str:
        steps = " in steps of 2" if self.step == 2 else ""
        return f"{self.kind} {self.bits} bit ({self.low}..{self.high}{steps})"


def refuse_masked(name: str, values: Array) -> None:
    """Refuse a masked array: its smallest and its largest value leave out what is masked, but what computes takes it.

    Parameters
    ----------
    name : str
        Name of the values, for the message.
    values : array
        Of any shape.

    Raises
    ------
    ValueError
        If it is a masked array, whether a value is masked or not.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name}: values must not be masked, got a masked array: say its values with filled()")


BIPOLAR = Encoding("bipolar", 1)
TERNARY = Encoding("ternary", 2)


def signed(bits: int) -> Encoding:
    """The encoding of integers in two's complement of ``bits`` bits."""
    return Encoding("signed", bits)


def unsigned(bits: int) -> Encoding:
    """The encoding of the integers 0 ... 2^bits - 1."""
    return Encoding("unsigned", bits)


def bipolar(bits: int) -> Encoding:
    """The encoding of sums of ``bits`` values of +-1."""
    return Encoding("bipolar", bits)


def signed_bits(low: int, high: int) -> int:
    """Bits of the shortest number in two's complement that holds both ``low`` and ``high``."""
    return 1 + max(high if high >= 0 else ~high, low if low >= 0 else ~low).bit_length()


def smallest(name: str, encodings: Sequence[Encoding]) -> Encoding:
    """The smallest encoding that has all values of some maps, which layer ``name`` puts together.

    Raises
    ------
    ValueError
        If bipolar maps have several encodings, or values need more than MOST_BITS bits.
    """
    if len(set(encodings)) == 1:
        return encodings[0]
    if any(encoding.kind == "bipolar" for encoding in encodings):
        got = " and ".join(str(encoding) for encoding in dict.fromkeys(encodings))
        raise ValueError(f"{name}: bipolar maps must have one encoding, got {got}")
    low = min(encoding.low for encoding in encodings)
    high = max(encoding.high for encoding in encodings)
    bits = signed_bits(low, high)
    if bits > MOST_BITS:
        raise ValueError(f"{name}: values must fit {MOST_BITS} bits, got {bits}")
    return signed(bits) if low < 0 else unsigned(bits - 1)
