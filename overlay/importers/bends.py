"""Bends: activations that never fall and are straight lines between corners and jumps, such as ReLU and clips, exactly.

    y              slope behind the last corner: 0
    |        .------
    |       /                 a clip to 0..6: corners (0, 0) and (6, 6)
    |------'
    '-------|-----|---- x     slope in front of the first corner: 0

All that import needs of such an activation follows from corners and slopes: its value at a number, the condition on
its input that a condition on its output becomes, and whether the host can compute it. Each channel may have its own.
Two corners at one x are a jump, such as (1, 0) and (1, 1) of ThresholdedRelu: the value at that x is the lower one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from operator import gt
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.links import HostLink

from .links import Condition, Link, entry
from .rationals import floats


@dataclass(frozen=True)
class Corners:
    """A function of a number that never falls: straight lines that meet in corners, or between which it jumps."""

    points: tuple[tuple[Fraction, Fraction], ...]
    """tuple of (Fraction, Fraction): x and y of at least one corner, from the left to the right; neither falls. Where
    two have the same x, the function jumps: at x it has the lower y."""
    slopes: tuple[Fraction, Fraction]
    """(Fraction, Fraction): of the lines in front of the first corner and behind the last one, >= 0."""

    def __post_init__(self) -> None:
        in_order = all(here != behind and not any(map(gt, here, behind)) for here, behind in pairwise(self.points))
        if not self.points or not in_order or min(self.slopes) < 0:
            raise ValueError("corners must be from the left to the right, and nothing may fall")

    @cached_property
    def lines(self) -> list[tuple[Fraction, Fraction]]:
        """Slope and offset of each straight line, from the left to the right: one more than there are corners. No
        number lies on the line of a jump."""
        inner = [self._slope(line) for line in range(1, len(self.points))]
        slopes = [self.slopes[0], *inner, self.slopes[1]]
        points = [self.points[0], *self.points]
        return [(slope, y - slope * x) for slope, (x, y) in zip(slopes, points)]

    def _slope(self, line: int) -> Fraction:
        """The slope of a line between two corners; 0 of a jump."""
        (x, y), (x_after, y_after) = self.points[line - 1 : line + 1]
        return (y_after - y) / (x_after - x) if x != x_after else Fraction(0)

    @property
    def lines_from(self) -> list[tuple[Fraction | float, Fraction, Fraction]]:
        """The lines of `lines`, each behind the number where it begins."""
        begins: list[Fraction | float] = [-np.inf, *(x for x, _ in self.points)]
        return [(x, slope, offset) for x, (slope, offset) in zip(begins, self.lines)]

    @property
    def is_clip(self) -> bool:
        """Whether it is min(max(x, low), high)."""
        return all(x == y for x, y in self.points) and {0, 1}.issuperset(self.slopes)

    @property
    def ends(self) -> tuple[float, float]:
        """low and high of a clip, infinite where one is missing."""
        low = -np.inf if self.slopes[0] else float(self.points[0][0])
        high = np.inf if self.slopes[1] else float(self.points[-1][0])
        return low, high

    def value(self, x: Fraction) -> Fraction:
        """The value at a number."""
        slope, offset = self.lines[bisect_left(self.points, x, key=lambda point: point[0])]
        return slope * x + offset

    def before(self, condition: Condition) -> Condition:
        """The condition on x that holds where ``condition`` holds for the value at x."""
        if condition.limit is None:
            return condition
        # Where the function is flat at the limit, one end of the flat line decides: the first x with this y, or the
        # last x.
        side = bisect_left if condition.rising == condition.reached else bisect_right
        line = side(self.points, condition.limit, key=lambda point: point[1])
        if 0 < line < len(self.points) and self.points[line - 1][0] == self.points[line][0]:
            # It jumps over the limit, behind this x: there the condition has what holds to the left.
            return Condition(self.points[line][0], condition.rising, not condition.rising)
        slope, offset = self.lines[line]
        if slope == 0:  # beyond a flat end: the condition holds for all x, or for none
            return Condition(None, condition.rising == (line == 0))
        return replace(condition, limit=(condition.limit - offset) / slope)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bend(Link):
    """An activation that never falls and consists of straight lines."""

    corners: Array
    """array of Corners."""

    @property
    def falls(self) -> Array:
        return np.array([False])

    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        return self._of(channel).value(x)

    def run(self, x: Array) -> Array:
        lines = [each.lines_from for each in self.corners.flat]
        most = max(map(len, lines))
        none = (np.inf, 0, 0)
        table = floats(np.array([[*each, *[none] * (most - len(each))] for each in lines], object))
        (_, slope, offset), *others = np.moveaxis(table, 0, -1).reshape(most, 3, *self.corners.shape)
        for begin, slope_behind, offset_behind in others:
            slope = np.where(x > begin, slope_behind, slope)
            offset = np.where(x > begin, offset_behind, offset)
        factor = np.where(slope == 0, 0.0, x)  # what is infinite would be no number, times 0
        return np.asarray(factor * slope + offset)

    def before(self, condition: Condition, channel: int = 0) -> Condition:
        return self._of(channel).before(condition)

    def _of(self, channel: int) -> Corners:
        of_channel: Corners = entry(self.corners, channel)
        return of_channel

    @property
    def bends_at(self) -> list[Fraction]:
        return sorted({x for corners in self.corners.flat for x, _ in corners.points})

    @property
    def on_host(self) -> bool:
        return all(corners.is_clip for corners in self.corners.flat)

    def host_link(self, channels: int) -> HostLink:
        assert self.on_host
        low, high = np.array([self._of(channel).ends for channel in range(channels)]).T
        return "clip", low, high


def bend(name: str, points: Sequence[tuple[Any, Any]], slopes: tuple[Any, Any]) -> Bend:
    """The bend with some corners, and slopes in front of the first one and behind the last one.

    Parameters
    ----------
    name : str
    points : sequence of (x, y)
    slopes : (slope, slope)
        Each number is an int, a Fraction, or an array of these, which spreads over one image: a channel has its own.

    Raises
    ------
    ValueError
        If corners are not from the left to the right, or something falls.
    """

    def corners(*numbers: Any) -> Corners:
        exact = tuple(map(Fraction, numbers))
        return Corners(tuple(zip(exact[:-2:2], exact[1:-2:2])), exact[-2:])  # type: ignore[arg-type]

    return Bend(name=name, corners=_of_each(corners, *(number for point in points for number in point), *slopes))


def clip(low: Any, high: Any) -> Bend:
    """min(max(x, low), high); an end may be missing. Where the ends are crossed, all becomes ``high``.

    Parameters
    ----------
    low, high : Fraction or None, or array of these
        They spread over one image.
    """

    def corners(low: Fraction | None, high: Fraction | None) -> Corners:
        if low is not None and high is not None:
            low = min(low, high)
        ends = sorted({end for end in (low, high) if end is not None}) or [Fraction(0)]
        return Corners(tuple((end, end) for end in ends), (Fraction(int(low is None)), Fraction(int(high is None))))

    return Bend(name="clip", corners=_of_each(corners, low, high))


def _of_each(of: Callable[..., Corners], *numbers: Any) -> Array:
    """``of(...)`` of each entry of numbers that spread over each other."""
    return np.asarray(np.vectorize(cache(of), otypes=[object])(*(np.asarray(each, object) for each in numbers)), object)
