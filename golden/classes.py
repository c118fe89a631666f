"""Classes: which one a network's outputs mean. A class is the number of an output, (N, values) integers give (N,)."""

import numpy as np

from bitloom.golden.encoding import Array


def largest(outputs: Array) -> Array:
    """The number of the largest output, of equal ones the first."""
    return np.asarray(outputs.argmax(axis=1))


def highest_set(outputs: Array) -> Array:
    """The number of the last output above 0, or 0 if none is: the rule of BNN-PYNQ's boards, for single bits."""
    numbers: Array = (np.arange(outputs.shape[1]) * (outputs > 0)).max(axis=1, initial=0)
    return numbers
