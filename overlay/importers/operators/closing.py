"""Operators that the host computes at a network's end."""

from collections.abc import Callable
from functools import partial
from math import prod

from bitloom.golden.host.host import CLOSINGS
from bitloom.overlay.importers.activations import ACTIVATIONS, AT_THE_END, OVER_CLASSES
from bitloom.overlay.importers.errors import Unsupported, printable
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Closing

from .elementwise import activate
from .registry import TENSORFLOW, operator
from .tflite import activation_table

FOLLOWED: dict[str, Callable[[NodeView], None]] = {
    **{a.onnx: partial(activate, activation=a) for a in ACTIVATIONS if a.at_the_end and a.function is not None},
    **{a.tflite: activation_table for a in ACTIVATIONS if a.at_the_end and a.function is not None},
}
"""Operators that an NPU computes where others follow, and what rewrites them there."""


@operator(*AT_THE_END, domains=TENSORFLOW, everywhere=True)
@operator(*CLOSINGS, everywhere=True)
def closing(node: NodeView) -> None:
    """An operator at the network's end; TFLite's reader has given those there ONNX's names. An activation of each value
    may be followed by others."""
    if node.following and node.node.op in FOLLOWED:
        FOLLOWED[node.node.op](node)
        return
    if node.following:
        raise Unsupported(f"the host computes it at the network's end alone, and {printable(node.following)} follows")
    node.only_map(0)
    shape = node.shape
    older = node.opset < 13 and node.node.op in OVER_CLASSES  # all axes from this one on are taken as one
    axis = node.axis("axis", 1 if older else 0 if node.node.op == "ArgMax" else -1) % len(shape)
    classes = prod(shape[axis:]) if older else shape[axis]
    apart = 1 if older else prod(shape[axis + 1 :])
    if node.node.op not in FOLLOWED and classes == 1 < prod(shape):
        raise Unsupported(f"it must be over the classes, got axis {axis} of {shape}")
    if node.node.op not in OVER_CLASSES:
        classes = apart = 1
    if node.node.op == "TopK" and not int(node.attribute("largest", 1)):
        raise Unsupported("largest must be 1, got 0")
    if int(node.attribute("select_last_index", 0)):
        raise Unsupported("select_last_index must be 0, got 1", "of equal scores the first one is the class")
    node.append(Closing, classes=classes, apart=apart)
