"""The gearbox formula: how words of one width become words of another width.

    to wider words:    [a][b][c]   -->  [b a][- c]        words side by side, none across a boundary
    to narrower words: [d c b a]   -->  [a][b][c][d]      each word in pieces, the low part first

The hardware (hls_gen/rtl/primitives/gearbox.py), layouts (hls_gen/compiler/layout.py), the words of streams
(lane_words.py), the flow model and the search read the two numbers here.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Ints

from .lanes import UNUSED


class Gear(NamedTuple):
    """A change of width. One of the two numbers is 1."""

    together: int
    """Words that one wider word takes in, >= 1."""
    pieces: int
    """Narrower words that one word becomes, >= 1."""

    def words(self, count: int) -> int:
        """Words that ``count`` words of one tuple become; a tuple's last word may be filled in part."""
        return -(-count // self.together) * self.pieces


@lru_cache(maxsize=4096)
def gear(source: int, target: int) -> Gear:
    """The change from words of one width to words of another.

    Parameters
    ----------
    source, target
        Widths, >= 1, both in bits or both in lanes.

    Returns
    -------
    Gear
        floor(target / source) words together where the target is as wide or wider, else ceil(source / target) pieces.
    """
    return Gear(target // source, 1) if source <= target else Gear(1, -(-source // target))


def geared(words: int, source: int, target: int) -> int:
    """Words of width ``target`` that ``words`` words of width ``source``, all of one tuple, become."""
    return gear(source, target).words(words)


def regroup(layout: Ints, width: int) -> Ints:
    """Send a layout through a gearbox (hls_gen/rtl/primitives/gearbox.py), which begins a word with each tuple.

    Parameters
    ----------
    layout
        (words, lanes) of a tuple, as it comes.
    width
        Lanes of a word behind the gearbox.

    Returns
    -------
    ndarray
        (words, width) layout of the tuple behind the gearbox.
    """
    count, have = layout.shape
    together, pieces = gear(have, width)
    if have <= width:
        words = -(-count // together)
        padded = np.full((words * together, have), UNUSED, np.int64)
        padded[:count] = layout
        out = np.full((words, width), UNUSED, np.int64)
        out[:, : together * have] = padded.reshape(words, together * have)
        return out
    wide = np.full((count, pieces * width), UNUSED, np.int64)
    wide[:, :have] = layout
    return wide.reshape(count * pieces, width)
