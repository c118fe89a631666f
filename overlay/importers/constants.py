"""Constants: nodes whose inputs are all constants are computed, with the operators of ONNX's own reference.

Quantised weights keep their integers, also through nodes that reorder them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.reading.file import reason

from .budget import FOLD_STEPS, VALUE_BYTES, take
from .errors import Unsupported
from .integer_types import element_dtype, is_number
from .quantisers import QUANTISERS, Grid
from .rationals import fractions
from .source import MOST_VALUES, STANDARD, TFLITE, SourceNode
from .tensors import Tensors
from .tflite_shapes import MOVERS, run_constants

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow")
UNARY = ("Neg", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Abs", "Sign", "Exp", "Log", "Cast", "Clip")
SHAPING = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity")
"""These keep a grid: they put values in another order."""
REDUCING = ("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean")
OTHERS = ("Concat", "Gather", "Slice", "Constant", "ConstantOfShape", "Expand", "Range", "Tile", "Equal", "Where")
FOLDED = frozenset(ARITHMETIC + UNARY + SHAPING + REDUCING + OTHERS)
"""Operators that are computed."""


def can_fold(node: SourceNode, tensors: Tensors) -> bool:
    """Whether a node is a constant itself, or all its inputs are constants."""
    return all(name in tensors.values for name in node.inputs if name) and bool(node.inputs or node.op == "Constant")


def fold(node: SourceNode, tensors: Tensors) -> None:
    """Compute a node, whose inputs are constants, and note what it makes.

    Raises
    ------
    Unsupported
        If the operator is none of FOLDED, of TFLite's MOVERS, or of the quantisers, or what it makes is too large.
    """
    inputs = [tensors.values[name] if name else None for name in node.inputs]
    take(steps=FOLD_STEPS * sum(x.size for x in inputs if x is not None))
    quantiser = QUANTISERS.get(node.op)
    if quantiser is not None:
        grid = quantiser(node, inputs)
        standard = node.domain == STANDARD
        values = run_node(node, inputs, tensors.opset)[0] if standard else grid.values.astype(np.float32)
        _keep(tensors, node, values, grid)
        return
    if node.domain == TFLITE and node.op in MOVERS:
        _limit(node, inputs)
        _keep(tensors, node, run_constants(node, inputs), None)
        return
    if node.domain != STANDARD or node.op not in FOLDED:
        raise Unsupported("must be one of the operators that constants can be made with")
    _limit(node, inputs)
    _check_numbers(node)
    if node.op == "Constant" and isinstance(node.attributes.get("value"), np.ndarray):
        value = node.attributes["value"]
    else:
        value = run_node(node, inputs, tensors.opset)[0]
    of_input = tensors.grids.get(node.inputs[0]) if node.op in SHAPING else None
    _keep(tensors, node, value, of_input and _moved_grid(node, of_input, inputs, tensors.opset))


def _keep(tensors: Tensors, node: SourceNode, values: Array, grid: Grid | None) -> None:
    """Note what a node makes."""
    if not is_number(values.dtype):
        raise Unsupported(f"a constant must hold numbers, got {values.dtype}")
    integers = 0 if grid is None else grid.integers.nbytes  # held beside the values
    take(held=VALUE_BYTES * values.size + integers, steps=FOLD_STEPS * values.size)
    tensors.values[node.outputs[0]] = values
    if grid is not None:
        tensors.grids[node.outputs[0]] = grid


def _moved_grid(node: SourceNode, grid: Grid, inputs: Sequence[Array | None], opset: int) -> Grid:
    """The grid after a node that puts values in another order."""
    numbers = np.arange(grid.integers.size).reshape(grid.integers.shape)
    places = run_node(node, [numbers, *inputs[1:]], opset)[0].astype(np.int64)
    return grid.moved(lambda values: values.ravel()[places])


def _limit(node: SourceNode, inputs: Sequence[Array | None]) -> None:
    """Refuse a node whose result would have more than MOST_VALUES values."""
    first = inputs[0] if inputs else None  # Constant has none
    count = 0.0
    if node.op in (*ARITHMETIC, "Equal", "Where"):
        try:
            shape = np.broadcast_shapes(*(x.shape for x in inputs if x is not None))
        except ValueError as e:
            raise Unsupported(reason(e)) from None
        count = float(np.prod([float(size) for size in shape]))
    elif node.op in ("ConstantOfShape", "Expand") and inputs:
        shape_values = inputs[-1]
        size = np.prod(np.abs(np.asarray(shape_values, np.float64)))
        count = float(size) * (first.size if node.op == "Expand" and first is not None else 1)
    elif node.op == "Range" and len(inputs) == 3:
        start, limit, delta = (float(np.asarray(x).ravel()[0]) for x in inputs if x is not None)
        count = abs((limit - start) / delta) if delta else float("inf")
    elif node.op in ("Tile", "TILE") and first is not None and len(inputs) > 1:
        count = first.size * float(np.prod(np.maximum(np.asarray(inputs[1], np.float64), 1)))
    elif node.op == "Concat":
        count = float(sum(x.size for x in inputs if x is not None))
    elif node.op == "Gather" and first is not None and inputs[1] is not None:
        count = float(first.size) * float(inputs[1].size)
    if not count <= MOST_VALUES:
        raise Unsupported(f"a constant must have at most {MOST_VALUES:,} values, got {count:,.0f}")


def _check_numbers(node: SourceNode) -> None:
    """Refuse a cast to what is no number before it is made: a text takes many times the memory of its number."""
    from onnx import TensorProto

    to = node.attributes.get("to", TensorProto.FLOAT) if node.op == "Cast" else TensorProto.FLOAT
    dtype = element_dtype(to)
    if dtype is None or not is_number(dtype):
        raise Unsupported(f"a constant must be cast to a type of numbers, got type {to!r}")


def run_node(node: SourceNode, inputs: Sequence[Array | None], opset: int) -> list[Array]:
    """Compute one of ONNX's own operators by ONNX's reference, which is numpy.

    Parameters
    ----------
    node : SourceNode
    inputs : sequence of array or None
    opset : int

    Returns
    -------
    list of array
        The outputs.

    Raises
    ------
    Unsupported
        If the reference refuses: the node is not as ONNX says.
    """
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    if node.op == "Split" and "part" in node.attributes:  # see nodes_of_parts
        number, count = node.attributes["part"]
        kept = {key: value for key, value in node.attributes.items() if key != "part"}
        return [run_node(replace(node, outputs=node.outputs * count, attributes=kept), inputs, opset)[number]]
    if node.op in ("QuantizeLinear", "DequantizeLinear"):
        opset = max(opset, 19)  # the reference has no older ones; what these do didn't change
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    outputs = [f"o{k}" if name else "" for k, name in enumerate(node.outputs)]
    feeds = {name: x for name, x in zip(names, inputs) if x is not None}
    try:
        onnx_node = helper.make_node(node.op, names, outputs)
        onnx_node.attribute.extend(helper.make_attribute(key, _plain(value)) for key, value in node.attributes.items())
        kinds = [(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in feeds.items()]
        sources = [helper.make_tensor_value_info(*kind) for kind in kinds]
        results = [helper.make_tensor_value_info(name, 0, None) for name in outputs if name]
        graph = helper.make_graph([onnx_node], "node", sources, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(STANDARD, opset)])
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, feeds)]
    except Exception as e:  # the reference raises whatever numpy does
        raise Unsupported(f"must be as ONNX defines it, got: {reason(e)}") from None


def _plain(value: Any) -> Any:
    """An attribute as ONNX's helper takes it."""
    if isinstance(value, np.ndarray):
        from onnx import numpy_helper

        return numpy_helper.from_array(value)
    return list(value) if isinstance(value, tuple) else value


def grid_of(values: Array) -> Grid | None:
    """Find that weights are integers times a scale, though the file doesn't say so.

    Found are integers, and channels with values of -a, 0 and a only.

    Parameters
    ----------
    values : (outputs, ...) array of numbers
    """
    if not values.ndim or not values.size or not np.isfinite(values).all():
        return None
    flat = values.reshape(len(values), -1)
    if (flat == np.rint(flat)).all():
        if np.abs(flat.astype(np.float64)).max() >= 1 << 31:
            return None
        return Grid(integers=values.astype(np.int64))
    largest = np.abs(flat).max(axis=1, keepdims=True)
    if not ((np.abs(flat) == largest) | (flat == 0)).all():
        return None
    scale = np.broadcast_to(fractions(np.where(largest == 0, 1, largest)), flat.shape).reshape(values.shape)
    return Grid(integers=np.sign(values).astype(np.int64), scale=scale)
