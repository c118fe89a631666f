"""Operators that put values into another shape or order."""

from fractions import Fraction

import numpy as np

from bitloom.overlay.importers.constants import run_node
from bitloom.overlay.importers.errors import TAKEN_APART, Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Padding
from bitloom.overlay.importers.rationals import fractions

from .registry import operator, refused

refused("Split", "Slice", "Gather", instead=TAKEN_APART)


@operator("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
def layout(node: NodeView) -> None:
    """Run the operator on the numbers of the values, which gives their new order."""
    node.only_map(0)
    inputs = [node.places(), *(node.optional(place) for place in range(1, len(node.node.inputs)))]
    node.layout(_with_image(run_node(node.node, inputs, node.opset)[0]))


@operator("Pad")
def pad(node: NodeView) -> None:
    """Values around a map: widths and value are attributes in older files."""
    node.only_map(0)
    mode = str(node.attribute("mode", "constant"))
    if mode != "constant":
        raise Unsupported(f"mode must be constant, got {mode[:40]}")
    rank = len(node.shape)
    given = node.optional(1)
    number = node.optional(2)
    some = node.optional(3)
    pads = node.attribute("pads", ()) if given is None else tuple(int(v) for v in given.ravel())
    value = Fraction(float(node.attribute("value", 0.0))) if number is None else fractions(number).ravel()[0]
    axes = range(rank) if some is None else [int(axis) % rank for axis in some.ravel()]
    if len(pads) != 2 * len(axes) or not all(0 <= v <= 4096 for v in pads):
        raise Unsupported(f"pads must be {2 * len(axes)} integers of 0..4096, got {pads}")
    widths = dict(zip(axes, zip(pads[: len(axes)], pads[len(axes) :])))
    if any(widths.get(0, (0, 0))):
        raise Unsupported("the number of images must not be padded")
    node.append(Padding, widths=tuple(widths.get(axis, (0, 0)) for axis in range(rank)), value=value)


def _with_image(order):  # type: ignore[no-untyped-def]
    """An order with the axis of the one image in front, added again if the operator took it off."""
    if order.ndim == 0 or (order.shape[0] != 1 and order.ndim > 1):
        raise Unsupported(f"the number of images must stay the first axis, got shape {order.shape}")
    return order.reshape(1, -1) if order.ndim == 1 else np.asarray(order)
