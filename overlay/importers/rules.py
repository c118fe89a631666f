"""Exact rewritings of operations, in front of the pass that makes sections of them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.rewrite import Inexact, rewrite

from .budget import take
from .operations import Elementwise, Join, Levels, Linear, Operation, OperationGraph, Pooling, Reduction
from .rationals import floats

CHECK_STEPS = 16
"""Steps to compute a value twice, before and after a rewriting."""


def simplified(graph: OperationGraph) -> OperationGraph:
    """The graph as the rules below leave it."""
    return rewrite(graph, RULES, check_same)


def unread_operations_go(graph: OperationGraph) -> OperationGraph | None:
    """Remove operations that the output doesn't depend on."""
    wanted = {graph.output}
    left = list[Operation]()
    for operation in reversed(graph.operations):
        if operation.makes in wanted:
            left.append(operation)
            wanted.update(operation.reads)
    if len(left) == len(graph.operations):
        return None
    return replace(graph, operations=tuple(reversed(left)))


def pools_of_the_input_come_last(graph: OperationGraph) -> OperationGraph | None:
    """Move max pools of the input behind operations that rise in every channel, such as the input's quantiser.

    The largest value has the largest level, so the result is the same.
    """
    way = _way_of_input(graph)
    order = list(way)
    for begin in reversed(range(len(order))):
        pool = order[begin]
        place = begin
        while _is_max_pool(pool) and place + 1 < len(order) and order[place + 1].rises:
            order[place], order[place + 1] = order[place + 1], pool
            place += 1
    return None if order == way else _in_order(graph, way, order)


def _is_max_pool(operation: Operation) -> bool:
    if isinstance(operation, Reduction):
        return not operation.average and 1 not in operation.axes  # axis 1 may be that of the channels
    return isinstance(operation, Pooling) and not operation.average


def _way_of_input(graph: OperationGraph) -> list[Operation]:
    """The operations in front of the first weights, as far as each tensor has one reader."""
    readers: dict[str, list[Operation]] = {}
    for operation in graph.operations:
        for name in operation.reads:
            readers.setdefault(name, []).append(operation)
    here = graph.source
    way = list[Operation]()
    while len(readers.get(here, [])) == 1:
        (operation,) = readers[here]
        if isinstance(operation, Linear | Join):
            break
        way.append(operation)
        here = operation.makes
    return way


def _in_order(graph: OperationGraph, way: Sequence[Operation], order: Sequence[Operation]) -> OperationGraph:
    """The graph with operations that read each other's tensors, ``way``, in another order."""
    turned = dict[int, Operation]()
    shapes = dict(graph.shapes)
    tensor = graph.source
    for before, operation in zip(way, order):
        turned[id(before)] = replace(operation, reads=(tensor,), makes=before.makes)
        shapes[before.makes] = operation.shape(shapes[tensor])
        tensor = before.makes
    operations = tuple(turned.get(id(operation), operation) for operation in graph.operations)
    return replace(graph, operations=operations, shapes=shapes)


RULES = (unread_operations_go, pools_of_the_input_come_last)


def check_same(before: OperationGraph, after: OperationGraph) -> None:
    """Raise Inexact unless the operations that a step removed and added give the same for random tensors.

    Both are computed in float64, on values around all boundaries and ends.
    """
    try:
        after.check()
    except ValueError as e:
        raise Inexact(str(e)) from None
    kept = {id(operation) for operation in before.operations} & {id(operation) for operation in after.operations}
    gone = [operation for operation in before.operations if id(operation) not in kept]
    come = [operation for operation in after.operations if id(operation) not in kept]
    changed = {operation.makes for operation in gone}
    read = {name for operation in after.operations if id(operation) in kept for name in operation.reads}
    ends = changed & {*read, after.output}
    inputs = {name for operation in gone for name in operation.reads} - changed
    values = sum(prod(before.shapes[name]) for name in inputs) + sum(prod(before.shapes[name]) for name in changed)
    take(steps=CHECK_STEPS * values)
    rng = np.random.default_rng(len(before.operations))
    low, high = _span(gone)
    tensors = {name: rng.uniform(low, high, before.shapes[name]) for name in sorted(inputs)}
    wanted = _computed(gone, tensors, ends)
    got = _computed(come, tensors, ends)
    for name in sorted(ends):
        room = 1e-9 * max(1.0, float(np.abs(wanted[name]).max(initial=0)))
        if wanted[name].shape != got[name].shape or (np.abs(wanted[name] - got[name]) > room).any():
            raise Inexact(f"{name} must stay the same")


def _span(operations: list[Operation]) -> tuple[float, float]:
    """From where to where the values lie that tell the operations' results apart."""
    numbers = [0.0]
    for operation in operations:
        if isinstance(operation, Levels):
            numbers += floats(operation.boundaries).ravel().tolist()
        if isinstance(operation, Elementwise):
            numbers += [float(x) for x, _ in operation.bend.corners]
    return min(numbers) - 1, max(numbers) + 1


def _computed(operations: list[Operation], tensors: Mapping[str, Array], ends: Collection[str]) -> dict[str, Array]:
    """The tensors ``ends`` that operations make of others; other tensors are dropped once they were read."""
    values = dict(tensors)
    left = Counter(name for operation in operations for name in operation.reads)
    for operation in operations:
        values[operation.makes] = operation.run(*(values[name] for name in operation.reads))
        left.subtract(operation.reads)
        for name in operation.reads:
            if not left[name] and name not in ends:
                values.pop(name, None)
    return values
