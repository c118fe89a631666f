"""Ways: a graph of operations, cut where a tensor has several readers and where tensors are added or concatenated.

    input --way--> fork --way--> join --way--> output
                     `----------^

A way is a chain of operations, so what is known of chains holds for it. It begins at the input, at a fork, or with a
join, which is a sum or a concatenation, and ends where the next way begins.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from .errors import ImportRefused, printable
from .joins import Join, reads_of
from .operation_graph import OperationGraph
from .operations import Operation


@dataclass(frozen=True, kw_only=True)
class Way:
    """A chain of operations between two places at which a graph is cut.

    Attributes
    ----------
    reads : tuple of str
        The tensor that it begins at; several if it begins with a join.
    operations : tuple of Operation
        In their order; the first one may be a join, no other.
    makes : str
        The tensor that it ends with.
    apart : collection of str
        Names of its maps whose means are convolutions.
    """

    reads: tuple[str, ...]
    operations: tuple[Operation, ...]
    makes: str
    apart: Collection[str] = ()

    @property
    def join(self) -> Join | None:
        """The join that it begins with."""
        first = self.operations[0]
        return first if isinstance(first, Join) else None


def needed(graph: OperationGraph) -> list[Operation]:
    """The operations that the output depends on, in their order; others make what nobody wants."""
    wanted, out = {graph.output}, list[Operation]()
    for operation in reversed(graph.operations):
        if operation.makes in wanted:
            out.append(operation)
            wanted.update(reads_of(operation))
    return out[::-1]


def is_chain(graph: OperationGraph) -> bool:
    """Whether no tensor that counts has several readers, and none are joined; nothing at all is a chain, too."""
    return not any(isinstance(operation, Join) for operation in needed(graph)) and len(ways(graph)) <= 1


def ways(graph: OperationGraph) -> list[Way]:
    """Cut a graph.

    Parameters
    ----------
    graph : OperationGraph

    Returns
    -------
    list of Way
        Each behind those whose tensors it reads.

    Raises
    ------
    ImportRefused
        If an operation reads the output, or several the input.
    """
    operations = needed(graph)
    readers = Counter(name for operation in operations for name in set(reads_of(operation)))
    together = {name for operation in operations if isinstance(operation, Join) for name in reads_of(operation)}
    cuts = {name for name, count in readers.items() if count > 1} | together | {graph.output}
    if readers[graph.output]:
        got = readers[graph.output]
        raise ImportRefused([f"{printable(graph.output)}: no operator may read the output, got {got}"])
    if graph.source in cuts and len(operations) > 1:
        rule = "one operator must read the input, a convolution, got several"
        raise ImportRefused([f"{printable(graph.source)}: {rule}"])
    following = {operation.reads: operation for operation in operations if operation.reads not in cuts}
    out = []
    for operation in operations:
        if operation.reads != graph.source and operation.reads not in cuts:
            continue
        chain = [operation]
        while chain[-1].makes not in cuts:
            chain.append(following[chain[-1].makes])
        out.append(Way(reads=reads_of(operation), operations=tuple(chain), makes=chain[-1].makes))
    made, sorted_ways = {graph.source}, list[Way]()
    while out:  # operations are sorted, but a way goes on past the beginning of the next one
        ready = next(way for way in out if made.issuperset(way.reads))
        out.remove(ready)
        sorted_ways.append(ready)
        made.add(ready.makes)
    return sorted_ways
