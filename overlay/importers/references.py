"""Operators that ONNX's own reference doesn't have, by their definition: what `verify` compares with."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .constants import run_node
from .quantisers import QUANTISERS, ROUND
from .source import STANDARD, SourceNode

Reference = Callable[[SourceNode, Sequence[Any]], Array]


def reference(node: SourceNode, inputs: Sequence[Array | None], opset: int) -> Array:
    """What a node makes.

    Parameters
    ----------
    node : SourceNode
    inputs : sequence of array or None
    opset : int
        Version of ONNX's own operators.

    Returns
    -------
    array

    Raises
    ------
    Unsupported
        If the node is not as its operator is defined.
    """
    if node.op == "BatchNormalization":  # the reference takes older ones' momentum for a sign of training
        kept = {key: value for key, value in node.attributes.items() if key == "epsilon"}
        return run_node(SourceNode(**{**vars(node), "attributes": kept}), inputs, 15)[0]
    if node.domain == STANDARD:
        return run_node(node, inputs, opset)[0]
    if node.op in REFERENCES:
        return REFERENCES[node.op](node, inputs)
    return QUANTISERS[node.op](node, inputs).values.astype(np.float32)


def _multi_threshold(node: SourceNode, inputs: Sequence[Any]) -> Array:
    x, thresholds = inputs[0], np.asarray(inputs[1])
    last = str(node.attributes.get("data_layout", "")) in ("NHWC", "NWC")
    moved = x if last else np.moveaxis(x, 1, -1)
    count = (moved[..., None] >= thresholds).sum(axis=-1)
    made = np.float32(node.attributes.get("out_scale", 1.0)) * count + np.float32(node.attributes.get("out_bias", 0.0))
    return np.asarray(made if last else np.moveaxis(made, -1, 1))


def _trunc(node: SourceNode, inputs: Sequence[Any]) -> Array:
    x, scale, zero, bits = inputs[:4]
    y = np.rint(x / scale + zero)
    rounded = ROUND[str(node.attributes.get("rounding_mode", "FLOOR")).upper()]
    if len(inputs) < 6:  # the first version: the output's bits come next, and nothing is clipped
        return np.asarray((rounded(y / 2.0 ** (bits - inputs[4])) - zero) * scale)
    out_scale, out_bits = inputs[4:6]
    factor = 2.0 ** np.rint(np.log2(out_scale / scale))
    is_signed, narrow = bool(node.attributes.get("signed", 1)), bool(node.attributes.get("narrow", 0))
    low = -(2.0 ** (out_bits - 1)) + narrow if is_signed else 0.0
    high = 2.0 ** (out_bits - 1) - 1 if is_signed else 2.0**out_bits - 1 - narrow
    return np.asarray((rounded(np.clip(y / factor, low, high)) - zero / factor) * out_scale)


def _qgemm(node: SourceNode, inputs: Sequence[Any]) -> Array:
    x, scale, zero, weight, weight_scale, weight_zero, *rest = [*inputs, None, None, None][:9]
    a = (x.astype(np.float64) - (0 if zero is None else zero)) * scale
    w = (weight.astype(np.float64) - (0 if weight_zero is None else weight_zero)) * weight_scale
    transposed = bool(node.attributes.get("transB", 0))
    if transposed:
        w = (weight.astype(np.float64).T - (0 if weight_zero is None else weight_zero)) * weight_scale
    bias, out_scale, out_zero = rest
    y = a @ w + (0 if bias is None else bias * scale * weight_scale)
    if out_scale is None:
        return np.asarray(y)
    kind = np.iinfo(out_zero.dtype)
    return np.clip(np.rint(y / out_scale) + out_zero, kind.min, kind.max).astype(out_zero.dtype)


REFERENCES: dict[str, Reference] = {"MultiThreshold": _multi_threshold, "Trunc": _trunc, "QGemm": _qgemm}
"""Operator -> what it makes of its inputs."""
