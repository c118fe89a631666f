"""The H-tree between master and slaves: copies downwards, adds upwards (C22)."""

from collections.abc import Sequence

from bitloom.golden.encoding import Array


def tree_sum(partial: Sequence[Array]) -> Array:
    """Sums of what the slaves give, neighbours first: ((s0 + s1) + (s2 + s3)) + ...

    Parameters
    ----------
    partial : sequence of (...) int64
        One of each slave, a power of two of them, of one shape.
    """
    level = list(partial)
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2])]
    return level[0]
