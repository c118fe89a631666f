"""Activations that exporters write as several nodes: which node belongs to which, so that messages can name them."""

from collections.abc import Iterator

from .source import SourceGraph, SourceNode

INNER = {
    "Sigmoid": "SiLU",
    "HardSigmoid": "HardSwish",
    "Erf": "GELU",
    "Pow": "GELU",
    "Tanh": "GELU",
    "Softplus": "Mish",
}
"""Operator of the node within -> the activation, if what the node makes is multiplied by what it was made of."""
ELEMENTWISE = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Neg",
    "Clip",
    "Cast",
    "Identity",
    *INNER,
    "QuantizeLinear",
    "DequantizeLinear",
)
"""Operators that may lie between an activation's input and the product at its end."""
MOST_STEPS = 12
"""Nodes between the two at most."""


def inner_activations(graph: SourceGraph) -> dict[str, str]:
    """The nodes within an activation that several nodes make: name of the node -> name of the activation.

    Parameters
    ----------
    graph : SourceGraph

    Returns
    -------
    dict of str to str
        An Erf whose result, scaled, is multiplied by what the Erf reads is a GELU.
    """
    makers = {name: node for node in graph.nodes for name in node.outputs if name}
    readers: dict[str, list[SourceNode]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    found = {}
    for node in graph.nodes:
        if node.op in INNER and node.inputs:
            sources = {node.inputs[0], *_before(node.inputs[0], makers)}
            if any(sources & set(product.inputs) for product in _products(node, readers)):
                found[node.name] = INNER[node.op]
    return found


def _before(tensor: str, makers: dict[str, SourceNode]) -> Iterator[str]:
    """Tensors that a tensor is made of by elementwise nodes, the nearest first."""
    waiting, seen = [tensor], {tensor}
    for _ in range(MOST_STEPS):
        node = makers.get(waiting.pop(0)) if waiting else None
        if node is not None and node.op in ELEMENTWISE:
            names = [name for name in node.inputs if name and name not in seen]
            yield from names
            seen.update(names)
            waiting += names


def _products(node: SourceNode, readers: dict[str, list[SourceNode]]) -> Iterator[SourceNode]:
    """The first products behind a node, with elementwise nodes at most in between."""
    here = node
    for _ in range(MOST_STEPS):
        following = readers.get(here.outputs[0], [])
        if len(following) != 1 or following[0].op not in ELEMENTWISE:
            return
        here = following[0]
        if here.op == "Mul":
            yield here
