"""The pass from a source graph to operations: constants are computed, every other node is rewritten by its operator."""

from dataclasses import replace

from .constants import Constants
from .errors import ImportRefused, Unsupported, node_line
from .node_view import NodeView
from .operation_graph import OperationGraph
from .operations import Operation
from .operators import OPERATORS
from .operators.registry import DOMAINS
from .quantisers import QUANTISERS
from .source import SourceGraph, SourceNode


def canonical(graph: SourceGraph) -> OperationGraph:
    """Rewrite a source graph into operations.

    Parameters
    ----------
    graph : SourceGraph

    Returns
    -------
    OperationGraph

    Raises
    ------
    ImportRefused
        With a line for each node that can't be rewritten; nodes that read what such a node makes are passed over.
    """
    constants = Constants(values=dict(graph.constants), grids={}, opset=graph.opset)
    shapes = {graph.source.name: graph.source.shape}
    operations: list[Operation] = []
    lines: list[str] = []
    for node in graph.nodes:
        known = [name for name in node.inputs if name in constants.values or name in shapes]
        if len(known) < len([name for name in node.inputs if name]):
            continue  # it reads what an unsupported node would have made
        try:
            operations += _operations_of(node, constants, shapes)
        except Unsupported as e:
            lines.append(node_line(node.name, node.op, e))
    if not lines and graph.output not in shapes:
        lines.append(f"{graph.name or 'the network'}: the output must depend on the input, got a constant")
    if lines:
        raise ImportRefused(lines)
    made = OperationGraph(
        name=graph.name, source=graph.source.name, output=graph.output, operations=tuple(operations), shapes=shapes
    )
    made.check()
    return made


def _operations_of(node: SourceNode, constants: Constants, shapes: dict[str, tuple[int, ...]]) -> list[Operation]:
    """The operations of a node, with its constants and shapes noted; none if the node is a constant itself."""
    if node.op == "Shape" and node.inputs and node.inputs[0] in shapes:
        import numpy as np

        constants.values[node.outputs[0]] = np.array(shapes[node.inputs[0]], np.int64)
        return []
    if constants.can_fold(node) and (node.inputs or node.op == "Constant"):
        constants.fold(node)
        return []
    rewrite = OPERATORS.get(node.op)
    if rewrite is None or node.domain not in DOMAINS:
        domain = f" of {node.domain}" if node.domain else ""
        raise Unsupported(f"the operator{domain} is none of {', '.join(sorted({*OPERATORS, *QUANTISERS}))}")
    view = NodeView(node, constants, shapes)
    rewrite(view)
    last = view.operations[-1]
    shapes[node.outputs[0]] = shapes.pop(last.makes)
    return [*view.operations[:-1], replace(last, makes=node.outputs[0])]
