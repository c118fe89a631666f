"""Branches: runs of operations, each of which reads the tensor of the one before.

A branch begins at the input, at a tensor with several readers, or with a join, which is a sum or a concatenation. It
ends where the next branch begins:

    input --branch--> fork --branch--> join --branch--> output
                        `---branch------^
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bitloom.golden.encoding import Array

from .errors import ImportRefused, Unsupported, node_line
from .links import Link, first_line
from .map_view import MapView
from .operations import Closing, Join, Operation, OperationGraph
from .rationals import same
from .sections import OutputMap, Quantised


@dataclass(frozen=True, kw_only=True)
class Branch:
    """Operations each of which reads the tensor of the one before."""

    operations: tuple[Operation, ...]
    """In their order; the first one may be a join, no other. None if several branches begin at the input: then a branch
    of no operation makes the input."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that the branch reads first: several if the branch begins with a join."""
        return self.operations[0].reads

    @property
    def makes(self) -> str:
        """The tensor that it ends with."""
        return self.operations[-1].makes

    def names(self, count: int) -> tuple[str, ...]:
        """Names of the nodes that the first operations were made of."""
        return tuple(dict.fromkeys(operation.name for operation in self.operations[:count]))

    def first(self, kind: type[Operation]) -> int:
        """The place of the first operation of a kind; how many operations there are, if none is."""
        places = (place for place, operation in enumerate(self.operations) if isinstance(operation, kind))
        return next(places, len(self.operations))


def branches(graph: OperationGraph) -> list[Branch]:
    """Cut a graph into branches, in the order of their first operations: each behind those whose tensors it reads."""
    operations = graph.operations
    joined = {name for operation in operations if isinstance(operation, Join) for name in operation.reads}
    cuts = {name for name, readers in graph.readers.items() if len(readers) > 1} | joined | {*graph.outputs}
    out = [Branch(operations=())] if graph.source in cuts and len(operations) > 1 else []
    for operation in operations:
        if operation.reads[0] != graph.source and operation.reads[0] not in cuts:
            continue
        members = [operation]
        while members[-1].makes not in cuts:
            members += graph.readers[members[-1].makes]
        out.append(Branch(operations=tuple(members)))
    return out


@dataclass(frozen=True, eq=False)
class BranchEnd:
    """The end of a branch: a tensor of a map, behind links."""

    map: int
    """The map's number."""
    source: Quantised | None
    """The map; None where sums end the branch, which nothing can read."""
    links: tuple[Link, ...]
    view: MapView
    """The tensor."""
    closing: tuple[tuple[Closing, Array], ...]
    """Functions that the host computes at the end, each with the index of the values that it reads."""
    behind: tuple[Operation, ...]
    """The operations of the branch behind the map."""

    @property
    def output_map(self) -> OutputMap:
        """The map as the host reads it; ImportRefused if the host can't compute what lies behind it."""
        check_host(self.behind)
        return OutputMap(map=self.map, source=self.source, links=self.links)

    @property
    def levels(self) -> Quantised:
        """The map as the next branch reads it: its levels, and what they are worth behind the links."""
        line, behind = first_line(self.links, self.view.size[2])
        if self.source is None or behind:
            raise Unsupported(
                "a map that several operators read, or that is joined, must be quantised", "quantise before it"
            )
        multiply = same(line.multiply)
        add = same(line.add)
        if multiply is None or add is None or multiply <= 0:
            raise Unsupported("a map that several operators read, or that is joined, must have one scale > 0")
        base = self.source.base * multiply + add
        return replace(self.source, base=base, step=self.source.step * multiply, averaged=False, means_off=0, rule=None)


def check_host(operations: Sequence[Operation]) -> None:
    """Refuse an operation at an end of the network that the host can't compute."""
    for operation in operations:
        if operation.host_refusal:
            raise ImportRefused([node_line(operation.name, operation.op, operation.host_refusal)])
