"""Tables of codes: what a discrete number of 1, 2 or 3 bits stands for (C1, C2)."""

from dataclasses import dataclass
from functools import cached_property
from math import frexp, isfinite

import numpy as np

from bitloom.golden.encoding import Array

LEAST_EXPONENT, MOST_EXPONENT = -1, 31
"""Magnitudes are 2^-k with k in this range: 2, 1, 1/2, ..., 2^-31."""


@dataclass(frozen=True)
class CodeTable:
    """The values of the codes 0, 1, ..., in any order."""

    values: tuple[float, ...]
    """2, 4 or 8 different numbers +-2^-k, k from -1 to 31."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        if len(self.values) not in (2, 4, 8):
            raise ValueError(f"table: must have 2, 4 or 8 values, got {len(self.values)}")
        for value in self.values:
            if not _is_power(value):
                raise ValueError(
                    f"table: magnitudes must be 2^-k, k = {LEAST_EXPONENT}..{MOST_EXPONENT}, got value {value!r}"
                )
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"table: values must differ, got {', '.join(f'{v:g}' for v in self.values)}")

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return len(self.values).bit_length() - 1

    @cached_property
    def real(self) -> Array:
        """The values, (2^bits,) float64."""
        return np.array(self.values)

    @cached_property
    def places(self) -> Array:
        """k of each code's magnitude 2^-k, (2^bits,) int64: how far a product's magnitude shifts to the right."""
        return np.asarray(-np.log2(np.abs(self.real)), np.int64)

    @cached_property
    def signs(self) -> Array:
        """The sign of each code's value, (2^bits,) int64 of +-1."""
        return np.asarray(np.sign(self.real), np.int64)

    @property
    def span(self) -> float:
        """Largest magnitude."""
        return float(np.abs(self.real).max())

    def scaled(self, places: int) -> "CodeTable":
        """The table with each value times 2^-places; ValueError if one leaves the range of magnitudes."""
        return CodeTable(tuple(value * 2.0**-places for value in self.values))

    def check(self, name: str, codes: Array) -> None:
        """ValueError unless ``codes`` are integers from 0 to 2^bits - 1; ``name`` is for the message."""
        if not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(f"{name}: codes must be integers, got dtype {codes.dtype}")
        wrong = codes[(codes < 0) | (codes >= len(self.values))]
        if wrong.size:
            raise ValueError(f"{name}: codes must be 0..{len(self.values) - 1}, got {wrong.flat[0]}")


def _is_power(value: float) -> bool:
    """Whether a value is +-2^-k with k in range."""
    if not isfinite(value) or value == 0:
        return False
    mantissa, exponent = frexp(abs(value))
    return mantissa == 0.5 and LEAST_EXPONENT <= 1 - exponent <= MOST_EXPONENT


ONE_BIT = CodeTable((1, -1))
TWO_BITS = CodeTable((-1, -1 / 8, 1 / 8, 1))
THREE_BITS = CodeTable((-1, -1 / 2, -1 / 4, -1 / 8, 1 / 8, 1 / 4, 1 / 2, 1))
WIDE = CodeTable((-1, -1 / 4, -1 / 16, -1 / 64, 1 / 64, 1 / 16, 1 / 4, 1))
"""Of 3 bits, for gradients: most of them are much smaller than the largest."""
GATE = CodeTable((2.0**-MOST_EXPONENT, 1))
"""Of 1 bit, for derivatives of activations, which are 0 or 1: as there is no code of 0, the smallest value stands for
it."""
TABLES = {1: ONE_BIT, 2: TWO_BITS, 3: THREE_BITS}
"""Tables by bits of a code: those of 1 and 2 bits are the source's; the one of 3 bits has the same ends."""
