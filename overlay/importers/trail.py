"""The trail of a walk: the tensor at which the walk stands, the map behind that tensor, and the sections that the walk
has made.

A trail is a value. The stand of the walk has it (stands.py), and each step gives a stand with another one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bitloom.golden.encoding import Array

from .links import Link
from .map_view import MapView
from .operations import Closing, Operation, Pooling
from .sections import MapReading, PassSection, Quantised, Section, WeightSection
from .weights import in_parts, needs_parts


class Start(NamedTuple):
    """The tensor at which a walk begins."""

    tensor: str
    view: MapView
    source: Quantised | None
    """The levels of its map; None where the host works on real numbers."""


class Unlinked(NamedTuple):
    """A tensor that has values of a map as its quantiser made them; behind a pool, what the links in front of it make
    of them."""

    tensor: str
    view: MapView
    links: tuple[Link, ...] = ()
    """The links in front of the pool."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trail:
    """Where a walk is, and the sections that it has made."""

    operations: Sequence[Operation]
    """The operations that the walk goes along."""
    start: Start
    source: Quantised | None
    """The levels of the map; None while the host works on real numbers."""
    view: MapView
    """The tensor at which the walk stands, of the map or of the sums."""
    unlinked: Unlinked
    """The last tensor in front of links behind the map, or behind a pool."""
    map: int
    """Number of the map that the walk stands at, or whose sums or means it stands at."""
    number: int
    """Number of the map that the next section makes."""
    means_as_sums: Collection[str]
    """Names of the maps whose means become sums of weights, not pools."""
    sections: tuple[Section, ...] = ()
    """The sections that the walk has made."""
    place: int = 0
    """Place in ``operations`` of the one that is taken."""
    front: tuple[Link, ...] = ()
    """Links in front of the host's quantiser."""
    closing: tuple[tuple[Closing, Array], ...] = ()
    """Operations of the host at the network's end, each with the index of what it reads."""
    nodes: tuple[str, ...] = ()
    """Names of the nodes since the last section."""

    @property
    def input(self) -> Quantised:
        """The levels of the map."""
        assert self.source is not None
        return self.source

    @property
    def channels(self) -> int:
        """Channels of the tensor's map."""
        return self.view.size[2]

    @property
    def following(self) -> Sequence[Operation]:
        """The operations behind the one that is taken."""
        return self.operations[self.place + 1 :]

    @property
    def last(self) -> Section | None:
        """The section that was made last."""
        return self.sections[-1] if self.sections else None

    @property
    def is_shifted(self) -> bool:
        """Whether a kernel makes the map by a rule that only integers less the file's zero point have."""
        source = self.input
        return source.rule is not None and source.rule.needs_sums and source.base != source.rule.low * source.step

    def at(self, view: MapView) -> "Trail":
        """The trail at another tensor."""
        return replace(self, view=view)

    def taking(self, place: int) -> "Trail":
        """The trail at the operation of that place. The operation's node counts among those of the next section, unless
        the same node was the last one before, or the last section ends with that node."""
        node = self.operations[place].name
        before = self.nodes or (self.last.nodes if self.last else ())
        nodes = self.nodes if node in before[-1:] else (*self.nodes, node)
        return replace(self, place=place, nodes=nodes)

    def closed(self, section: Section) -> "Trail":
        """The trail behind a section more, whose weights are in parts where they need it."""
        if isinstance(section, WeightSection) and needs_parts(section.weight):
            section = in_parts(section)
        return replace(
            self,
            sections=(*self.sections, section),
            map=self.number,
            number=self.number + 1,
            nodes=self.nodes if isinstance(section, PassSection) else (),
        )

    def with_last(self, section: Section) -> "Trail":
        """The trail with another section as the last one, made of the nodes since, too."""
        nodes = tuple(dict.fromkeys((*section.nodes, *self.nodes)))
        return replace(self, sections=(*self.sections[:-1], replace(section, nodes=nodes)), nodes=())

    def pooled(self, operation: Pooling) -> "Trail":
        """The trail behind a pool of the map, which follows in the section that makes the map or in one that passes it
        on."""
        if not self.sections:
            tensor, view, source = self.start
            reading = MapReading(map=self.map, source=source or self.input, tensor=tensor, order=view.index)
            head = PassSection(
                name=operation.name,
                op=operation.op,
                reads=(reading,),
                size=view.size,
                quantised=self.input,
                shifts=(0,),
            )
            return self.closed(head).pooled(operation)
        section = self.sections[-1]
        return self.with_last(replace(section, quantised=self.source, pools=(*section.pools, operation.window)))

    def reading(self, tensor: str, view: MapView, *links: Link) -> MapReading:
        """How a section reads a tensor of the map, behind links."""
        return MapReading(map=self.map, source=self.input, tensor=tensor, order=view.index, links=links)

    @property
    def unlinked_reading(self) -> MapReading:
        """How a section reads the map as its quantiser made it."""
        tensor, view, links = self.unlinked
        return replace(self.reading(tensor, view, *links), padded_with=view.padded_with)
