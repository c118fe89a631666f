"""How the input of a network lies in map 0, which the accelerator reads."""

from collections.abc import Sequence
from math import prod

import numpy as np

from bitloom.golden.encoding import Array

from .branches import Branch
from .errors import ImportRefused, Unsupported
from .indexes import Grown
from .map_view import MapView
from .operations import Function, Layout, Operation, OperationGraph
from .sections import MapSize, in_order
from .source import MOST_CHANNELS, Shape


def input_view(graph: OperationGraph, branch: Branch) -> MapView:
    """The input, at which a branch begins, as map 0: in the order of `_golden_order`, or if layouts come first, of
    the map that the weights read, as far as that is one map that grows."""
    index, size = _input_order(
        graph, [*branch.operations, *_behind(graph, branch.makes if branch.operations else graph.source)]
    )
    if size[2] > MOST_CHANNELS:
        raise ImportRefused([f"the input must have at most {MOST_CHANNELS:,} channels, got {size[2]:,}"])
    return MapView(index=index, size=size, channels_last=graph.channels_last)


def _input_order(graph: OperationGraph, operations: Sequence[Operation]) -> tuple[Array, MapSize]:
    """The place of each value of the input in map 0, and the map's size; operations come behind it."""
    shape = graph.shapes[graph.source]
    places = tensor = np.arange(prod(shape)).reshape(shape)
    turned = cut = False
    for operation in operations:
        if isinstance(operation, Layout):
            if cut:
                if tensor.ndim == 3 and _gives_a_row(operation):
                    places = tensor[:, :, None]
                break
            cut = operation.order.size < tensor.size
            if cut:
                continue
            tensor = tensor.ravel()[operation.order]
            try:
                places = Grown.of(tensor).index if tensor.size > prod(shape) else tensor
            except Unsupported:
                break
            turned = True
        elif not isinstance(operation, Function):
            break
    if graph.channels_last and not turned and len(shape) <= 4:
        rows, columns = (1, 1, *shape[1:-1])[-2:]
        return places, (rows, columns, shape[-1])
    if places.ndim != 4 or not np.array_equal(np.sort(places, axis=None), np.arange(prod(shape))):
        return _golden_order(shape)
    there, size = _golden_order(places.shape)
    order = np.empty(places.size, np.int64)
    order[places.ravel()] = there.ravel()
    return order.reshape(shape), size


def _golden_order(shape: Shape) -> tuple[Array, MapSize]:
    """The place of each value of a tensor (1, channels, rows, columns), (1, rows, columns) or (1, values) in golden's
    map, and the map's size."""
    if len(shape) == 4:
        _, channels, rows, columns = shape
        return in_order((rows, columns, channels)), (rows, columns, channels)
    count = prod(shape)
    size = (shape[1], shape[2], 1) if len(shape) == 3 else (1, 1, count)
    return np.arange(count).reshape(shape), size


def _gives_a_row(layout: Layout) -> bool:
    """Whether a map without rows gets one, which leaves its values in their order."""
    order = layout.order
    return order.ndim == 4 and order.shape[2] == 1 and np.array_equal(order.ravel(), np.arange(order.size))


def _behind(graph: OperationGraph, tensor: str) -> list[Operation]:
    """The operations behind a tensor, from each tensor to the first one that reads it, as far as a layout that leaves
    all values."""
    out = list[Operation]()
    while (operation := graph.first_reader(tensor)) is not None:
        out.append(operation)
        tensor = operation.makes
        if isinstance(operation, Layout) and operation.order.size >= prod(graph.shapes[operation.reads[0]]):
            break
    return out
