"""Looks ahead on a branch: where a step of the walk depends on the operations that will read its tensor.

Each function gets the operations behind the step, in their order.
"""

from collections.abc import Sequence

from .links import Line
from .map_view import MapView
from .operations import AxesReduction, Elementwise, Function, Layout, Levels, Linear, Operation, Padding, Pooling


def pads_elsewhere(operations: Sequence[Operation]) -> bool:
    """Whether the next weights have padding, which is worth 0, of a map that is worth something else at 0."""
    for operation in operations:
        if isinstance(operation, Elementwise) and isinstance(operation.link, Line) and any(operation.link.add.flat):
            return _pads(operations)
        if operation.makes_map:
            break
    return False


def _pads(operations: Sequence[Operation]) -> bool:
    """Whether the first weights have padding, their own or one before them."""
    for operation in operations:
        if isinstance(operation, Padding):
            return True
        if isinstance(operation, Linear):
            return operation.window is not None and any(operation.window.padding)
    return False


def pools_again(operations: Sequence[Operation]) -> bool:
    """Whether a pool of the same map follows; a mean is the last one of a map."""
    for operation in operations:
        if operation.reads_map or operation.makes_map:
            return isinstance(operation, Pooling | AxesReduction)
    return False


def differs_by_channel(operations: Sequence[Operation], view: MapView) -> bool:
    """Whether behind a tensor a quantiser comes before weights and means, and the quantiser, or a line before the
    quantiser, is a channel's own.

    Max pools that come before it are taken first, because only there a channel may still fall.
    """
    differs = bent = False
    for operation in operations:
        if isinstance(operation, Layout):
            before, view = view, view.laid_out(operation)
            if view.index.size < before.index.size or view.is_in_blocks:
                break  # what is cut, or in blocks, is copied anyway
        if isinstance(operation, Padding):
            view = view.around(operation)
        if isinstance(operation, Elementwise) and operation.link.looked_up:
            break  # a table has what follows
        if isinstance(operation, Function):
            if not view.gives_one_each(operation):
                break  # what comes again with another number is copied anyway
            differs = differs or not operation.is_uniform
        if isinstance(operation, Levels):
            return differs
        if isinstance(operation, Pooling | AxesReduction) and not differs and not bent:
            break
        bent = bent or (isinstance(operation, Elementwise) and not isinstance(operation.link, Line))
        if isinstance(operation, Linear) or (isinstance(operation, Pooling | AxesReduction) and operation.average):
            break
    return False
