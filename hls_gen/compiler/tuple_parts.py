"""Which words of each tuple the kernel groups of a layer read (hls_gen/rtl/sequencer/tuple_parts.py).

    kernels       words of a tuple          words that hold a weight     part
    0 .. KGP-1    0 1 2 3 4 5 6 7           0 1                          words 2, step 2, groups 1
    KGP .. 2KGP-1                           2 3
    ...                                     ...

A kernel of a grouped convolution has weights for the channels of its own group, and 0 for others. Products with 0 add
nothing, so a pass may leave words out in which none of its kernels has a weight. Hardware knows one pattern: all kernel
groups read as many words, and the first of them moves on by a step after so many kernel groups. Where no such pattern
takes fewer words than a tuple has, all are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.hls_gen.design.array import kernel_groups
from bitloom.hls_gen.design.lanes import UNUSED

from .in_use import InUse
from .layout import WordLayout


@dataclass(frozen=True)
class TuplePart:
    """The words that kernel groups read of each tuple: ``words`` of them, ``step`` further on after ``groups`` kernel
    groups."""

    words: int
    """>= 1."""
    step: int = 0
    """>= 0."""
    groups: int = 1
    """>= 1."""

    @property
    def fields(self) -> dict[str, int]:
        """Fields of the layer's row (hls_gen/design/memories/sequencer.py)."""
        return {"part_words_minus_1": self.words - 1, "part_step": self.step, "part_groups_minus_1": self.groups - 1}

    def firsts(self, count: int) -> Ints:
        """Number of the first word, for each of ``count`` kernel groups."""
        return np.arange(count) // self.groups * self.step

    def rows(self, count: int, places: int, words: int) -> Ints:
        """Which rows of (kernel groups, places, words of a tuple) are left."""
        every = np.arange(count * places * words).reshape(count, places, words)
        of_group = self.firsts(count)[:, None, None] + np.arange(self.words)
        return np.take_along_axis(every, np.broadcast_to(of_group, (count, places, self.words)), axis=2).ravel()


@dataclass(frozen=True, eq=False)
class WeightedLanes:
    """The lanes of a tuple for which the kernels of a layer have weights: all that the part of a tuple depends on."""

    lanes: Array
    """(kernels, lanes) of bool: whether a kernel has a weight other than 0."""
    same: bool
    """Whether all kernel groups must leave out the same number of lanes: each lane is a match that is not counted, and
    all groups of a layer have one offset for these."""
    even: bool
    """Whether that number must be even: the offset counts matches by twos."""
    _spans: dict[tuple[int, bytes], bool] = field(default_factory=dict, init=False, repr=False)
    """Layout -> what `spans` found, but for tuples of one word."""
    _parts: dict[tuple[int, bytes, int], tuple[TuplePart, int]] = field(default_factory=dict, init=False, repr=False)
    """Layout and KGP -> what `part` found, but for layouts that are spanned."""

    @classmethod
    def of(cls, lanes: Array, *, same: bool, even: bool) -> "WeightedLanes":
        """Lanes with these values. Where such an object is in use it is given again, with the parts that it knows."""
        key = lanes.shape, np.packbits(lanes).tobytes(), same, even
        return _IN_USE.get(key, lambda: cls(lanes, same, even))

    def part(self, layout: WordLayout, kgp: int) -> tuple[TuplePart, int]:
        """Find the part with the fewest words; parameters and results as of `tuple_part`."""
        if self.spans(layout):
            return TuplePart(len(layout)), 0
        key = len(layout), layout.tobytes(), kgp
        if key not in self._parts:
            self._parts[key] = self._shortest(layout, kgp)
        return self._parts[key]

    def _shortest(self, layout: WordLayout, kgp: int) -> tuple[TuplePart, int]:
        """Find the shortest part, as `tuple_part` does, without a look at those that are known."""
        kernels, lanes = self.lanes.shape
        count = kernel_groups(kernels, kgp)
        padded = np.zeros((count * kgp, lanes + 1), bool)  # the last one: no lane
        padded[:kernels, :-1] = self.lanes
        needed = padded.reshape(count, kgp, -1).any(axis=1)[:, layout].any(axis=2)  # (kernel groups, words)
        for part in sorted(_parts(needed), key=lambda candidate: candidate.words):
            left_out = _left_out(part, count, layout)
            alike = len(set(left_out.tolist())) == 1
            if (alike or not self.same) and (left_out[0] % 2 == 0 or not self.even):
                return part, int(left_out[0])
        return TuplePart(len(layout)), 0

    def spans(self, layout: WordLayout) -> bool:
        """Whether a tuple has one word, or a kernel has weights in the first word and in the last one, so that its
        group reads whole tuples, however many kernels are a group."""
        if len(layout) == 1:
            return True
        key = len(layout), layout.tobytes()
        if key not in self._spans:
            ends = (word[word != UNUSED] for word in (layout[0], layout[-1]))
            first, last = (self.lanes[:, lanes].any(axis=1) for lanes in ends)
            self._spans[key] = bool((first & last).any())
        return self._spans[key]


_IN_USE = InUse[WeightedLanes]()
"""By their values."""


def tuple_part(weighted: WeightedLanes | None, layout: WordLayout, kgp: int) -> tuple[TuplePart, int]:
    """Find the part with the fewest words.

    Parameters
    ----------
    weighted
        The lanes for which the kernels of a layer have weights, each kernel group of which is a pass of its own; None
        where kernels have weights for all lanes, so that kernel groups read whole tuples.
    layout
        (words of a tuple, lanes of a word): lanes of the map that the layer reads, or UNUSED.
    kgp
        Kernels of a group.

    Returns
    -------
    tuple of TuplePart and int
        The part, and how many of a tuple's lanes that have a channel lie in words that a kernel group does not read.
    """
    return weighted.part(layout, kgp) if weighted else (TuplePart(len(layout)), 0)


def _parts(needed: Array) -> Iterator[TuplePart]:
    """Every part that is shorter than a tuple and has the ``needed`` (kernel groups, words)."""
    count, words = needed.shape
    first = np.where(needed.any(axis=1), needed.argmax(axis=1), words)
    end = np.where(needed.any(axis=1), words - needed[:, ::-1].argmax(axis=1), 0)
    if (end - first).max() == words:
        return
    number = np.arange(count)
    for groups in range(1, count + 1):
        moves = (count - 1) // groups
        for step in range((words - 1) // moves + 1 if moves else 1):
            at = number // groups * step
            most = max(1, int((end - at).max()))
            if (at <= first).all() and int(at[-1]) + most <= words and most < words:
                yield TuplePart(most, step, groups)


def _left_out(part: TuplePart, count: int, layout: WordLayout) -> Ints:
    """Lanes with a channel in the words that each of ``count`` kernel groups leaves out."""
    channels = (layout != UNUSED).sum(axis=1)
    read = part.firsts(count)[:, None] + np.arange(part.words)
    left_out: Ints = channels.sum() - channels[read].sum(axis=1)
    return left_out
