"""Sizes of words and groups that the search looks at."""

from collections.abc import Iterable


def splits(total: int) -> list[int]:
    """Sizes of the parts of ``total``, rising: for each number of parts the least size, ceil(total / parts), once."""
    found = []
    parts = 1
    while True:
        size = -(-total // parts)
        found.append(size)
        if size == 1:
            return found[::-1]
        parts = -(-total // (size - 1))


def whole_words(sizes: Iterable[int], word_lanes: int) -> list[int]:
    """``sizes``, each made as large as whole words of so many lanes are, once; as they are with 0 lanes."""
    lanes = word_lanes or 1
    return list(dict.fromkeys(-(-size // lanes) * lanes for size in sizes))
