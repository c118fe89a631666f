"""Links: functions of each value in front of a quantiser, behind sums or another quantiser; a channel has its own
numbers.

=====  =================================================  =========
Line   x * multiply + add                                 here
Bend   straight lines between corners, which never falls  bends.py
Curve  any other function                                 curves.py
=====  =================================================  =========

What is a channel's own stands in arrays: each array among the fields of a link has an entry for each channel, or one
for all channels. So whether channels differ, and what some of the channels have, is known of every kind of link. In an
operation, on a tensor of the file, these arrays spread over one image as numpy has it; in a chain they are
(channels,), in golden's order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, TypeVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.links import HostLink, HostLinks

from .rationals import bounded, floats, same


@dataclass(frozen=True)
class Condition:
    """x >= limit, x > limit, x <= limit or x < limit; or always, or never."""

    limit: Fraction | None
    """None where the condition doesn't depend on x."""
    rising: bool
    """Whether it holds above the limit; where there is no limit, whether it always holds."""
    reached: bool = True
    """Whether it holds at the limit."""

    def holds(self, x: Fraction) -> bool:
        """Whether the condition holds at x."""
        if self.limit is None:
            return self.rising
        return self.reached if x == self.limit else (x > self.limit) == self.rising


@dataclass(frozen=True, kw_only=True, eq=False)
class Link(ABC):
    """A function of each value."""

    reversible: ClassVar[bool] = True
    """Whether `before` makes a condition on x of one on the link's value; else the link must read quantised values."""
    looked_up: ClassVar[bool] = False
    """Whether a table has the link where the link reads quantised values."""

    name: str = ""
    """Name in messages, such as "clip"; a line has none."""

    @property
    def parameters(self) -> tuple[Array, ...]:
        """The arrays with an entry for each channel, or one for all channels."""
        return tuple(self._arrays().values())

    def _arrays(self) -> dict[str, Array]:
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in named if isinstance(value, np.ndarray)}

    def placed(self: "AnyLink", of: Callable[[Array], Array]) -> "AnyLink":
        """The link with ``of(array)`` in place of each of its parameters."""
        changed: dict[str, Any] = {name: of(array) for name, array in self._arrays().items()}
        return replace(self, **changed)

    @property
    def is_uniform(self) -> bool:
        """Whether the link is the same one in all channels."""
        return all(same(array) is not None for array in self.parameters)

    def of_channel(self: "AnyLink", channel: int) -> "AnyLink":
        """The link of one channel alone."""
        return self.taken(np.array([channel]))

    def taken(self: "AnyLink", channels: Array) -> "AnyLink":
        """The link for a map whose channels are these of the link's."""
        return self.placed(lambda array: array[channels if array.size > 1 else 0 * channels])

    @property
    @abstractmethod
    def falls(self) -> Array:
        """Whether the link falls anywhere: (channels,) bool, or (1,) for all channels."""

    @abstractmethod
    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        """The link's value at a number in a channel."""

    @abstractmethod
    def run(self, x: Array) -> Array:
        """The link's values at float64 numbers, over which its parameters spread."""

    @abstractmethod
    def before(self, condition: Condition, channel: int = 0) -> Condition:
        """The condition on x that holds where ``condition`` holds for the link's value at x in a channel."""

    def slope(self, channel: int) -> Fraction:
        """The slope of the link in a channel, where it is one number for all x; else 1."""
        return Fraction(1)

    def offset(self, channel: int) -> Fraction:
        """The number that the link adds to x times `slope`, where it is one for all x; else 0."""
        return Fraction(0)

    def joined(self, first: "Link") -> "Link | None":
        """This link behind another one as one link; None where they stay two."""
        return None

    @property
    def bends_at(self) -> list[Fraction]:
        """The numbers around which the link isn't one straight line, as far as they are known."""
        return []

    @property
    def on_host(self) -> bool:
        """Whether the host can compute it at a network's ends."""
        return False

    def host_link(self, channels: int) -> HostLink:
        """The link as the host computes it."""
        raise TypeError(f"{self.name}: at a network's ends the host computes no such link")


AnyLink = TypeVar("AnyLink", bound=Link)

LinkChain = Sequence[Link]
"""Links in front of a quantiser, in the order in which they are computed: behind sums, where all are `reversible`, or
behind another quantiser."""


def entry(array: Array, channel: int) -> Any:
    """Of a link's parameter the entry of a channel."""
    return array.item(channel if array.size > 1 else 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Line(Link):
    """x * multiply + add."""

    multiply: Array
    add: Array
    """multiply, add: array of Fraction."""

    @classmethod
    def identity(cls, channels: int) -> "Line":
        """The line that leaves what it reads."""
        return cls(multiply=np.full(channels, Fraction(1), object), add=np.full(channels, Fraction(0), object))

    def after(self, first: "Line") -> "Line":
        """This line behind another one, as one line."""
        multiply = first.multiply * self.multiply
        add = first.add * self.multiply + self.add
        return Line(multiply=bounded(multiply), add=bounded(add))

    def joined(self, first: Link) -> Link | None:
        return self.after(first) if isinstance(first, Line) else None

    @property
    def falls(self) -> Array:
        return np.array([slope < 0 for slope in self.multiply.flat])

    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        return x * self.slope(channel) + self.offset(channel)

    def run(self, x: Array) -> Array:
        return np.asarray(x * floats(self.multiply) + floats(self.add))

    def before(self, condition: Condition, channel: int = 0) -> Condition:
        if condition.limit is None:
            return condition
        slope = self.slope(channel)
        offset = self.offset(channel)
        if slope == 0:
            return Condition(None, condition.holds(offset))
        return Condition((condition.limit - offset) / slope, condition.rising == (slope > 0), condition.reached)

    def slope(self, channel: int) -> Fraction:
        slope: Fraction = entry(self.multiply, channel)
        return slope

    def offset(self, channel: int) -> Fraction:
        offset: Fraction = entry(self.add, channel)
        return offset

    @property
    def on_host(self) -> bool:
        return True

    def host_link(self, channels: int) -> HostLink:
        multiply, add = (np.broadcast_to(floats(array), channels) for array in self.parameters)
        return "line", multiply, add


def followed(chain: LinkChain, link: Link) -> list[Link]:
    """The chain with one more link at its end. The link and the last link of the chain become one link if they can."""
    joined = link.joined(chain[-1]) if chain else None
    return [*chain, link] if joined is None else [*chain[:-1], joined]


def merged(chain: LinkChain) -> list[Link]:
    """The chain, in which neighbouring links become one link if they can, such as two lines."""
    links: list[Link] = []
    return reduce(followed, chain, links)


def first_line(chain: LinkChain, channels: int) -> tuple[Line, list[Link]]:
    """The lines that a chain begins with, as one line, and the links behind them."""
    line, *behind = merged([Line.identity(channels), *chain])
    assert isinstance(line, Line)
    return line, behind


def host_links(chain: LinkChain, channels: int) -> HostLinks:
    """A chain as the host computes it; what the host can't, was refused (branches.py)."""
    return tuple(link.host_link(channels) for link in chain)


def worth_in(chain: LinkChain, value: Fraction, channel: int) -> Fraction:
    """The chain's value at a number in a channel."""
    for link in chain:
        value = link.value(value, channel)
    return value


def falls(chain: LinkChain) -> bool:
    """Whether something in a chain falls in some channel."""
    return any(link.falls.any() for link in chain)


def is_uniform(chain: LinkChain) -> bool:
    """Whether a chain is the same one in all channels."""
    return all(link.is_uniform for link in chain)


def is_looked_up(chain: LinkChain) -> bool:
    """Whether a table has what a chain makes of quantised values."""
    return any(link.looked_up for link in chain)


def bend_name(chain: LinkChain) -> str:
    """Name, for messages, of the first link of a chain that is no line; "scale" if there is none."""
    return next((link.name for link in chain if link.name), "scale")
