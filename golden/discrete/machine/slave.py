"""A slave: the weights of its neurons with their gradients, and an arithmetic unit (C15, C16, C21).

Column i of a layer, the weights of neuron i, is that of slave i mod slaves. Weight (input j, column i) stands in row
w + j * each + i // slaves of the caches, where each = ceil(columns / slaves).
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.discrete.arithmetic import word_of
from bitloom.golden.discrete.draws import GivenDraws
from bitloom.golden.discrete.operand import Continuous, Discrete, Operand, as_column
from bitloom.golden.encoding import Array

from .configuration import Configuration
from .instruction import Instruction
from .parameters import MachineParameters


@dataclass
class SlaveCaches:
    """Caches of all slaves: a row of each array is that of all slaves' caches, a column is a slave's cache."""

    weights: Array
    gradients: Array
    codes: Array
    """weights, gradients, codes: (weight_words, slaves)."""
    neurons: Array
    """(column_words, slaves)."""

    @classmethod
    def of(cls, machine: MachineParameters) -> "SlaveCaches":
        """Empty ones."""
        rows = [machine.weight_words] * 3 + [machine.column_words]
        return cls(*(np.zeros((count, machine.slaves), np.int64) for count in rows))


class Slave:
    """One slave of a machine, or all of its slaves at once, which have all columns of a layer side by side.

    Parameters
    ----------
    machine : MachineParameters
    caches : SlaveCaches
        Those of all slaves.
    configuration : Configuration
        That of the machine, which may change.
    number : int, optional
        0 to slaves - 1; by default all.

    Attributes
    ----------
    weights, gradients : (weight_words,) words, for all slaves (weight_words, slaves)
        Weight cache, and the gradient of each weight: the last one dw', or their sum, the velocity v.
    codes : the same of int64
        Codes of the weights, beside the words.
    neurons : (column_words,) int64, for all slaves (column_words, slaves)
        Neuron cache: the input gradients of its columns, as cells of the master's cache.
    """

    def __init__(
        self, machine: MachineParameters, caches: SlaveCaches, configuration: Configuration, number: int | None = None
    ) -> None:
        self._configuration = configuration
        self._machine = machine
        self._first = number or 0
        self._step = 1 if number is None else machine.slaves
        part = slice(None) if number is None else number
        self.weights = caches.weights[:, part]
        self.gradients = caches.gradients[:, part]
        self.codes = caches.codes[:, part]
        self.neurons = caches.neurons[:, part]

    def column_numbers(self, count: int) -> Array:
        """The numbers, of ``count`` columns of a layer, that are this slave's."""
        return np.arange(self._first, count, self._step)

    def block(self, cache: Array, i: Instruction) -> Array:
        """The part of a cache that an instruction means: a view, (rows, the slave's columns)."""
        each = self._machine.columns_each(i.columns)
        return cache[i.w : i.w + i.rows * each].reshape(i.rows, -1)[:, : len(self.column_numbers(i.columns))]

    def scatter(self, cells: Array) -> None:
        """Take the elements of a broadcast vector that belong to the slave's columns."""
        taken = cells[self.column_numbers(len(cells))]
        self.neurons.reshape(-1)[: len(taken)] = taken

    def forward(self, i: Instruction, x: Operand) -> Array:
        """Exact sums of weights times inputs, (the slave's columns,)."""
        sums: Array = self._configuration.product(x.moved(as_column), self._weights(i)).sum(axis=0)
        return sums

    def backward(self, i: Instruction) -> Array:
        """Partial vector: exact sums over its columns of the input gradient times the column, (rows,)."""
        sums: Array = self._configuration.product(self._gradients(i), self._weights(i)).sum(axis=1)
        return sums

    def update(self, i: Instruction, x: Operand, drawn_d: Array | None, drawn_w: Array | None) -> None:
        """dw = x * input gradient; w <- w - rate * (dw + mu * dw'); dw' <- dw (C16, C17).

        Parameters
        ----------
        i : Instruction
            Where the weights are, and what is discrete.
        x : Operand
            (rows,).
        drawn_d, drawn_w : (columns, rows) integers or None
            Numbers for the conversion of dw and of the weights of all slaves; None where it is to the nearest.
        """
        dw = self._weight_gradients(i, x, drawn_d)
        before = self.block(self.gradients, i)
        self._descend(i, self._configuration.with_momentum(dw, before), drawn_w)
        before[:] = dw

    def accumulate(self, i: Instruction, x: Operand, drawn_d: Array | None) -> None:
        """v <- v + dw, with dw as in `update`."""
        velocity = self.block(self.gradients, i)
        velocity[:] = self._configuration.form.add(velocity, self._weight_gradients(i, x, drawn_d))

    def apply(self, i: Instruction, drawn_w: Array | None) -> None:
        """w <- w - rate * v; v <- v - mu * v, or 0 where mu is off."""
        velocity = self.block(self.gradients, i)
        self._descend(i, velocity, drawn_w)
        velocity[:] = self._configuration.decayed(velocity)

    def _weight_gradients(self, i: Instruction, x: Operand, drawn: Array | None) -> Array:
        """dw = x * input gradient (rows, the slave's columns); the value of its code where dw is discrete."""
        s = self._configuration
        dw = s.product(x.moved(as_column), self._gradients(i))
        if i.kind_d:
            return word_of(s.form, self._converted(i, "d", dw, drawn))
        return dw

    def _descend(self, i: Instruction, slopes: Array, drawn: Array | None) -> None:
        """w <- w - rate * slopes. Discrete weights are clipped to the zone of their table, then converted (C18)."""
        s = self._configuration
        codes = self.block(self.codes, i)
        continuous = i.kind_w == 0 or i.master
        words = self.block(self.weights, i) if continuous else word_of(s.form, s.discrete(i.kind_w, codes))
        new = s.descended(words, slopes)
        if i.kind_w:
            new = s.tables[i.kind_w].clipped(s.form, new)
            codes[:] = self._converted(i, "w", new, drawn).codes
        if continuous:
            words[:] = new

    def _weights(self, i: Instruction) -> Operand:
        """Weights (rows, the slave's columns) as the instruction reads them."""
        if i.kind_w:
            return self._configuration.discrete(i.kind_w, self.block(self.codes, i))
        return Continuous(self.block(self.weights, i))

    def _gradients(self, i: Instruction) -> Operand:
        """Input gradients of its columns, (the slave's columns,)."""
        return self._configuration.operand(i.kind_b, self.neurons.reshape(-1)[: len(self.column_numbers(i.columns))])

    def _converted(self, i: Instruction, tensor: str, words: Array, drawn: Array | None) -> Discrete:
        """Codes of words (rows, the slave's columns), of the weight gradients ("d") or the weights ("w")."""
        draws = None if drawn is None else GivenDraws(drawn[self.column_numbers(i.columns)])
        kind, pair = (i.kind_d, i.pair_d) if tensor == "d" else (i.kind_w, i.pair_w)
        return self._configuration.convert(kind, words.T, draws, pair).moved(np.transpose)
