"""The trail of a walk: the tensor that it stands at, the map behind that, and the sections that it has made."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bitloom.golden.encoding import Array

from .links import Link
from .map_view import MapView
from .operations import Closing, Operation, Pooling
from .sections import PassSection, Quantised, Reading, Section, WeightSection
from .wide_weights import fitting


class Unlinked(NamedTuple):
    """A tensor that has values of a map as its quantiser made them; behind a pool, what the links in front of it make
    of them."""

    tensor: str
    view: MapView
    links: tuple[Link, ...] = ()
    """The links in front of the pool."""


@dataclass
class Trail:
    """Where a walk is, and the sections that it has made."""

    operations: Sequence[Operation]
    """The operations that the walk goes along."""
    tensor: str
    """The tensor at which it begins."""
    source: Quantised | None
    """The levels of the map; None while the host works on real numbers."""
    view: MapView
    """The tensor at which the walk stands, of the map or of the sums."""
    map: int
    """Number of the map that the walk stands at, or whose sums or means it stands at."""
    number: int
    """Number of the map that the next section makes."""
    means_as_sums: Collection[str] = ()
    """Names of the maps whose means become sums of weights, not pools."""
    sections: list[Section] = field(default_factory=list)
    """The sections that the walk has made."""
    place: int = 0
    """Place in ``operations`` of the one that is taken."""
    front: tuple[Link, ...] = ()
    """Links in front of the host's quantiser."""
    unlinked: Unlinked = field(init=False)
    """The last tensor in front of links behind the map, or behind a pool."""
    closing: list[tuple[Closing, Array]] = field(default_factory=list)
    """Operations of the host at the network's end, each with the index of what it reads."""
    nodes: list[str] = field(default_factory=list)
    """Names of the nodes since the last section."""

    def __post_init__(self) -> None:
        self._begin_with = self.source, self.view
        self.unlinked = Unlinked(self.tensor, self.view)

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

    def note(self, node: str) -> None:
        """Note a node for the next section, unless it was noted last, or the last section ends with it."""
        before = self.nodes or (self.last.nodes if self.last else ())
        if node not in before[-1:]:
            self.nodes.append(node)

    def close(self, section: Section) -> None:
        """Add a section, behind which the walk stands."""
        self.sections.append(fitting(section) if isinstance(section, WeightSection) else section)
        self.map = self.number
        self.number = self.number + 1
        self.nodes = self.nodes if isinstance(section, PassSection) else []

    def change_last(self, section: Section) -> None:
        """Let the last section be another one, made of the nodes since, too."""
        nodes = tuple(dict.fromkeys((*section.nodes, *self.nodes)))
        self.sections[-1] = replace(section, nodes=nodes)
        self.nodes = []

    def pool(self, operation: Pooling) -> None:
        """Let a pool take the map, behind the section that makes the map or behind one that passes it on."""
        if not self.sections:
            source, view = self._begin_with
            reading = Reading(map=self.map, source=source or self.input, tensor=self.tensor, order=view.index)
            named = {"name": operation.name, "op": operation.op}
            head = PassSection(**named, reads=(reading,), size=view.size, quantised=self.input, shifts=(0,))
            self.close(head)
        section = self.sections[-1]
        self.change_last(replace(section, quantised=self.source, pools=(*section.pools, operation.window)))

    def reading(self, tensor: str, view: MapView, *links: Link) -> Reading:
        """How a section reads a tensor of the map, behind links."""
        return Reading(map=self.map, source=self.input, tensor=tensor, order=view.index, links=links)

    @property
    def unlinked_reading(self) -> Reading:
        """How a section reads the map as its quantiser made it."""
        tensor, view, links = self.unlinked
        return replace(self.reading(tensor, view, *links), padded_with=view.padded_with)
