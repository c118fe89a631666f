"""Operators that put values into another shape or order."""

import numpy as np

from bitloom.overlay.importers.constants import run_node
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView

from .registry import operator


@operator("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
def layout(node: NodeView) -> None:
    """Whatever the operator does, done to the places of the values."""
    node.only_map(0)
    inputs = [node.places(), *(node.optional(place) for place in range(1, len(node.node.inputs)))]
    node.layout(_with_image(run_node(node.node, inputs, node.opset)[0], node.node.op))


def _with_image(order, op):  # type: ignore[no-untyped-def]
    """An order with the one image in front; what lost that axis gets it back."""
    if order.ndim == 0 or (order.shape[0] != 1 and order.ndim > 1):
        raise Unsupported(f"the number of images must stay the first axis, got shape {order.shape}")
    return order.reshape(1, -1) if order.ndim == 1 else np.asarray(order)
