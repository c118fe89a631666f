"""The pass from a source graph to operations: constants are computed, every other node is rewritten by its operator."""

from dataclasses import replace

import numpy as np

from .constants import FOLDED, Constants
from .errors import ImportRefused, Unsupported, node_line, printable
from .node_view import NodeView
from .operation_graph import OperationGraph
from .operations import Closing, Operation
from .operators import OPERATORS
from .operators.registry import INSTEAD
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
        With a line for each node that can't be rewritten. Of nodes that read what such a node makes, in a shape that
        the file doesn't say, only operators that nobody knows have one.
    """
    constants = Constants(values=dict(graph.constants), grids={}, opset=graph.opset)
    shapes = {graph.source.name: graph.source.shape}
    operations: list[Operation] = []
    lines: list[str] = []
    lost: set[str] = set()  # what nodes that can't be rewritten would have made
    said: set[str] = set()  # the same, where the file says the shape
    for node in graph.nodes:
        unknown = [name for name in node.inputs if name and name not in constants.values and name not in shapes]
        if not lost.isdisjoint(unknown):
            lost.update(node.outputs)
            if (node.domain, node.op) not in OPERATORS and node.op not in (*FOLDED, "Shape"):  # these may be of shapes
                lines.append(node_line(node.name, node.op, _not_imported(node)))
            continue
        try:
            if unknown:
                raise Unsupported(f"it reads {printable(unknown[0])}, a second output, which is not computed")
            operations += _operations_of(node, constants, shapes, graph.output)
        except (ValueError, ArithmeticError, LookupError, TypeError) as e:
            if node.op != "Cast" or said.isdisjoint(node.inputs):  # else it may be one of integers, which are not known
                lines.append(node_line(node.name, node.op, e))
            said.update(node.outputs)
            if node.outputs[0] in graph.shapes:  # so that those are looked at too that read what it would have made
                shapes[node.outputs[0]] = graph.shapes[node.outputs[0]]
            else:
                lost.update(node.outputs)
    if not lines and graph.output not in shapes:
        lines.append(f"{graph.name or 'the network'}: the output must depend on the input, got a constant")
    if lines:
        raise ImportRefused(lines)
    made = OperationGraph(
        name=graph.name, source=graph.source.name, output=graph.output, operations=tuple(operations), shapes=shapes
    )
    made.check()
    return made


def _operations_of(
    node: SourceNode, constants: Constants, shapes: dict[str, tuple[int, ...]], output: str
) -> list[Operation]:
    """The operations of a node, with its constants and shapes noted; none if the node is a constant itself."""
    if node.op == "Shape" and node.inputs and node.inputs[0] in shapes:
        constants.values[node.outputs[0]] = np.array(shapes[node.inputs[0]], np.int64)
        return []
    if constants.can_fold(node) and (node.inputs or node.op == "Constant"):
        constants.fold(node)
        return []
    rewrite = OPERATORS.get((node.domain, node.op))
    if rewrite is None:
        raise _not_imported(node)
    view = NodeView(node, constants, shapes)
    rewrite(view)
    last = view.operations[-1]
    made = output if isinstance(last, Closing) and output in node.outputs else node.outputs[0]
    shapes[made] = shapes.pop(last.makes)
    return [*view.operations[:-1], replace(last, makes=made)]


def _not_imported(node: SourceNode) -> Unsupported:
    """Why a node with an operator that nobody knows can't be imported."""
    domain = f" of {printable(node.domain)}" if node.domain else ""
    return Unsupported(f"this operator{domain} is not imported", INSTEAD.get(node.op, ""))
