"""Links: the steps that the host computes with each value at a network's ends, a channel with its own numbers.

======  =============  ====================================================
kind    numbers        computes
======  =============  ====================================================
line    multiply, add  x * multiply + add
clip    low, high      min(max(x, low), high); the ends may be infinite
======  =============  ====================================================

To add a kind, add an entry to `KINDS`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

HostLink = tuple[str, Array, Array]
"""A kind, and its two numbers for every channel: ("line", multiply, add), each (channels,) float64."""
HostLinks = tuple[HostLink, ...]
"""Links in the order in which the host computes them."""
MOST_LINKS = 64
"""Links of a chain at most; an importer joins lines that follow each other, so that few are left."""


@dataclass(frozen=True, kw_only=True)
class LinkKind:
    """A kind of link, as the host computes it."""

    forward: Callable[[Array, Array, Array], Array]
    """``forward(x, first, second)`` is what a link makes of x."""
    inverse: Callable[[Array, Array, Array], Array]
    """``inverse(y, first, second)`` is an x of which the link makes y; of a y that no x gives, the nearest one's."""
    finite: bool
    """Whether both numbers must be finite."""
    keeps_order: Callable[[Array, Array], bool]
    """``keeps_order(first, second)`` tells whether the largest value of all channels stays the largest one."""


def _rises_alike(multiply: Array, add: Array) -> bool:
    """Whether a line is the same one in all channels, and rises."""
    return bool((multiply == multiply[0]).all() and multiply[0] > 0 and (add == add[0]).all())


KINDS = {
    "line": LinkKind(
        forward=lambda x, multiply, add: x * multiply + add,
        inverse=lambda y, multiply, add: (y - add) / multiply,
        finite=True,
        keeps_order=_rises_alike,
    ),
    "clip": LinkKind(
        forward=lambda x, low, high: np.clip(x, low, high),
        inverse=lambda y, low, high: np.clip(y, low, high),
        finite=False,
        keeps_order=lambda low, high: False,
    ),
}
"""By name, all kinds of links."""


def through(links: HostLinks, x: Array) -> Array:
    """Values behind links: (..., channels) float64 -> the same shape; infinite where numbers are too large."""
    with np.errstate(all="ignore"):  # whoever calls looks at what comes out
        for kind, first, second in links:
            x = KINDS[kind].forward(x, first, second)
    return x


def back_through(links: HostLinks, y: Array) -> Array:
    """Values of which links make y: (..., channels) float64 -> the same shape; see `LinkKind.inverse`."""
    with np.errstate(all="ignore"):
        for kind, first, second in reversed(links):
            y = KINDS[kind].inverse(y, first, second)
    return y


def keeps_order(links: HostLinks) -> bool:
    """Tell whether the largest value of all channels stays the largest one behind all links."""
    return all(KINDS[kind].keeps_order(first, second) for kind, first, second in links)
