"""Operators on quantised integers, as onnxruntime's older format has them: QLinearConv, QLinearMatMul, QGemm."""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.quantisers import Grid
from bitloom.overlay.importers.rationals import fractions

from .linear import convolve, dense, groups_of, with_rows
from .quantise import dequantise, requantise
from .registry import MICROSOFT, operator, refused

refused(
    "DynamicQuantizeLinear",
    "ConvInteger",
    "MatMulInteger",
    "DynamicQuantizeMatMul",
    instead="scales must be known before: quantise by onnxruntime's quantize_static",
)


@operator("QLinearConv")
def qlinear_conv(node: NodeView) -> None:
    """Inputs: x, its scale and zero point; weights, theirs; the result's scale and zero point; bias."""
    node.only_map(0)
    scale = dequantise(node)
    weights = _weights(node, 3, 0)
    bias = node.optional(8)
    with node.as_rows():
        convolve(node, with_rows(weights) if weights.integers.ndim == 3 else weights, None, groups_of(node))
        if bias is not None:
            units = scale * np.broadcast_to(np.asarray(_scales(node, 4)), bias.shape)
            node.affine(add=node.per_channel(fractions(bias) * units))
    requantise(node, 6)


@operator("QLinearMatMul", everywhere=True)
def qlinear_matmul(node: NodeView) -> None:
    """Inputs: x, its scale and zero point; weights, theirs; the result's scale and zero point."""
    node.only_map(0)
    dequantise(node)
    dense(node, _weights(node, 3, 1), transposed=True)
    requantise(node, 6)


@operator("QGemm", domains=MICROSOFT, everywhere=True)
def qgemm(node: NodeView) -> None:
    """Inputs: x, its scale and zero point; weights, theirs; bias; the result's scale and zero point, or none."""
    node.only_map(0)
    if int(node.attribute("transA", 0)) or float(node.attribute("alpha", 1.0)) != 1:
        raise Unsupported("transA must be 0 and alpha 1")
    scale = dequantise(node)
    transposed = not int(node.attribute("transB", 0))
    dense(node, _weights(node, 3, 1 if transposed else 0), transposed=transposed)
    bias = node.optional(6)
    if bias is not None:
        node.affine(add=fractions(bias) * scale * np.broadcast_to(_scales(node, 4), bias.shape))
    if node.optional(7) is not None:
        requantise(node, 7)


def _weights(node: NodeView, place: int, axis: int) -> Grid:
    """Weights less their zero points, with scales along ``axis``."""
    values = node.constant(place, "weights")
    zero = node.optional(place + 2)
    shape = [1] * values.ndim
    shape[axis] = -1
    integers = values.astype(np.int64)
    if zero is not None:
        integers = integers - zero.astype(np.int64).reshape(shape if zero.size > 1 else ())
    scale = _scales(node, place + 1)
    return Grid(integers=integers, scale=scale.reshape(shape) if scale.size > 1 else scale.reshape(()))


def _scales(node: NodeView, place: int) -> Array:
    return fractions(node.constant(place, "the weights' scale"))
