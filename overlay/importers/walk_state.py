"""Where the walk along a chain of operations is, and what the map there is worth."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .boundaries import Ends, Line
from .errors import Unsupported
from .operations import Clip, Levels, Linear, Operation, Pooling, Scaling
from .padding import Padding, without_padding
from .rationals import same
from .sections import Quantised, Section, Size

MOST_LINKS = 64
"""Links of a chain at most."""


@dataclass
class Walk:
    """Where the walk along the chain is."""

    source: Quantised | None  # what the map holds; none while the host works on real numbers
    index: Array  # of the tensor: for each of its values the place in golden's map
    size: Size
    front: tuple[Line | Ends, ...] = ()  # before the host's quantiser
    links: list[Line | Ends] = field(default_factory=list)  # since the last quantiser or the last weights
    open: Section | None = None  # a section whose quantiser hasn't come
    done: list[Section] = field(default_factory=list)
    average: Pooling | None = None  # a mean that waits for what reads it
    average_links: int = 0  # how many links lie before it
    average_index: Array | None = None  # the index of what it reads
    closing: list[str] = field(default_factory=list)
    inner: list[Window] = field(default_factory=list)
    inner_at: int = 0
    padded_with: Fraction = Fraction(0)  # what stands at padded places, where the tensor has any
    nodes: list[str] = field(default_factory=list)
    chain: Sequence[Operation] = ()  # all operations
    place: int = 0  # of the operation that is taken
    apart: Collection[str] = ()  # names of the maps whose means are convolutions, not pools

    @property
    def pads_elsewhere(self) -> bool:
        """Whether the next weights have padding, which is worth 0, of a map that is worth something else at 0."""
        for operation in self.chain[self.place + 1 :]:
            if isinstance(operation, Scaling) and any(operation.add.ravel()):
                return _pads(self.chain[self.place + 1 :])
            if isinstance(operation, Levels | Linear):
                break
        return False

    @property
    def pools_again(self) -> bool:
        """Whether a pool of the same map follows; a mean is the last one of a map."""
        for operation in self.chain[self.place + 1 :]:
            if isinstance(operation, Levels | Linear | Pooling):
                return isinstance(operation, Pooling)
        return False

    @property
    def differs_by_channel(self) -> bool:
        """Whether a quantiser comes before weights and means, and it, or a line before it, is a channel's own.

        Max pools that come before it are taken first, because only there a channel may still fall.
        """
        differs = clipped = False
        for operation in self.chain[self.place + 1 :]:
            if isinstance(operation, Levels):
                return differs or len(operation.boundaries) > 1
            if isinstance(operation, Pooling) and not differs and not clipped:
                break
            clipped = clipped or isinstance(operation, Clip)
            if isinstance(operation, Linear) or (isinstance(operation, Pooling) and operation.average):
                break
            if isinstance(operation, Scaling):
                differs = differs or None in (same(operation.multiply), same(operation.add))
        return False

    def follow(self, link: Line | Ends) -> None:
        """Another link of the chain; lines that follow each other become one."""
        apart = max(self.inner_at if self.inner else 0, self.average_links if self.average is not None else 0)
        before = self.links[-1] if len(self.links) > apart else None
        if isinstance(link, Line) and isinstance(before, Line):
            self.links[-1] = link.after(before)
        else:
            self.links.append(link)
        if len(self.links) > MOST_LINKS:
            raise Unsupported(f"at most {MOST_LINKS} clips and scales may lie between two quantisers, got more")

    @property
    def input(self) -> Quantised:
        """What the map holds."""
        assert self.source is not None
        return self.source


def _pads(operations: Sequence[Operation]) -> bool:
    """Whether the first weights have padding, their own or one before them."""
    for one in operations:
        if isinstance(one, Padding):
            return True
        if isinstance(one, Linear):
            return one.window is not None and any(one.window.padding)
    return False


def lead_of(walk: Walk, links: list[Line | Ends]) -> Line:
    """What the map is worth behind some links, as one line."""
    channels = walk.size[2]
    one, zero = np.full(channels, Fraction(1), object), np.full(channels, Fraction(0), object)
    lead = Line(multiply=one, add=zero)
    for link in links:
        lead = _clipped(walk, lead, link) if isinstance(link, Ends) else link.after(lead)
    if same(lead.multiply) in (None, Fraction(0)):
        raise Unsupported("what is multiplied with between a quantiser and weights must be one number, not 0")
    return lead


def _clipped(walk: Walk, lead: Line, ends: Ends) -> Line:
    """A clip behind a quantiser, which must leave all its values as they are."""
    worth = [
        lead.multiply[c] * (walk.input.base + walk.input.step * level) + lead.add[c]
        for c in range(len(lead.add))
        for level in (0, walk.input.levels)
    ]
    low_cuts = ends.low is not None and min(worth) < ends.low
    high_cuts = ends.high is not None and max(worth) > ends.high
    if low_cuts or high_cuts:
        raise Unsupported("a clip behind a quantiser must be followed by a quantiser, or cut nothing")
    return lead


def take_padding(walk: Walk, window: Window | None) -> Window:
    """The window of weights that read a padded map, with that padding, too."""
    if window is None:
        raise Unsupported("a padded map must be read by a convolution")
    if walk.padded_with != 0:
        raise Unsupported(f"a map must be padded with 0, got {float(walk.padded_with):g}")
    walk.index, sides = without_padding(walk.index)
    top, left, bottom, right = (a + b for a, b in zip(sides, window.padding))
    more = replace(window, padding=(top, left, bottom, right))
    try:
        more.check("with Pad, the window")
    except ValueError as e:
        raise Unsupported(str(e)) from None
    return more


def is_rounded_mean(walk: Walk, operation: Levels) -> bool:
    """Whether a mean is rounded to the values that its map has, halves away from 0, as golden's average pool does."""
    source = walk.input
    if walk.links or not walk.done or source.averaged or len(operation.boundaries) > 1:
        return False
    if walk.pads_elsewhere or walk.pools_again or source.name in walk.apart:
        return False
    first, offset = source.base / source.step, (source.base - operation.base) / source.step
    if source.step != operation.step or first.denominator != 1 or offset.denominator != 1:
        return False
    # The quantiser may have more values below and above: no mean is there.
    below, above = int(offset), int(offset) + source.levels
    if not 0 <= below <= above <= operation.levels:
        return False
    values = [first + level for level in range(1, source.levels + 1)]
    middles = [(value - Fraction(1, 2)) * source.step for value in values]
    away = [value > 0 for value in values]
    return list(operation.boundaries[0][below:above]) == middles and operation.reached.tolist()[below:above] == away
