"""Scores: what a file says of them at a network's end is left to the host, which computes functions of all classes.

Tools write such a function of integers, and integers behind it. Host's scores are real numbers: so the function reads
those that its integers stand for, and operators behind it that change only how scores are written go.

    sums --Softmax of integers--> integers --DequantizeLinear-->    becomes    sums --DequantizeLinear--> --Softmax-->
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from .activations import AT_THE_END, OVER_CLASSES
from .source import STANDARD, TFLITE, SourceGraph, SourceNode

CONVERSIONS = {STANDARD: ("QuantizeLinear", "DequantizeLinear"), TFLITE: ("QUANTIZE", "DEQUANTIZE")}
"""By domain, operators that change only how scores are written."""


def with_real_scores(graph: SourceGraph) -> SourceGraph:
    """The graph with functions of real numbers at outputs, and no conversions behind them."""
    for place in range(len(graph.outputs)):
        graph = _with_real_scores(graph, place)
    return graph


def _with_real_scores(graph: SourceGraph, place: int) -> SourceGraph:
    """The graph for one of its outputs: as it is, unless only conversions, and in TFLite's files other shapes, follow
    the function, and nothing else reads any of these tensors."""
    output = graph.outputs[place]
    makers = {name: node for node in graph.nodes for name in node.outputs}
    readers = Counter(name for node in graph.nodes if node.op != "Shape" for name in node.inputs)
    readers.update(name for name in graph.outputs if name != output)
    of_tflite = any(node.domain == TFLITE for node in graph.nodes)
    names = {graph.source.name, *graph.constants, *makers}
    written: dict[str, str] = {}  # result of a conversion -> the tensor that it says again
    tensor = output
    while tensor in makers and readers[tensor] == (tensor != output):
        node = makers[tensor]
        closing = _closing(node, names)
        if closing:
            break
        if node.op in CONVERSIONS.get(node.domain, ()):
            written[tensor] = node.inputs[0]
        elif not of_tflite or node.op != "Reshape":
            return graph
        tensor = node.inputs[0]
    else:
        return graph
    if graph.detections is not None and place < 3 and node.op == "LOGISTIC":
        return graph  # what a detector reads has the file's own values, by a table of the network

    def real(name: str) -> str:
        while name in written:
            name = written[name]
        return name

    nodes = list[SourceNode]()
    for each in graph.nodes:
        if each is node:
            nodes += closing
        elif written.keys().isdisjoint(each.outputs):
            nodes.append(replace(each, inputs=tuple(map(real, each.inputs))))
    return replace(graph, nodes=tuple(nodes), outputs=tuple(map(real, graph.outputs)))


def _closing(node: SourceNode, names: Collection[str]) -> list[SourceNode]:
    """A function that the host computes at the end as one of real numbers; nothing if a node is no such function.
    ``names`` are those of all tensors."""
    real = f"{node.outputs[0]}/real"
    while real in names:
        real += "'"
    name = f"{node.name}/real"
    if node.domain == TFLITE and node.op in AT_THE_END:
        beta = np.float32(node.attributes.get("beta", 1.0))
        first = node.attributes["scales"][0]
        attributes = {**node.attributes, "scales": (replace(first, scale=first.scale * beta),)}
        return [
            replace(node, name=name, op="DEQUANTIZE", outputs=(real,), attributes=attributes),
            SourceNode(name=node.name, op=AT_THE_END[node.op], inputs=(real,), outputs=node.outputs),
        ]
    if node.op == "QLinearSoftmax":
        axis = {key: value for key, value in node.attributes.items() if key == "axis"}
        return [
            SourceNode(name=name, op="DequantizeLinear", inputs=node.inputs[:3], outputs=(real,)),
            replace(node, op="Softmax", domain=STANDARD, inputs=(real,), attributes=axis),
        ]
    return [node] if node.op.removeprefix("QLinear") in OVER_CLASSES else []
