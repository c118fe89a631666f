"""The pass from operations to sections: a chain is cut at its quantisers.

    input quantiser | linear, chain, quantiser, pools | linear, chain, quantiser | linear, chain
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array

from .errors import ACTIVATION, ImportRefused, node_line, printable
from .joins import Join
from .operation_graph import OperationGraph
from .operations import Clip, Closing, Layout, Levels, Linear, Operation, Pooling, Scaling
from .padding import is_padded
from .sections import Cut, Quantised, Section, Size, golden_order, without_weights
from .source import MOST_CHANNELS
from .walk import RULES
from .walk_state import Walk


def cut(graph: OperationGraph, source: Quantised | None = None, apart: Collection[str] = ()) -> Cut:
    """Cut a chain of operations into sections.

    Parameters
    ----------
    graph : OperationGraph
    source : Quantised, optional
        What the input is, where nothing in front of the first weights quantises it.
    apart : collection of str
        Names of maps whose means are convolutions, so that what these make is held as its readers need it.

    Returns
    -------
    Cut

    Raises
    ------
    ImportRefused
        With a line for the operation that can't be put into a section.
    """
    operations = _quantised_first(_chain(graph))
    first = next((k for k, one in enumerate(operations) if isinstance(one, Linear | Pooling)), len(operations))
    last = max((k for k, one in enumerate(operations[:first]) if isinstance(one, Levels)), default=-1)
    if not any(isinstance(one, Linear) for one in operations):
        name = graph.name or "the network"
        raise ImportRefused([f"{name}: a convolution or a matrix product must come first, got none"])
    if last < 0 and source is None:
        why = "its input must be quantised, got real numbers; say what the network is fed with: --input"
        raise ImportRefused([node_line(operations[first].name, operations[first].op, why)])
    if last >= 0 and source is not None:
        why = "it quantises the input already, so leave out --input"
        raise ImportRefused([node_line(operations[last].name, operations[last].op, why)])
    order, size = _input_order(graph, operations)
    if size[2] > MOST_CHANNELS:
        raise ImportRefused([f"the input must have at most {MOST_CHANNELS:,} channels, got {size[2]:,}"])
    walk = Walk(source=source, index=order, size=size, chain=operations, apart=apart)
    for place in range(last + 1):
        _take(walk, place)
    begun = Cut(
        name=graph.name, front=walk.front, source=walk.input, size=size, order=order,
        sections=(), final=(), chain=tuple(operations), output_order=order, closing=(),
    )  # fmt: skip
    if last >= 0:
        walk.links, walk.nodes = [], []
    if isinstance(operations[first], Pooling):
        walk.done = [without_weights(operations[first].name, walk.input, size, ())]
    for place in range(last + 1, len(operations)):
        _take(walk, place)
    found = _finished(walk, begun)
    if not isinstance(operations[first], Pooling):
        return found
    head, *others = found.sections
    if not others:
        raise ImportRefused([f"{graph.name or 'the network'}: weights must follow the first pool, got none"])
    assert head.made is not None
    return replace(found, source=head.made, sections=tuple(others), head=head if head.pools else None)


def _quantised_first(operations: Sequence[Operation]) -> list[Operation]:
    """The operations with max pools of the input behind what rises in every channel before the first weights, with its
    quantiser: the largest value has the largest level."""
    out = list(operations)
    end = next((k for k, one in enumerate(out) if isinstance(one, Linear)), 0)
    for begin in reversed(range(end)):
        place, one = begin, out[begin]
        while isinstance(one, Pooling) and not one.average and place + 1 < end and _rises(out[place + 1]):
            out[place], out[place + 1] = out[place + 1], one
            place += 1
    return out


def _rises(operation: Operation) -> bool:
    """Whether an operation works on each value for itself, and never falls."""
    scaled = isinstance(operation, Scaling) and all(m > 0 for m in operation.multiply.ravel())
    return scaled or isinstance(operation, Clip | Levels)


def cut_on(
    name: str, operations: Sequence[Operation], taken: int, head: Section, index: Array, apart: Collection[str] = ()
) -> Cut:
    """Cut a chain that begins with a sum of two maps.

    Parameters
    ----------
    name : str
        Of the network.
    operations : sequence of Operation
    taken : int
        How many of them are the sum and its quantiser.
    head : Section
        What these make; it becomes the first section, with the pools that follow.
    index : int64 array
        The place of each of the sum's values in golden's map.
    apart : collection of str
        As `cut` has it.

    Returns
    -------
    Cut

    Raises
    ------
    ImportRefused
        With a line for the operation that can't be put into a section.
    """
    assert head.made is not None
    walk = Walk(source=head.made, index=index, size=head.size, chain=operations, done=[head], apart=apart)
    begun = Cut(
        name=name, front=(), source=head.made, size=head.size, order=index, sections=(), final=(),
        chain=tuple(operations), output_order=index, closing=(),
    )  # fmt: skip
    for place in range(taken, len(operations)):
        _take(walk, place)
    made = _finished(walk, begun)
    rows, columns = head.size[:2]
    for window in made.sections[0].pools:
        rows, columns = window.output_size(rows, columns)
    source = made.sections[0].made
    assert source is not None
    return replace(made, source=source, size=(rows, columns, head.size[2]))


def _take(walk: Walk, place: int) -> None:
    """One operation further; ImportRefused with a line for an operation that can't be taken."""
    operation, walk.place = walk.chain[place], place
    if walk.closing and not isinstance(operation, Closing | Layout):
        last = next(one for one in reversed(walk.chain[:place]) if isinstance(one, Closing))
        why = f"the host computes it at the network's end alone, and {printable(operation.name)} follows"
        instead = f"; {ACTIVATION}" if last.op == "Sigmoid" else ""
        raise ImportRefused([node_line(last.name, last.op, why + instead)])
    before = walk.nodes or (walk.done[-1].nodes if walk.done else ())  # a node may go on behind its quantiser
    if operation.name not in before[-1:]:
        walk.nodes.append(operation.name)
    try:
        RULES[type(operation)](walk, operation)
    except ValueError as e:
        raise ImportRefused([node_line(operation.name, operation.op, e)]) from None


def _finished(walk: Walk, begun: Cut) -> Cut:
    if is_padded(walk.index):
        raise ImportRefused([f"{begun.chain[-1].name}: a padded map must be read by a convolution"])
    if walk.average is not None:
        why = "a mean must be followed by weights or a quantiser"
        raise ImportRefused([node_line(walk.average.name, walk.average.op, why)])
    sections, final = list(walk.done), tuple(walk.links)
    if walk.open is not None:
        if walk.inner:
            raise ImportRefused([f"{walk.open.name}: a max pool must be behind a quantiser or before one, got neither"])
        sections.append(replace(walk.open, chain=final, nodes=tuple(walk.nodes)))
        final = ()
    return replace(
        begun,
        sections=tuple(sections),
        final=final,
        final_size=walk.size,
        output_order=walk.index.ravel(),
        closing=tuple(walk.closing),
    )


def quantises_input(graph: OperationGraph) -> bool:
    """Whether a quantiser comes in front of the first weights, pools and sums."""
    here = graph.source
    for operation in graph.operations:
        if operation.reads == here:
            if isinstance(operation, Levels | Linear | Pooling | Join):
                return isinstance(operation, Levels)
            here = operation.makes
    return False


def _chain(graph: OperationGraph) -> list[Operation]:
    """The operations on the way from the input to the output; others make what nobody reads."""
    makers = {operation.makes: operation for operation in graph.operations}
    way, tensor = [], graph.output
    while tensor != graph.source:
        way.append(makers[tensor])
        tensor = makers[tensor].reads
    return way[::-1]


def _input_order(graph: OperationGraph, operations: list[Operation]) -> tuple[Array, Size]:
    """`golden_order` of the input; where it is put into another order first, that of the map which weights read."""
    shape = graph.shapes[graph.source]
    places = np.arange(int(np.prod(shape))).reshape(shape)
    for operation in operations:
        if isinstance(operation, Layout):
            places = places.ravel()[operation.order]
        elif not isinstance(operation, Scaling | Clip | Levels):
            break
    if places.ndim != 4 or not np.array_equal(np.sort(places, axis=None), np.arange(int(np.prod(shape)))):
        return golden_order(shape)
    there, size = golden_order(places.shape)
    order = np.empty(places.size, np.int64)
    order[places.ravel()] = there.ravel()
    return order.reshape(shape), size
