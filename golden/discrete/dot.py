"""Dot products with discrete operands: fast sums for matrices, and the bit-serial one of single bits (C12)."""

import numpy as np

from bitloom.golden.encoding import Array

from .arithmetic import look_up_table, scale, word_of
from .operand import Discrete, Operand
from .word import WordFormat


def dot(form: WordFormat, rows: Operand, x: Operand) -> Array:
    """Multiply a matrix by vectors, by the rule of golden/discrete/word.py: truncated products, exact sums.

    Parameters
    ----------
    form : WordFormat
    rows : Operand, (outputs, inputs)
    x : Operand, (inputs,) or (N, inputs)

    Returns
    -------
    (outputs,) or (N, outputs) words

    Raises
    ------
    ValueError
        If the format can't hold a product of two discrete operands exactly, or a table's value.
    """
    if isinstance(rows, Discrete):
        if isinstance(x, Discrete):
            look_up_table("*", rows.table, x.table, form)
        return form.saturate(_coded_sums(form, rows, word_of(form, x)))
    if isinstance(x, Discrete):
        return form.saturate(scale(form, rows.words, Discrete(x.codes[..., None, :], x.table)).sum(axis=-1))
    return form.dot(rows.words, x.words)


def _coded_sums(form: WordFormat, rows: Discrete, x: Array) -> Array:
    """Exact sums of the products of coded rows with words, a matrix product for each magnitude of the table.

    Sums of fewer than 2^21 words are exact in float64.
    """
    total = np.zeros((*x.shape[:-1], len(rows.codes)))
    for places in np.unique(rows.table.places):
        signs = np.where(rows.table.places == places, rows.table.signs, 0).astype(np.float64)
        total += form.shift(x, places).astype(np.float64) @ signs[rows.codes].T
    return total.astype(np.int64)


def bit_serial_dot(x: Array, weights: Array, bits: int) -> Array:
    """Sum of integers with signs of one bit, bit plane by bit plane: exclusive or, count, weigh.

    ``-x`` is ``~x + 1`` in two's complement. So a weight's bit flips all bits of its x, and each such x lacks one:
    the sum is that of 2^k * popcount(plane k ^ weights), with -2^(bits - 1) for the top plane, plus popcount(weights).

    Parameters
    ----------
    x : (..., inputs) integers
        Two's complement of ``bits`` bits.
    weights : (..., inputs) 0 or 1
        0 is +1 and 1 is -1.
    bits : int
        1 to 62.

    Returns
    -------
    (...) int64

    Raises
    ------
    ValueError
        If ``bits`` is out of range, x has more bits, or a weight is neither 0 nor 1.
    """
    if not 1 <= bits <= 62:
        raise ValueError(f"bit-serial dot: bits must be 1..62, got {bits!r}")
    for name, values, low, high in (("x", x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1), ("weights", weights, 0, 1)):
        wrong = values[(values < low) | (values > high)]
        if wrong.size:
            raise ValueError(f"bit-serial dot: {name} must be {low}..{high}, got {wrong.flat[0]}")
    total = np.asarray(weights.sum(axis=-1), np.int64)
    for k in range(bits):
        count = ((x >> k & 1) ^ weights).sum(axis=-1)
        total = total + (count << k if k < bits - 1 else -(count << k))
    return np.asarray(total)
