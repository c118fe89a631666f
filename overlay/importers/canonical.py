"""The pass from a source graph to operations: constants are computed, every other node is rewritten by its operator."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from bitloom.overlay.importers.operators.registry import INSTEAD

from .budget import OverBudget
from .constants import FOLDED, can_fold, fold
from .errors import ImportRefused, Unsupported, merged_lines, printable
from .node_view import NodeView
from .operations import LEFT, Closing, Operation, OperationGraph
from .operators import OPERATORS, closing, layout
from .source import MOST_AXES, TFLITE, SourceGraph, SourceNode
from .tensors import Tensors
from .tflite_shapes import MOVERS


def canonical(graph: SourceGraph) -> OperationGraph:
    """Rewrite a source graph into operations.

    Raises
    ------
    ImportRefused
        With a line for each node that can't be rewritten. A node that reads the result of such a node, where the file
        doesn't say the result's shape, has a line only if its operator is unknown.
    """
    tensors = Tensors.of(graph)
    operations: list[Operation] = []
    refusals: list[tuple[str, str, object]] = []
    following = _following(graph)
    lost: set[str] = set()  # results of nodes that can't be rewritten
    said: set[str] = set()  # those whose shape the file says
    for node in graph.nodes:
        unknown = [name for name in node.inputs if name and name not in tensors.values and name not in tensors.shapes]
        if not lost.isdisjoint(unknown):
            lost.update(node.outputs)
            may_be_of_shapes = node.op in (*FOLDED, *MOVERS, "Shape")
            if not may_be_of_shapes and (node.domain, node.op) not in OPERATORS:
                refusals.append((node.name, node.op, _not_imported(node)))
            continue
        try:
            if unknown:
                raise Unsupported(f"it reads {printable(unknown[0])}, a second output, which is not computed")
            operations += _operations_of(node, tensors, graph.outputs, following[node.name])
        except OverBudget as e:
            raise ImportRefused(merged_lines([*refusals, (node.name, node.op, e)])) from None
        except (ValueError, ArithmeticError, LookupError, TypeError) as e:
            # A cast behind a node that has a line may be one of integers, which are not known.
            if node.op != "Cast" or said.isdisjoint(node.inputs):
                refusals.append((node.name, node.op, e))
            said.update(node.outputs)
            lost.update(node.outputs[1:])
            if node.outputs[0] in graph.shapes:  # so that those are looked at too that read what it would have made
                tensors.shapes[node.outputs[0]] = graph.shapes[node.outputs[0]]
            else:
                lost.update(node.outputs)
    if len(graph.outputs) > 1:
        rule = f"it must be at the file's one output, got {len(graph.outputs)} outputs; leave it out"
        refusals += [(operation.name, operation.op, rule) for operation in operations if operation.op in LEFT]
    lines = merged_lines(refusals)
    for output in graph.outputs:
        if not lines and output not in tensors.shapes and output not in tensors.values:
            lines.append(f"the output must be a node's first one, got {printable(output)}, which is not computed")
    outputs = tuple(output for output in graph.outputs if output in tensors.shapes)
    if not lines and not outputs:
        lines.append(f"{graph.name or 'the network'}: the output must depend on the input, got a constant")
    if lines:
        raise ImportRefused(lines)
    operation_graph = OperationGraph(
        name=graph.name,
        source=graph.source.name,
        outputs=outputs,
        constants={name: tensors.values[name] for name in graph.outputs if name not in outputs},
        operations=tuple(operations),
        shapes=tensors.shapes,
        channels_last=any(node.domain == TFLITE for node in graph.nodes),
    )
    operation_graph.check()
    return operation_graph


def _operations_of(node: SourceNode, tensors: Tensors, outputs: Collection[str], following: str) -> list[Operation]:
    """The operations of a node, with what it makes noted among the tensors; none if the node is a constant itself."""
    if node.op == "Shape" and node.inputs and node.inputs[0] in tensors.shapes:
        ends = (node.attributes.get(key, default) for key, default in (("start", 0), ("end", MOST_AXES)))
        shape = tensors.shapes[node.inputs[0]][node.inputs[0] in tensors.imageless :]
        tensors.values[node.outputs[0]] = np.array(shape, np.int64)[slice(*ends)]
        return []
    if can_fold(node, tensors):
        fold(node, tensors)
        return []
    operator = OPERATORS.get((node.domain, node.op))
    if operator is None:
        raise _not_imported(node)
    view = NodeView(node, tensors, following)
    view.check_images(operator.everywhere)
    operator.rewrite(view)
    view.check_type()
    last = view.operations[-1]
    asked = (name for name in node.outputs if isinstance(last, Closing) and name in outputs)
    result = next(asked, node.outputs[0])
    tensors.change_name(last.makes, result)
    if view.makes_type is not None:
        tensors.types[result] = view.makes_type
    if view.makes_imageless:
        tensors.imageless.add(result)
    return [*view.operations[:-1], replace(last, makes=result)]


def _following(graph: SourceGraph) -> dict[str, str]:
    """For each node, the first node behind it that the host can't compute at the network's end; "" if there is none."""
    following = {}
    readers: dict[str, str] = {}
    for node in reversed(graph.nodes):
        name = next((readers[tensor] for tensor in node.outputs if tensor in readers), "")
        following[node.name] = name
        operator = OPERATORS.get((node.domain, node.op))
        if operator is None or operator.rewrite not in (closing.closing, layout.layout):
            name = node.name
        if name and node.op != "Shape":
            readers.update(dict.fromkeys(node.inputs, name))
    return following


def _not_imported(node: SourceNode) -> Unsupported:
    """Why a node with an unknown operator can't be imported."""
    domain = f" of {'TFLite' if node.domain == TFLITE else printable(node.domain)}" if node.domain else ""
    return Unsupported(f"this operator{domain} is not imported", INSTEAD.get(node.op, ""))
