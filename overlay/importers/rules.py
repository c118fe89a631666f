"""Exact rewritings of operations, in front of the pass that makes sections of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import prod
from typing import TypeGuard

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.links import MOST_LINKS
from bitloom.golden.rewrite import Inexact, rewrite

from .budget import take
from .curves import Curve, Formula, uniform_curve
from .links import Line
from .operations import (
    AxesReduction,
    Closing,
    Concatenation,
    Elementwise,
    Extreme,
    Function,
    Join,
    Layout,
    Levels,
    Linear,
    Operation,
    OperationGraph,
    PairOperation,
    PairTable,
    Pointwise,
    Pooling,
    Sum,
    computed,
)
from .rows import Boundaries

CHECK_STEPS = 16
"""Steps to compute a value twice, before and after a rewriting."""


def simplified(graph: OperationGraph) -> OperationGraph:
    """The graph as the rules below leave it."""
    return rewrite(graph, RULES, check_same)


def unread_operations_go(graph: OperationGraph) -> OperationGraph | None:
    """Remove operations that no output depends on."""
    wanted = {*graph.outputs}
    unread: dict[Operation, list[Operation]] = {}
    for operation in reversed(graph.operations):
        if operation.makes in wanted:
            wanted.update(operation.reads)
        else:
            unread[operation] = []
    return graph.with_others(unread) if unread else None


def pools_of_the_input_come_last(graph: OperationGraph) -> OperationGraph | None:
    """Move max pools of the input behind operations that rise in every channel, such as the input's quantiser.

    The largest value has the largest level, so the result is the same.
    """
    run = _run_from(graph, graph.source)
    order = list(run)
    for begin in reversed(range(len(order))):
        pool = order[begin]
        place = begin
        while _is_max_pool(pool) and place + 1 < len(order) and order[place + 1].keeps_largest:
            order[place], order[place + 1] = order[place + 1], pool
            place += 1
    return None if order == run else _in_order(graph, graph.source, run, order)


def max_pools_of_a_curve_come_last(graph: OperationGraph) -> OperationGraph | None:
    """Move a quantiser in front of the max pools and other orders of values that lie between it and a curve, so that a
    table has both. The largest value has the largest level, so the result is the same, wherever the curve falls."""
    for curve in graph.operations:
        if not isinstance(curve, Elementwise) or not curve.link.looked_up:
            continue
        run = _run_from(graph, curve.makes)
        pools = [place for place, operation in enumerate(run) if _is_max_pool(operation)]
        ends = [place for place, operation in enumerate(run) if isinstance(operation, Levels)]
        if not pools or not ends or ends[0] < pools[0]:
            continue
        part = run[pools[0] : ends[0] + 1]
        moves = [operation for operation in part if _is_max_pool(operation) or isinstance(operation, Layout)]
        functions = [operation for operation in part if _is_function(operation) and operation.keeps_largest]
        if len(moves) + len(functions) == len(part):
            order = [*(operation.anywhere for operation in functions), *moves]
            return _in_order(graph, part[0].reads[0], part, order)
    return None


def _is_max_pool(operation: Operation) -> bool:
    if isinstance(operation, AxesReduction):
        return not operation.average and 1 not in operation.axes  # axis 1 may be that of the channels
    return isinstance(operation, Pooling) and not operation.average


def _run_from(graph: OperationGraph, here: str) -> list[Operation]:
    """The operations behind a tensor and in front of the next weights, as far as each tensor has one reader and is no
    output."""
    run = list[Operation]()
    while len(graph.readers.get(here, ())) == 1 and here not in graph.outputs:
        (operation,) = graph.readers[here]
        if isinstance(operation, Linear | Join):
            break
        run.append(operation)
        here = operation.makes
    return run


def _in_order(
    graph: OperationGraph, tensor: str, run: Sequence[Operation], order: Sequence[Operation]
) -> OperationGraph:
    """The graph with operations behind a ``tensor`` that read each other's tensors, ``run``, in another order."""
    turned: dict[Operation, list[Operation]] = {}
    for before, operation in zip(run, order):
        turned[before] = [replace(operation, reads=(tensor,), makes=before.makes)]
        tensor = before.makes
    return graph.with_others(turned)


def functions_of_one_tensor_become_one(graph: OperationGraph) -> OperationGraph | None:
    """Where functions of one tensor's values are multiplied, compared or combined otherwise, or a curve's is added, the
    result is a function of that tensor: x * sigmoid(x) is one curve."""
    for join in graph.operations:
        if not isinstance(join, Pointwise):
            continue
        ways = [_functions_back(graph, name) for name in join.reads]
        begins = [[way[0].reads[0] if way else name for way in each] for each, name in zip(ways, join.reads)]
        common = next((tensor for tensor in begins[0] if all(tensor in others for others in begins)), None)
        if common is None:
            continue
        functions = [each[tensors.index(common)] for each, tensors in zip(ways, begins)]
        name = _curve_name(functions)
        if isinstance(join, Sum) and not name:
            continue
        link = _together(name or join.op, join, functions)
        curve = join.become(Elementwise, reads=(common,), link=link)
        table = join.table if isinstance(join, PairOperation) else None
        if table is None:
            return graph.with_others({join: [curve]})
        # what it makes is a map, as a quantiser makes it
        return graph.with_others({join: _with_levels(curve, Fraction(table.low), Fraction(1), table.high - table.low)})
    return None


def _with_levels(operation: Operation, lowest: Fraction, step: Fraction, count: int) -> list[Operation]:
    """An operation of one tensor and a quantiser behind it, which rounds to ``count`` values above the lowest one."""
    real = f"{operation.makes}, in front of its quantiser"
    boundaries = Boundaries.halfway(lowest, step, count)
    quantiser = operation.become(Levels, reads=(real,), base=lowest, step=step, boundaries=boundaries)
    return [replace(operation, makes=real), quantiser]


def _functions_back(graph: OperationGraph, tensor: str) -> list[list[Function]]:
    """The functions of each value that make a tensor of tensors before it, from the tensor itself, without any, as far
    back as they go, or as many as a chain may have."""
    ways: list[list[Function]] = [[]]
    while len(ways) <= MOST_LINKS and _is_function(operation := graph.makers.get(tensor)):
        ways.append([operation, *ways[-1]])
        (tensor,) = operation.reads
    return ways


def _is_function(operation: Operation | None) -> TypeGuard[Function]:
    """Whether an operation is one function for all values of its tensor."""
    return isinstance(operation, Function) and operation.is_uniform


def _curve_name(functions: Sequence[Sequence[Function]]) -> str:
    """Name, for messages, of the first curve among functions; "" if there is none."""
    links = [operation.link for way in functions for operation in way if isinstance(operation, Elementwise)]
    return next((link.name for link in links if link.looked_up), "")


def _together(name: str, join: Pointwise, functions: Sequence[Sequence[Function]]) -> Curve:
    """The curve of functions that are joined."""

    def of(x: Fraction) -> Fraction:
        return join.value(*(reduce(lambda value, function: function.value(value), way, x) for way in functions))

    def run(x: Array) -> Array:
        return join.run(*(reduce(lambda values, operation: operation.run(values), way, x) for way in functions))

    return uniform_curve(name, Formula(of, run))


def extremes_of_integers_become_sums(graph: OperationGraph) -> OperationGraph | None:
    """max(x, y) is y + max(x - y, 0), and min(x, y) is x - max(x - y, 0), each two sums."""
    for join in graph.operations:
        if not isinstance(join, Extreme) or join.ends is None:
            continue
        low, high = join.ends
        most = high - low
        first, second = join.reads
        above = f"{join.makes}, how far one is above"
        table = _clipped_sum(range(low, high + 1), range(low, high + 1), -1, 0, most)
        begin, sign = (second, 1) if join.largest else (first, -1)
        moved = _clipped_sum(range(low, high + 1), range(low, most + 1), sign, low, high)
        sums = [join.become(Sum, makes=above, table=table), join.become(Sum, reads=(begin, above), table=moved)]
        return graph.with_others({join: sums})
    return None


def _clipped_sum(first: range, second: range, sign: int, low: int, high: int) -> PairTable:
    """min(max(x + sign * y, low), high) of integers that begin with the same one."""
    values = np.clip(np.array(first)[:, None] + sign * np.array(second), low, high)
    slopes = Fraction(1), Fraction(sign)
    return PairTable(values=values, first=first.start, slopes=slopes, offset=Fraction(0), low=low, high=high)


def functions_come_before_a_last_concatenation(graph: OperationGraph) -> OperationGraph | None:
    """A function of each value behind a concatenation at the network's end is one of each tensor in front, so that the
    host finds nothing but maps to put side by side."""
    for join in graph.operations:
        if not isinstance(join, Concatenation) or not _ends(graph, join.makes):
            continue
        run: list[Operation] = [join]  # the concatenation, and other orders of its values
        while isinstance(behind := graph.first_reader(run[-1].makes), Layout):
            run.append(behind)
        if not _is_function(behind):
            continue
        parts = [
            replace(behind.anywhere, reads=(name,), makes=f"{behind.makes}, part {number} of {join.makes}")
            for number, name in enumerate(join.reads)
        ]
        others: dict[Operation, list[Operation]] = {behind: []}
        reads = tuple(part.makes for part in parts)
        for operation in run:
            makes = behind.makes if operation is run[-1] else f"{behind.makes}, of {operation.makes}"
            others[operation] = [replace(operation, reads=reads, makes=makes)]
            reads = (makes,)
        return graph.with_others({**others, join: [*parts, *others[join]]})
    return None


def _ends(graph: OperationGraph, tensor: str) -> bool:
    """Whether a tensor becomes an output by functions of each value, other orders of values, and what the host does."""
    while tensor not in graph.outputs:
        if len(graph.readers.get(tensor, ())) != 1:
            return False
        (operation,) = graph.readers[tensor]
        whole = isinstance(operation, Layout) and operation.order.size == prod(graph.shapes[tensor])
        if not (whole or isinstance(operation, Closing) or _is_function(operation)):
            return False
        tensor = operation.makes
    return tensor not in graph.readers


def clips_to_values_are_quantised(graph: OperationGraph) -> OperationGraph | None:
    """Where a bend makes values of a quantised map that the map has already, as a clip at 0 does, and none that are
    quantised before a mean, weights or a join read them: a quantiser that leaves them makes them a map."""
    for bend in graph.operations:
        if not isinstance(bend, Elementwise) or isinstance(bend.link, Line) or bend.link.looked_up:
            continue
        chain = next((way for way in _functions_back(graph, bend.makes) if way and isinstance(way[0], Levels)), None)
        if chain is None or _is_quantised_behind(graph, bend.makes):
            continue
        levels, *between, _ = chain
        assert isinstance(levels, Levels)
        values = [levels.base + levels.step * level for level in range(levels.levels + 1)]
        for function in between:
            values = [function.value(value) for value in values]
        results = [bend.value(value) for value in values]
        step = values[1] - values[0]
        even = values == [values[0] + step * level for level in range(len(values))]
        if results == values or not {*results} <= {*values} or step <= 0 or not even:
            continue
        lowest, highest = min(results), max(results)
        count = int((highest - lowest) / step)
        if not count:
            continue
        # All of the chain are new, so that it is computed again as a whole.
        others: dict[Operation, Sequence[Operation]] = {operation: [replace(operation)] for operation in chain}
        return graph.with_others({**others, bend: _with_levels(bend, lowest, step, count)})
    return None


def _is_quantised_behind(graph: OperationGraph, tensor: str) -> bool:
    """Whether the values of a tensor are quantised, or leave, before anything but functions, maxima and other orders
    reads them."""
    while tensor in graph.readers:
        if len(graph.readers[tensor]) > 1 or tensor in graph.outputs:
            return False
        (operation,) = graph.readers[tensor]
        if isinstance(operation, Levels):
            return True
        if not isinstance(operation, Function | Layout | Closing) and not _is_max_pool(operation):
            return False
        tensor = operation.makes
    return True


RULES = (
    unread_operations_go,
    functions_of_one_tensor_become_one,
    extremes_of_integers_become_sums,
    pools_of_the_input_come_last,
    max_pools_of_a_curve_come_last,
    clips_to_values_are_quantised,
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
    kept = {*before.operations} & {*after.operations}
    removed = [operation for operation in before.operations if operation not in kept]
    added = [operation for operation in after.operations if operation not in kept]
    between = _between(after, kept, added, removed)
    removed, added = (
        [operation for operation in graph.operations if operation in between or operation in part]
        for graph, part in ((before, removed), (after, added))
    )
    changed = {operation.makes for operation in removed}
    read = {name for operation in kept for name in operation.reads}
    ends = changed & {*read, *after.outputs}
    tensors_within = changed | {operation.makes for operation in added}
    inputs = {name for operation in (*removed, *added) for name in operation.reads} - tensors_within
    values = sum(prod(before.shapes[name]) for name in (*inputs, *changed))
    take(steps=CHECK_STEPS * values)
    rng = np.random.default_rng(len(before.operations))
    low, high = _span(removed)
    tensors = {name: rng.uniform(low, high, before.shapes[name]) for name in sorted(inputs)}
    wanted = _computed(removed, tensors, ends)
    got = _computed(added, tensors, ends)
    for name in sorted(ends):
        room = 1e-9 * max(1.0, float(np.abs(wanted[name]).max(initial=0)))
        if wanted[name].shape != got[name].shape or (np.abs(wanted[name] - got[name]) > room).any():
            raise Inexact(f"{name} must stay the same")


def _between(
    graph: OperationGraph, kept: Collection[Operation], added: Sequence[Operation], removed: Sequence[Operation]
) -> set[Operation]:
    """Those among operations that a step has kept that lie behind tensors which the added operations read, and in front
    of tensors which the removed ones read."""
    behind = {name for operation in added for name in operation.reads}
    candidates = list[Operation]()
    for operation in graph.operations:
        if operation in kept and not behind.isdisjoint(operation.reads):
            behind.add(operation.makes)
            candidates.append(operation)
    front = {name for operation in removed for name in operation.reads}
    between = set[Operation]()
    for operation in reversed(candidates):
        if operation.makes in front:
            front.update(operation.reads)
            between.add(operation)
    return between


def _span(operations: list[Operation]) -> tuple[float, float]:
    """From where to where the values lie that tell the operations' results apart."""
    numbers = [0.0]
    for operation in operations:
        if isinstance(operation, Levels):
            numbers += operation.boundaries.in_floats.limits.ravel().tolist()
        if isinstance(operation, Elementwise):
            numbers += map(float, operation.link.bends_at)
    return min(numbers) - 1, max(numbers) + 1


def _computed(operations: list[Operation], tensors: Mapping[str, Array], ends: Collection[str]) -> dict[str, Array]:
    """The tensors ``ends`` that operations make of others."""
    values = computed(operations, tensors, lambda operation, inputs: operation.run(*inputs))
    return {name: value for name, value in values if name in ends}
