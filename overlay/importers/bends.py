"""Bends: activations that never fall and are straight lines between corners, such as ReLU and clips, exactly.

    y              slope behind the last corner: 0
    |        .------
    |       /                 a clip to 0..6: corners (0, 0) and (6, 6)
    |------'
    '-------|-----|---- x     slope in front of the first corner: 0

All that import needs of such an activation follows from corners and slopes: its value at a number, the condition on
its input that a condition on its output becomes, and whether the host can compute it. To import another activation,
give its entry in activations.py a bend; nothing else has to know the activation.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.links import HostLink

from .links import Condition, Link
from .rationals import floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Bend(Link):
    """A function of each value, the same in every channel, that never falls: straight lines that meet in corners."""

    corners: tuple[tuple[Fraction, Fraction], ...]
    """tuple of (Fraction, Fraction): x and y of at least one point, from the left to the right; x rises, and y doesn't
    fall."""
    slopes: tuple[Fraction, Fraction]
    """(Fraction, Fraction): of the lines in front of the first corner and behind the last one, >= 0."""

    def __post_init__(self) -> None:
        pairs = list(zip(self.corners, self.corners[1:]))
        in_order = all(x < x_after and y <= y_after for (x, y), (x_after, y_after) in pairs)
        if not self.corners or not in_order or min(self.slopes) < 0:
            raise ValueError(f"{self.name}: corners must be from the left to the right, and nothing may fall")

    @cached_property
    def _lines(self) -> list[tuple[Fraction, Fraction]]:
        """Slope and offset of each straight line, from the left to the right: one more than there are corners."""
        inner = [(y_after - y) / (x_after - x) for (x, y), (x_after, y_after) in zip(self.corners, self.corners[1:])]
        slopes = [self.slopes[0], *inner, self.slopes[1]]
        points = [self.corners[0], *self.corners]
        return [(slope, y - slope * x) for slope, (x, y) in zip(slopes, points)]

    @property
    def falls(self) -> Array:
        return np.array([False])

    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        slope, offset = self._lines[bisect_left(self.corners, x, key=lambda corner: corner[0])]
        return slope * x + offset

    def run(self, x: Array) -> Array:
        slopes, offsets = floats(np.array(self._lines, object).T)
        line = np.searchsorted(floats(np.array([x for x, _ in self.corners], object)), x)
        flat = slopes[line] == 0  # what is infinite there stays no number when multiplied
        return np.where(flat, 0.0, x) * slopes[line] + offsets[line]

    def before(self, condition: Condition, channel: int = 0) -> Condition:
        if condition.limit is None:
            return condition
        # Where the bend is flat at the limit, one end of the flat line decides: the first x with this y, or the last x.
        side = bisect_left if condition.rising == condition.reached else bisect_right
        line = side(self.corners, condition.limit, key=lambda corner: corner[1])
        slope, offset = self._lines[line]
        if slope == 0:  # beyond a flat end: the condition holds for all x, or for none
            return Condition(None, condition.rising == (line == 0))
        return replace(condition, limit=(condition.limit - offset) / slope)

    @property
    def bends_at(self) -> list[Fraction]:
        return [x for x, _ in self.corners]

    @property
    def on_host(self) -> bool:
        return all(x == y for x, y in self.corners) and {0, 1}.issuperset(self.slopes)

    def host_link(self, channels: int) -> HostLink:
        assert self.on_host
        low = -np.inf if self.slopes[0] else float(self.corners[0][0])
        high = np.inf if self.slopes[1] else float(self.corners[-1][0])
        return "clip", np.full(channels, low), np.full(channels, high)


def clip(low: Fraction | None, high: Fraction | None) -> Bend:
    """min(max(x, low), high); an end may be missing. Where the ends are crossed, all becomes ``high``."""
    if low is not None and high is not None:
        low = min(low, high)
    ends = sorted({end for end in (low, high) if end is not None}) or [Fraction(0)]
    slopes = Fraction(int(low is None)), Fraction(int(high is None))
    return Bend(name="clip", corners=tuple((end, end) for end in ends), slopes=slopes)
