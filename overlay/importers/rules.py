"""Exact rewritings of operations, in front of the pass that makes sections of them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import prod
from typing import TypeGuard

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.rewrite import Inexact, rewrite

from .budget import take
from .curves import Curve, uniform_curve
from .operations import (
    Closing,
    Concatenation,
    Elementwise,
    Function,
    Join,
    Layout,
    Levels,
    Linear,
    Operation,
    OperationGraph,
    Pooling,
    Product,
    Reduction,
    Sum,
)

CHECK_STEPS = 16
"""Steps to compute a value twice, before and after a rewriting."""


def simplified(graph: OperationGraph) -> OperationGraph:
    """The graph as the rules below leave it."""
    return rewrite(graph, RULES, check_same)


def unread_operations_go(graph: OperationGraph) -> OperationGraph | None:
    """Remove operations that no output depends on."""
    wanted = {*graph.outputs}
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
        while _is_max_pool(pool) and place + 1 < len(order) and order[place + 1].keeps_largest:
            order[place], order[place + 1] = order[place + 1], pool
            place += 1
    return None if order == way else _in_order(graph, way, order)


def _is_max_pool(operation: Operation) -> bool:
    if isinstance(operation, Reduction):
        return not operation.average and 1 not in operation.axes  # axis 1 may be that of the channels
    return isinstance(operation, Pooling) and not operation.average


def _way_of_input(graph: OperationGraph) -> list[Operation]:
    """The operations in front of the first weights, as far as each tensor has one reader and is no output."""
    readers: dict[str, list[Operation]] = {}
    for operation in graph.operations:
        for name in operation.reads:
            readers.setdefault(name, []).append(operation)
    here = graph.source
    way = list[Operation]()
    while len(readers.get(here, [])) == 1 and here not in graph.outputs:
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


def functions_of_one_tensor_become_one(graph: OperationGraph) -> OperationGraph | None:
    """Where two functions of one tensor's values are multiplied, or a curve's is added, the result is a function of
    that tensor: x * sigmoid(x) is one curve."""
    makers = {operation.makes: operation for operation in graph.operations}
    for join in graph.operations:
        if not isinstance(join, Product | Sum):
            continue
        ways = [_functions_back(makers, name) for name in join.reads]
        first, second = ([way[0].reads[0] if way else name for way in each] for each, name in zip(ways, join.reads))
        common = next((tensor for tensor in first if tensor in second), None)
        if common is None:
            continue
        functions = [each[tensors.index(common)] for each, tensors in zip(ways, (first, second))]
        name = _curve_name(functions)
        if isinstance(join, Sum) and not name:
            continue
        link = _together(name or join.op, join, functions)
        become = Elementwise(name=join.name, op=join.op, reads=(common,), makes=join.makes, link=link)
        operations = tuple(become if operation is join else operation for operation in graph.operations)
        return replace(graph, operations=operations)
    return None


def _functions_back(makers: Mapping[str, Operation], tensor: str) -> list[list[Function]]:
    """The functions of each value that make a tensor of tensors before it, from the tensor itself, without any, as far
    back as they go."""
    ways: list[list[Function]] = [[]]
    while _is_function(operation := makers.get(tensor)):
        ways.append([operation, *ways[-1]])
        (tensor,) = operation.reads
    return ways


def _is_function(operation: Operation | None) -> TypeGuard[Function]:
    """Whether an operation is one function for all values of its tensor."""
    return isinstance(operation, Function) and operation.is_uniform


def _curve_name(functions: Sequence[Sequence[Function]]) -> str:
    """What messages call the first curve among functions; empty if there is none."""
    links = [operation.link for way in functions for operation in way if isinstance(operation, Elementwise)]
    return next((link.name for link in links if link.looked_up), "")


def _together(name: str, join: Product | Sum, functions: Sequence[Sequence[Function]]) -> Curve:
    """The curve of two functions that are joined."""

    def of(x: Fraction) -> Fraction:
        first, second = (reduce(lambda value, function: function.value(value), way, x) for way in functions)
        if isinstance(join, Product):
            return first * second
        if join.table is None:
            return first + second
        return Fraction(float(join.run(*(np.array(float(value)) for value in (first, second)))))

    def run(x: Array) -> Array:
        return join.run(*(reduce(lambda values, operation: operation.run(values), way, x) for way in functions))

    return uniform_curve(name, of, run)


def functions_come_before_a_last_concatenation(graph: OperationGraph) -> OperationGraph | None:
    """A function of each value behind a concatenation at the network's end is one of each tensor in front, so that the
    host finds nothing but maps to put side by side."""
    readers: dict[str, list[Operation]] = {}
    for operation in graph.operations:
        for name in operation.reads:
            readers.setdefault(name, []).append(operation)
    for place, join in enumerate(graph.operations):
        if not isinstance(join, Concatenation) or not _ends(graph, join.makes, readers):
            continue
        before: Operation = join
        behind = next(iter(readers.get(join.makes, [])), None)
        while isinstance(behind, Layout):
            before = behind
            behind = next(iter(readers.get(before.makes, [])), None)
        if not _is_function(behind):
            continue
        shapes = dict(graph.shapes)
        names = list[str]()
        for number, name in enumerate(join.reads):
            names.append(f"{behind.makes}, part {number} of {join.makes}")
            shapes[names[-1]] = shapes[name]
        parts = [replace(behind.anywhere, reads=(read,), makes=name) for read, name in zip(join.reads, names)]
        kept = [replace(join, reads=tuple(names)), *graph.operations[place + 1 :]]
        turned = [
            replace(operation, makes=behind.makes) if operation.makes == before.makes else operation
            for operation in kept
            if operation is not behind
        ]
        return replace(graph, operations=(*graph.operations[:place], *parts, *turned), shapes=shapes)
    return None


def _ends(graph: OperationGraph, tensor: str, readers: Mapping[str, Sequence[Operation]]) -> bool:
    """Whether a tensor becomes an output by functions of each value, other orders of values, and what the host does."""
    while tensor not in graph.outputs:
        if len(readers.get(tensor, [])) != 1:
            return False
        (operation,) = readers[tensor]
        whole = isinstance(operation, Layout) and operation.order.size == prod(graph.shapes[tensor])
        if not (whole or isinstance(operation, Closing) or _is_function(operation)):
            return False
        tensor = operation.makes
    return tensor not in readers


RULES = (
    unread_operations_go,
    functions_of_one_tensor_become_one,
    pools_of_the_input_come_last,
    functions_come_before_a_last_concatenation,
)


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
    between = _between(after, kept, come, gone)
    gone, come = (
        [operation for operation in graph.operations if id(operation) in between or operation in part]
        for graph, part in ((before, gone), (after, come))
    )
    changed = {operation.makes for operation in gone}
    read = {name for operation in after.operations if id(operation) in kept for name in operation.reads}
    ends = changed & {*read, *after.outputs}
    made = changed | {operation.makes for operation in come}
    inputs = {name for operation in (*gone, *come) for name in operation.reads} - made
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


def _between(
    graph: OperationGraph, kept: Collection[int], come: Sequence[Operation], gone: Sequence[Operation]
) -> set[int]:
    """Ids of those among operations that a step has kept that lie behind tensors which new operations read, and in
    front of tensors which those that are gone read."""
    behind = {name for operation in come for name in operation.reads}
    ids = list[int]()
    for operation in graph.operations:
        if id(operation) in kept and not behind.isdisjoint(operation.reads):
            behind.add(operation.makes)
            ids.append(id(operation))
    front = {name for operation in gone for name in operation.reads}
    between = set[int]()
    for operation in reversed(graph.operations):
        if id(operation) in ids and operation.makes in front:
            front.update(operation.reads)
            between.add(id(operation))
    return between


def _span(operations: list[Operation]) -> tuple[float, float]:
    """From where to where the values lie that tell the operations' results apart."""
    numbers = [0.0]
    for operation in operations:
        if isinstance(operation, Levels):
            numbers += operation.limits.ravel().tolist()
        if isinstance(operation, Elementwise):
            numbers += map(float, operation.link.bends_at)
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
