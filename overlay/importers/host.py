"""Chains of fractions as the host computes them (`bitloom.golden.host.host`)."""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.host.host import Links

from .boundaries import Ends, Line
from .rationals import floats


def links(chain: Sequence[Line | Ends], channels: int) -> Links:
    """A chain of fractions as one of floating-point numbers."""
    out = []
    for link in chain:
        if isinstance(link, Line):
            out.append(("line", floats(link.multiply), floats(link.add)))
        else:
            low = -np.inf if link.low is None else float(link.low)
            high = np.inf if link.high is None else float(link.high)
            out.append(("clip", np.full(channels, low), np.full(channels, high)))
    return tuple(out)
