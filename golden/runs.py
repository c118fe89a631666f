"""Runs: the elements of a window one behind the other, as a memory has them that is read from its begin to its end
(spec A4 to A6).

A kernel of 2 x 2 taps a, b, c, d and two channels is the run

    a0 a1 b0 b1 c0 c1 d0 d1

all channels of a tap, then the next tap, row by row. A map of 2 x 3 positions x, y, z above p, q, r has two windows of
that kernel, and their runs repeat what both windows read:

    x0 x1 y0 y1 p0 p1 q0 q1     y0 y1 z0 z1 q0 q1 r0 r1

Folded into words of 3 elements, the first one is

    x0 x1 y0    y1 p0 p1    q0 q1 -

The hardware keeps each element of a map once, and reads it in this order by the rows of a table
(`Window.positions`).
"""

import numpy as np

from .encoding import Array
from .packing import word_count
from .window import Window


def kernel_runs(weight: Array) -> Array:
    """The run of each kernel: (kernels, rows, columns, channels) -> (kernels, rows * columns * channels)."""
    return weight.reshape(len(weight), -1)


def window_runs(x: Array, window: Window) -> list[Array]:
    """The run of each window of a map, row by row.

    Parameters
    ----------
    x : (height, width, channels)
    window : Window

    Returns
    -------
    arrays (valid taps * channels)
        An invalid tap has no elements: a window beside the padding has a shorter run, which meets the elements
        `valid_elements` of a kernel's run.
    """
    height, width, channels = x.shape
    tuples = x.reshape(-1, channels)
    return [tuples[taps[taps >= 0]].reshape(-1) for taps in window.positions(height, width)]


def valid_elements(shape: tuple[int, int, int], window: Window) -> list[Array]:
    """For each window of a map of ``shape`` (height, width, channels), row by row: the numbers (valid taps * channels)
    of the elements of a kernel's run that the window's run meets."""
    height, width, channels = shape
    elements = np.arange(window.taps * channels).reshape(window.taps, channels)
    return [elements[taps >= 0].reshape(-1) for taps in window.positions(height, width)]


def fold(run: Array, word_elements: int) -> Array:
    """A run in words: element i is element i % word_elements of word i // word_elements.

    Parameters
    ----------
    run : (elements,)
    word_elements : int
        Elements of a word, >= 1. It need not divide the channels, nor the run.

    Returns
    -------
    (words, word_elements)
        What the run leaves of the last word is 0.
    """
    if word_elements < 1:
        raise ValueError(f"fold: word_elements must be >= 1, got {word_elements}")
    words = word_count(len(run), word_elements)
    filled = np.zeros((words, word_elements), run.dtype)
    filled.reshape(-1)[: len(run)] = run
    return filled


def unfold(words: Array, elements: int) -> Array:
    """The run of so many ``elements`` that `fold` put into words (words, elements of a word)."""
    least, most = words.size - words.shape[-1] + 1, words.size
    if not least <= elements <= most:
        raise ValueError(f"unfold: elements must be {least}..{most}, got {elements}")
    run: Array = words.reshape(-1)[:elements]
    return run
