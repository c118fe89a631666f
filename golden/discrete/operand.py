"""Operands of the arithmetic unit: continuous ones are words, discrete ones are codes with their table (C1)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

from .table import CodeTable
from .word import WordFormat


@dataclass(frozen=True)
class Continuous:
    """A tensor of words."""

    words: Array
    """(...) int64."""

    def moved(self, move: Callable[[Array], Array]) -> "Continuous":
        """The tensor in another shape or order, or a part of it: what ``move`` makes of the array."""
        return Continuous(move(self.words))


@dataclass(frozen=True)
class Discrete:
    """A tensor of codes. ValueError if a code is not in the table."""

    codes: Array
    """0 to 2^bits - 1."""
    table: CodeTable

    def __post_init__(self) -> None:
        self.table.check("operand", self.codes)

    def moved(self, move: Callable[[Array], Array]) -> "Discrete":
        """As of `Continuous`."""
        return Discrete(move(self.codes), self.table)


Operand = Continuous | Discrete


def constants(table: CodeTable, form: WordFormat) -> Array:
    """The values of a table as words, exact: (2^bits,) int64; ValueError if the format can't hold one."""
    return exact_words("table", table.real, form)


def exact_words(name: str, values: Array, form: WordFormat) -> Array:
    """Words of the same shape, equal to the values; ValueError for a value that the format can't hold."""
    words = form.words(values)
    wrong = values[form.values(words) != values]
    if wrong.size:
        raise ValueError(
            f"{name}: values must be words of {form.bits} bits, {form.fraction} of them fraction, got {wrong.flat[0]:g}"
        )
    return words


def as_column(vector: Array) -> Array:
    """A vector (N,) as a column (N, 1), to be multiplied by rows."""
    return vector[:, np.newaxis]
