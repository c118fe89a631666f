"""The arithmetic unit: which way + - * / take is decided by the kinds of their operands (C8 to C11).

==========================  ==============================================================================
operands                    way
==========================  ==============================================================================
two continuous              word arithmetic (golden/discrete/word.py)
two discrete                a look-up table of 2^m x 2^n words, one for each operation: the exact results
discrete and continuous     an operation preset for each code: * and / by +-2^-k shift the magnitude by k places
                            and flip the sign for minus; + and - take the code's constant
constant / continuous       word arithmetic: a code can't preset how to divide by a word
==========================  ==============================================================================

With the table {+1, -1} the shift is by no place: a product is one exclusive or at the sign bit.
"""

import numpy as np

from bitloom.golden.encoding import Array

from .operand import Continuous, Discrete, Operand, constants, exact_words
from .table import CodeTable
from .word import WordFormat, operation


def look_up_table(name: str, a: CodeTable, b: CodeTable, form: WordFormat) -> Array:
    """The results of an operation of two codes.

    Parameters
    ----------
    name : str
        "+", "-", "*" or "/".
    a, b : CodeTable
        Of the left and of the right operand; their bits may differ.
    form : WordFormat

    Returns
    -------
    (2^bits of a, 2^bits of b) words
        The exact results.

    Raises
    ------
    ValueError
        If the format can't hold a result exactly.
    """
    left = a.real[:, None]
    right = b.real[None, :]
    # Powers of two from 2 to 2^-31: sums, products and quotients are exact in float64.
    results = {"+": left + right, "-": left - right, "*": left * right, "/": left / right}
    operation(form, name)  # refuses an unknown name
    return exact_words(f"look-up table of {name}", results[name], form)


def operate(form: WordFormat, name: str, a: Operand, b: Operand) -> Array:
    """Apply an operation to two tensors, element by element.

    Parameters
    ----------
    form : WordFormat
        Of continuous operands and of the result.
    name : str
        "+", "-", "*" or "/".
    a, b : Continuous or Discrete
        Of shapes that broadcast.

    Returns
    -------
    (...) words

    Raises
    ------
    ValueError
        If there is no such operation, or if the format can't hold a table's value or an entry of the look-up table.
    """
    if isinstance(a, Discrete) and isinstance(b, Discrete):
        return np.asarray(look_up_table(name, a.table, b.table, form)[a.codes, b.codes])
    if isinstance(a, Continuous) and isinstance(b, Continuous):
        return operation(form, name)(a.words, b.words)
    if isinstance(b, Discrete):
        assert isinstance(a, Continuous)
        if name in ("*", "/"):
            return scale(form, a.words, b, -1 if name == "/" else 1)
        return operation(form, name)(a.words, constants(b.table, form)[b.codes])
    assert isinstance(a, Discrete)
    assert isinstance(b, Continuous)
    if name == "*":
        return scale(form, b.words, a)
    return operation(form, name)(constants(a.table, form)[a.codes], b.words)


def scale(form: WordFormat, words: Array, by: Discrete, direction: int = 1) -> Array:
    """Words times the values of codes, or divided by them if ``direction`` is -1: shifts and signs alone (C10)."""
    return np.asarray(form.shift(words, direction * by.table.places[by.codes]) * by.table.signs[by.codes])


def word_of(form: WordFormat, operand: Operand) -> Array:
    """The words that an operand stands for."""
    if isinstance(operand, Continuous):
        return operand.words
    return np.asarray(constants(operand.table, form)[operand.codes])
