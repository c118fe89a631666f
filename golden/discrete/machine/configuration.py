"""The machine's configuration, which CONFIG sets, and how units read operands and write results by it."""

from dataclasses import dataclass, field, replace

import numpy as np

from bitloom.golden.discrete.arithmetic import scale, word_of
from bitloom.golden.discrete.converter import PAIRS, Converter
from bitloom.golden.discrete.draws import Draws
from bitloom.golden.discrete.operand import Continuous, Discrete, Operand
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Array


@dataclass
class Configuration:
    """Tables and constants of a machine."""

    form: WordFormat
    tables: dict[int, Converter] = field(default_factory=dict)
    """Loaded tables with their zones, by number: converters to the nearest code."""
    rate_places: int = 0
    """k of the learning rate 2^-k."""
    mu_places: int | None = None
    """k of mu, None where mu is 0."""

    def operand(self, kind: int, cells: Array) -> Operand:
        """Numbers in cells of the neuron cache: words where ``kind`` is 0, else codes of table ``kind``, in the lowest
        bits."""
        if kind == 0:
            return Continuous(self.form.unpack(cells))
        return self.discrete(kind, cells)

    def discrete(self, kind: int, codes: Array) -> Discrete:
        """Codes of table ``kind``."""
        table = self.tables[kind].table
        return Discrete(codes & ((1 << table.bits) - 1), table)

    def convert(self, kind: int, words: Array, draws: Draws | None, pair: int) -> Discrete:
        """Words become codes of table ``kind``: by chance, of that pair, where there are draws; else to the nearest."""
        converter = self.tables[kind]
        if draws is not None:
            converter = replace(converter, rounding="stochastic", pair=PAIRS[pair])
        return Discrete(converter.word_codes(self.form, words, draws), converter.table)

    def product(self, left: Operand, right: Operand) -> Array:
        """Words of left * right; the product of two codes is that of the left one's value, shifted by the right one."""
        if isinstance(right, Discrete):
            return scale(self.form, word_of(self.form, left), right)
        if isinstance(left, Discrete):
            return scale(self.form, right.words, left)
        return self.form.multiply(left.words, right.words)

    def quotient(self, left: Operand, right: Operand) -> Array:
        """Words of left / right; that of two codes is the left one's value, shifted by the right one."""
        if isinstance(right, Discrete):
            return scale(self.form, word_of(self.form, left), right, -1)
        return self.form.divide(word_of(self.form, left), right.words)

    def with_momentum(self, words: Array, before: Array) -> Array:
        """words + mu * before."""
        if self.mu_places is None:
            return words
        return self.form.add(words, self.form.shift(before, self.mu_places))

    def decayed(self, velocity: Array) -> Array:
        """velocity - mu * velocity; 0 where mu is off."""
        if self.mu_places is None:
            return np.zeros_like(velocity)
        return self.form.subtract(velocity, self.form.shift(velocity, self.mu_places))

    def descended(self, words: Array, slopes: Array) -> Array:
        """words - rate * slopes."""
        return self.form.subtract(words, self.form.shift(slopes, self.rate_places))
