"""Operators on quantised integers, as onnxruntime's older format has them: QLinearConv, QGemm, QLinearAdd and others.

Each is an operator of real numbers, between what the integers stand for that it reads, and a quantiser.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.activations import ACTIVATIONS
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.quantisers import Grid, linear_rule
from bitloom.overlay.importers.rationals import fractions, same
from bitloom.overlay.importers.references import is_whole_mean

from .elementwise import activate, add, concatenate, multiply
from .linear import conv, gemm, matmul
from .pooling import average_pool, global_pool
from .quantise import append_dequantised
from .registry import MICROSOFT, ONNX, Rewriting, operator, refused

refused(
    "DynamicQuantizeLinear",
    "ConvInteger",
    "MatMulInteger",
    "DynamicQuantizeMatMul",
    instead="scales must be known before: quantise by onnxruntime's quantize_static",
)


def _of_integers(
    node: NodeView,
    real: Rewriting,
    *,
    maps: slice = slice(1),
    axis: int | None = None,
    bias: int | None = None,
    result: int | None = 3,
    zero_after: Callable[[NodeView], bool] = lambda node: True,
) -> None:
    """Rewrite a node by the function of an operator of real numbers, which finds what the integers stand for in place
    of the node's inputs.

    Parameters
    ----------
    node : NodeView
    real : callable
    maps : slice
        Which inputs are maps, or one of two a constant, each with its scale and its zero point behind.
    axis : int, optional
        Of weights, input 3, the axis along which their scales lie.
    bias : int, optional
        The input that is the bias, in units of the map's scale times those of the weights.
    result : int or None
        The input that is the result's scale, in front of its zero point; None where the result is real numbers.
    zero_after : callable
        See `quantisers.Rule`.
    """
    places = range(len(node.node.inputs))[maps]
    if len(places) == 1:
        node.only_map(places[0])
    if int(node.attribute("channels_last", 0)):
        raise Unsupported("channels_last must be 0, got 1")
    rounds_after = zero_after(node)
    inputs: list[str | Array | Grid] = []
    scale = Fraction(1)
    for place in places:
        if node.has_constant(place):
            inputs.append(_constant(node, place))
        else:
            node.start(place)
            scale = _dequantise(node, place + 1)
            inputs.append(node.here)
    if axis is not None:
        inputs.append(_weights(node, axis))
    offsets = None if bias is None else node.optional(bias)
    if offsets is not None:
        units = scale * np.broadcast_to(_weight_scales(node), offsets.shape)
        inputs.append(fractions(offsets) * units)
    with node.reading(inputs):
        real(node)
    if result is not None:
        rule = linear_rule(node.constant(result, "the result's scale"), node.optional(result + 1), rounds_after)
        node.quantise_linear(rule)


def _dequantise(node: NodeView, place: int) -> Fraction:
    """Append (x - zero point) * scale, of the inputs at ``place`` and behind it; returns the scale."""
    scale = same(fractions(node.constant(place, "the scale")))
    if scale is None:
        raise Unsupported("a map's scale must be one number here, got one a channel")
    append_dequantised(node, np.array(scale, object), node.optional(place + 1))
    return scale


def _constant(node: NodeView, place: int) -> Array:
    """The real numbers that the constant at ``place`` stands for, by the inputs behind it."""
    integers = fractions(node.constant(place, f"input {place}"))
    scale, zero = (same(fractions(node.constant(place + k, f"input {place + k}"))) for k in (1, 2))
    if scale is None or zero is None:
        raise Unsupported("a constant's scale and zero point must be one number each")
    return np.asarray((integers - zero) * scale)


def _weights(node: NodeView, axis: int) -> Grid:
    """Weights less their zero points, with scales along ``axis``."""
    values = node.constant(3, "weights")
    zero = node.optional(5)
    shape = [1] * values.ndim
    shape[axis] = -1
    integers = values.astype(np.int64)
    if zero is not None:
        integers = integers - zero.astype(np.int64).reshape(shape if zero.size > 1 else ())
    scale = _weight_scales(node)
    return Grid(integers=integers, scale=scale.reshape(shape) if scale.size > 1 else scale.reshape(()))


def _weight_scales(node: NodeView) -> Array:
    return fractions(node.constant(4, "the weights' scale"))


@operator("QGemm", domains=MICROSOFT, everywhere=True)
def qgemm(node: NodeView) -> None:
    """Inputs: x, its scale and zero point; weights, theirs; bias; the result's scale and zero point, or none."""
    node.only_map(0)
    if int(node.attribute("transA", 0)) or float(node.attribute("alpha", 1.0)) != 1:
        raise Unsupported("transA must be 0 and alpha 1")
    axis = 0 if int(node.attribute("transB", 0)) else 1
    _of_integers(node, gemm, axis=axis, bias=6, result=None if node.optional(7) is None else 7)


def _register(
    op: str, real: Rewriting, *, domains: tuple[str, ...] = MICROSOFT, everywhere: bool = False, **options: Any
) -> None:
    """Enter an operator whose ``options`` are those of `_of_integers`."""
    operator(op, domains=domains, everywhere=everywhere)(partial(_of_integers, real=real, **options))


_register("QLinearConv", conv, domains=ONNX, axis=0, bias=8, result=6)
_register("QLinearMatMul", matmul, domains=ONNX, everywhere=True, axis=1, result=6)
for _op, _real in (("QLinearAdd", add), ("QLinearMul", multiply)):
    _register(_op, _real, everywhere=True, maps=slice(0, 6, 3), result=6, zero_after=lambda node: False)
_register("QLinearConcat", concatenate, maps=slice(2, None, 3), result=0)
_register("QLinearAveragePool", average_pool, zero_after=lambda node: is_whole_mean(node.node.attributes, node.shape))
_register("QLinearGlobalAveragePool", global_pool)
for _activation in ACTIVATIONS:
    if _activation.qlinear:
        _register(f"QLinear{_activation.onnx}", partial(activate, activation=_activation), everywhere=True)
