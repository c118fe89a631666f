"""Order of elements in memory, and memories of any word width (spec A4, A5, A6).

A *run* is a one-dimensional array of the elements that are used one after another: element 0 first, channel fastest,
then the next position in the order in which windows use them, row-major here. Three stores are made of runs:

* `kernel_runs`: one run a kernel (A4).
* `window_runs`: one run a window, which repeats elements that windows share (A5).
* `map_run`: one run for the map, each element once; the tables of hls_gen.compiler.schedule read it in the order of
  `window_runs` (A5, section B).

A run is *folded* into words: element i is bit i % word_bits of word i // word_bits (A6), for every width >= 1, as in
golden/packing.py. Words are Python integers, of any width. `Folded` is where several runs lie.

Runs may have elements of any dtype (a test can follow names through them); folding takes bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import index

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map
from bitloom.golden.packing import word_count
from bitloom.golden.window import Window

Words = tuple[int, ...]
"""Memory words, each 0 ... 2^word_bits - 1."""


def kernel_runs(weight: Array) -> Array:
    """(O, rows, columns, C) -> (O, rows * columns * C): all channels of one position, then the next position."""
    return weight.reshape(len(weight), -1)


def map_run(x: Array) -> Array:
    """(H, W, C) -> (H * W * C): each element once."""
    return x.reshape(-1)


def window_runs(x: Array, window: Window) -> list[Array]:
    """(H, W, C) -> for each window, row-major, the run (valid taps * C) of its elements.

    Invalid taps have no elements: a run beside padding is shorter, and its elements meet those of the kernel's run
    that `valid_elements` names.
    """
    height, width, channels = x.shape
    tuples = x.reshape(-1, channels)  # (H * W, C)
    return [tuples[taps[taps >= 0]].reshape(-1) for taps in window.positions(height, width)]


def valid_elements(source: Map, window: Window) -> list[Array]:
    """For each window, row-major, the indices (valid taps * C) in a kernel's run that its own run meets."""
    elements = np.arange(window.taps * source.channels).reshape(window.taps, source.channels)
    return [elements[taps >= 0].reshape(-1) for taps in window.positions(source.height, source.width)]


def element_index(position: int, channel: int, channels: int) -> int:
    """Index in a run of a channel at a position: a map's position, or the tap's place in a whole window or kernel."""
    if not 0 <= channel < channels:
        raise ValueError(f"storage: channel must be 0..{channels - 1}, got {channel}")
    if position < 0:
        raise ValueError(f"storage: position must be >= 0, got {position}")
    return position * channels + channel


def element_address(element: int, word_bits: int) -> tuple[int, int]:
    """(word, bit) of an element of a folded run."""
    _check_width(word_bits)
    if element < 0:
        raise ValueError(f"storage: element must be >= 0, got {element}")
    return element // word_bits, element % word_bits


def fold(run: Array, word_bits: int) -> Words:
    """(n) of 0 and 1 -> word_count(n, word_bits) words; unused bits of the last word are 0."""
    _check_width(word_bits)
    if run.ndim != 1 or not np.isin(run, (0, 1)).all():
        raise ValueError(f"storage: a run must be one axis of 0 and 1, got shape {run.shape} of {run.dtype}")
    full = np.zeros((word_count(len(run), word_bits), word_bits), np.uint8)
    full.reshape(-1)[: len(run)] = run
    octets = np.packbits(full, axis=1, bitorder="little")
    return tuple(int.from_bytes(word.tobytes(), "little") for word in octets)


def unfold(words: Sequence[int], elements: int, word_bits: int) -> Array:
    """Inverse of `fold`: the run (elements) uint8 of 0 and 1, read element by element."""
    _check_width(word_bits)
    if len(words) != word_count(elements, word_bits):
        raise ValueError(
            f"storage: {elements} elements need {word_count(elements, word_bits)} words of {word_bits} bits, "
            f"got {len(words)}"
        )
    return np.array([element(words, i, word_bits) for i in range(elements)], np.uint8)


def element(words: Sequence[int], number: int, word_bits: int) -> int:
    """Element ``number`` of a folded run: 0 or 1."""
    word, bit = element_address(number, word_bits)
    return words[word] >> bit & 1


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Where runs lie in one memory of words of ``word_bits`` bits.

    lengths : elements of each run, >= 1.
    aligned : each run begins in a new word; else right after the one before it, maybe within a word.
    """

    word_bits: int
    lengths: tuple[int, ...]
    aligned: bool = True

    def __post_init__(self) -> None:
        _check_width(self.word_bits)
        if any(index(length) < 1 for length in self.lengths):
            raise ValueError(f"storage: lengths of runs must be >= 1, got {min(self.lengths)}")

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """First element of each run, counted in bits of the memory; then the memory's used size."""
        unit = self.word_bits if self.aligned else 1
        return tuple(accumulate((-(-length // unit) * unit for length in self.lengths), initial=0))

    @property
    def depth_words(self) -> int:
        """Words of the memory."""
        return word_count(self.starts[-1], self.word_bits)

    def address(self, run: int, element: int) -> tuple[int, int]:
        """(word, bit) of an element of a run."""
        if not 0 <= run < len(self.lengths):
            raise ValueError(f"storage: run must be 0..{len(self.lengths) - 1}, got {run}")
        if not 0 <= element < self.lengths[run]:
            raise ValueError(f"storage: element of run {run} must be 0..{self.lengths[run] - 1}, got {element}")
        return element_address(self.starts[run] + element, self.word_bits)

    def store(self, runs: Sequence[Array]) -> Words:
        """Contents of the memory, ``depth_words`` words; unused bits are 0."""
        if tuple(len(run) for run in runs) != self.lengths:
            raise ValueError(f"storage: runs must have lengths {self.lengths}, got {tuple(len(r) for r in runs)}")
        parts: list[Array] = [np.zeros(0, np.uint8)]
        for run, start, end in zip(runs, self.starts, self.starts[1:]):
            parts += [run, np.zeros(end - start - len(run), np.uint8)]
        return fold(np.concatenate(parts), self.word_bits)

    def read(self, words: Sequence[int], run: int) -> Array:
        """A run (length) uint8 from the memory's contents."""
        places = [self.address(run, i) for i in range(self.lengths[run])]
        return np.array([words[word] >> bit & 1 for word, bit in places], np.uint8)


def _check_width(word_bits: int) -> None:
    if not isinstance(word_bits, int) or word_bits < 1:
        raise ValueError(f"storage: word_bits must be an integer >= 1, got {word_bits!r}")
