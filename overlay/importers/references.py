"""Operators as their authors define them: `verify` compares with them.

ONNX's own operators are computed by ONNX's reference. Other operators are written a second time here, in floating point
and step by step, and share no code with the importer's rewritings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .activations import ACTIVATIONS
from .constants import run_node
from .errors import Unsupported
from .source import STANDARD, TFLITE, SourceNode
from .tflite_kernels import run_kernel

Inputs = Sequence[Any]
Definition = Callable[[Inputs, Mapping[str, Any]], Array]
"""Results of an operator, as a function of its inputs and attributes."""
MOST_COPIED = 1 << 22
"""Values of windows that are copied at once."""

_MODES: dict[str, Callable[[Array], Array]] = {
    "ROUND": np.round,
    "HALF_EVEN": np.round,
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5),
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "DOWN": np.fix,
}


def _mode(attributes: Mapping[str, Any], default: str) -> Callable[[Array], Array]:
    return _MODES[str(attributes.get("rounding_mode", default)).upper()]


def _integer_ends(bits: float, is_signed: bool, narrow: bool) -> tuple[float, float]:
    """Smallest and largest integer of so many bits."""
    if is_signed:
        return -(2.0 ** (bits - 1)) + narrow, 2.0 ** (bits - 1) - 1
    return 0.0, 2.0**bits - 1 - narrow


def _quant(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """QONNX's Quant and IntQuant."""
    x, scale, zero, bits = inputs[:4]
    is_signed = bool(attributes.get("signed", 1))
    narrow = bool(attributes.get("narrow", 0))
    with np.errstate(over="ignore"):  # an infinite quotient is cut to the last level as a large one is
        y = x / scale + zero
    if float(np.asarray(bits).ravel()[0]) == 1 and is_signed:
        y = np.where(y >= 0, 1.0, -1.0)
    else:
        low, high = _integer_ends(float(np.asarray(bits).ravel()[0]), is_signed, narrow)
        y = _mode(attributes, "ROUND")(np.clip(y, low, high))
    return np.asarray((y - zero) * scale)


def _bipolar(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """QONNX's BipolarQuant."""
    return np.where(inputs[0] >= 0, inputs[1], -inputs[1])


def _trunc(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """QONNX's Trunc: with five inputs the first version, with six the second."""
    x, scale, zero, bits = inputs[:4]
    y = np.round(x / scale + zero)
    if len(inputs) < 6:
        return np.asarray((_mode(attributes, "FLOOR")(y / 2.0 ** (bits - inputs[4])) - zero) * scale)
    out_scale, out_bits = inputs[4:6]
    divisor = 2.0 ** np.round(np.log2(out_scale / scale))
    is_signed = bool(attributes.get("signed", 1))
    narrow = bool(attributes.get("narrow", 0))
    y = np.clip(y / divisor, *_integer_ends(float(np.asarray(out_bits).ravel()[0]), is_signed, narrow))
    return np.asarray((_mode(attributes, "FLOOR")(y) - zero / divisor) * out_scale)


def _multi_threshold(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """QONNX's MultiThreshold, whose channels lie where the layout has its C, or where it is left out, last of three."""
    x, thresholds = inputs[:2]
    layout = str(attributes.get("data_layout", "")) or {3: "NWC"}.get(x.ndim, "NC")
    moved = np.moveaxis(x, layout.index("C"), -1)
    count = np.zeros(moved.shape, x.dtype)
    for threshold in np.asarray(thresholds).T:  # all at once would take memory for each value and threshold
        count += moved >= threshold
    result = attributes.get("out_scale", 1.0) * count + attributes.get("out_bias", 0.0)
    return np.moveaxis(result, -1, layout.index("C"))


def _quantised(y: Array, scale: Any, zero: Any, zero_after: bool = True) -> Array:
    """Integers of the zero point's type, nearest to y / scale + zero point; see `quantisers.Rule` for
    ``zero_after``."""
    zero = np.asarray(np.uint8(0) if zero is None else zero)
    kind = np.iinfo(zero.dtype)
    offset = zero.astype(np.float64)
    integers = np.rint(y / scale) + offset if zero_after else np.rint(y / scale + offset)
    return np.asarray(np.clip(integers, kind.min, kind.max), zero.dtype)


def _real(x: Any, scale: Any, zero: Any) -> Array:
    """(x - zero point) * scale, in float64."""
    return np.asarray((np.asarray(x, np.float64) - (0 if zero is None else np.asarray(zero, np.float64))) * scale)


def _q_conv(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """ONNX's QLinearConv, whose reference knows maps of rows and columns alone: Conv of real numbers, and a
    quantiser."""
    x, x_scale, x_zero, weight, scale, zero, y_scale, y_zero, *bias = inputs
    spread = (-1, *[1] * (weight.ndim - 1))
    real = _real(weight, np.reshape(scale, spread), None if zero is None else np.reshape(zero, spread))
    node = SourceNode(name="", op="Conv", inputs=("x", "weight"), outputs=("y",), attributes=attributes)
    y = reference(node, [_real(x, x_scale, x_zero), real], 19)
    if bias and bias[0] is not None:
        y = y + np.reshape(bias[0] * np.asarray(x_scale, np.float64) * scale, (1, *spread[:-1]))
    return _quantised(y, y_scale, y_zero)


def _q_gemm(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """onnxruntime's QGemm."""
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = (*inputs, *[None] * 9)[:9]
    turned = bool(attributes.get("transB", 0))
    spread = (-1, 1) if turned and np.size(b_scale) > 1 else np.shape(b_scale)
    zeros = np.broadcast_to(0 if b_zero is None else b_zero, b_scale.shape)
    weight = _real(b, b_scale.reshape(spread), zeros.reshape(spread))
    y = _real(a, a_scale, a_zero) @ (weight.T if turned else weight)
    if c is not None:
        y = y + c * np.asarray(a_scale, np.float64) * b_scale
    return y if y_scale is None else _quantised(y, y_scale, y_zero)


def _of_integers(
    op: str, result: int = 3, maps: slice = slice(1), zero_after: Callable[..., bool] = lambda attributes, shape: True
) -> Definition:
    """onnxruntime's operator of integers: ONNX's ``op`` between maps of real numbers, at inputs ``maps`` with their
    scales and zero points behind, and a quantiser, whose scale is input ``result``."""

    def definition(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
        reals = [_real(*(*inputs, None)[place : place + 3]) for place in range(len(inputs))[maps]]
        kept = {key: value for key, value in attributes.items() if key != "channels_last"}
        names = tuple(f"x{place}" for place in range(len(reals)))
        node = SourceNode(name="", op=op, inputs=names, outputs=("y",), attributes=kept)
        scale, zero = (*inputs, None)[result : result + 2]
        return _quantised(reference(node, reals, 19), scale, zero, zero_after(attributes, reals[0].shape))

    return definition


def is_whole_mean(attributes: Mapping[str, Any], shape: Sequence[int]) -> bool:
    """Whether an average pool of a tensor of a shape is the mean of all rows and columns, which onnxruntime computes,
    and rounds, as QLinearGlobalAveragePool."""
    pads = any(attributes.get("pads", ())) or "SAME" in str(attributes.get("auto_pad", ""))
    return list(attributes.get("kernel_shape", ())) == list(shape[2:]) and not pads


def _max_pool(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """ONNX's MaxPool, whose reference gets padding wrong where a window sticks out: the largest of the maps that each
    tap of the window sees."""
    (x,) = inputs
    kernel = attributes["kernel_shape"]
    ones = (1,) * len(kernel)
    pads = attributes.get("pads", (0,) * 2 * len(kernel))
    strides, dilations = (attributes.get(name, ones) for name in ("strides", "dilations"))
    spans = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilations)]
    counts = []
    sides = [(0, 0), (0, 0)]
    for size, before, behind, span, stride in zip(x.shape[2:], pads, pads[len(kernel) :], spans, strides):
        over = size + before + behind - span
        count = (-(-over // stride) if attributes.get("ceil_mode") else over // stride) + 1
        count -= (count - 1) * stride >= size + before  # a window that begins behind the map goes
        counts.append(count)
        sides.append((before, max(behind, (count - 1) * stride + span - size - before)))
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    padded = np.pad(x, sides, constant_values=lowest)
    largest: Array | None = None
    for tap in np.ndindex(*kernel):
        begins = [place * apart for place, apart in zip(tap, dilations)]
        steps = [slice(at, at + (n - 1) * step + 1, step) for at, n, step in zip(begins, counts, strides)]
        seen = padded[(slice(None), slice(None), *steps)]
        largest = seen if largest is None else np.maximum(largest, seen)
    assert largest is not None
    return largest


def _largest(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """ONNX's GlobalMaxPool, which its reference gets wrong without rows."""
    largest: Array = inputs[0].max(axis=tuple(range(2, inputs[0].ndim)), keepdims=True)
    return largest


def _conv_transpose(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """ONNX's ConvTranspose, whose reference knows no groups and gets ``output_shape`` wrong: each value times the
    kernel is added where it comes to lie, then the padding is taken off."""
    x, weight, *bias = inputs
    sizes = x.shape[2:]
    ones = (1,) * len(sizes)
    strides = attributes.get("strides", ones)
    dilations = attributes.get("dilations", ones)
    more = attributes.get("output_padding", (0,) * len(sizes))
    groups = int(attributes.get("group", 1))
    whole = [
        (size - 1) * stride + (taps - 1) * apart + 1 + over
        for size, stride, taps, apart, over in zip(sizes, strides, weight.shape[2:], dilations, more)
    ]
    outputs = weight.shape[1] * groups
    total = np.zeros((len(x), outputs, *whole), np.float64)
    for tap in np.ndindex(*weight.shape[2:]):
        begins = [place * apart for place, apart in zip(tap, dilations)]
        steps = (slice(at, at + (n - 1) * step + 1, step) for at, n, step in zip(begins, sizes, strides))
        parts = zip(np.split(x, groups, axis=1), np.split(weight[(slice(None), slice(None), *tap)], groups))
        sums = np.concatenate([np.tensordot(each, part, (0, 1)) for part, each in parts])  # (outputs, N, rows, columns)
        total[(slice(None), slice(None), *steps)] += np.moveaxis(sums, 0, 1)
    auto = attributes.get("auto_pad", "NOTSET")
    pads = attributes.get("pads", (0,) * 2 * len(sizes)) if auto == "NOTSET" else (0,) * 2 * len(sizes)
    wanted = attributes.get("output_shape") or (
        [size * stride for size, stride in zip(sizes, strides)] if auto in ("SAME_UPPER", "SAME_LOWER") else None
    )
    if wanted is not None:
        both = [full - size for full, size in zip(whole, wanted[-len(sizes) :])]
        behind = [-(-pad // 2) if auto == "SAME_UPPER" else pad // 2 for pad in both]
        pads = (*(pad - last for pad, last in zip(both, behind)), *behind)
    ends = (slice(begin, full - end) for begin, end, full in zip(pads, pads[len(sizes) :], whole))
    result: Array = total[(slice(None), slice(None), *ends)]
    return result + bias[0].reshape(1, -1, *ones) if bias else result


REFERENCES: dict[str, Definition] = {
    "Quant": _quant,
    "IntQuant": _quant,
    "BipolarQuant": _bipolar,
    "Trunc": _trunc,
    "MultiThreshold": _multi_threshold,
    "QLinearConv": _q_conv,
    "QGemm": _q_gemm,
    "QLinearGlobalAveragePool": _of_integers("GlobalAveragePool"),
    "QLinearAveragePool": _of_integers("AveragePool", zero_after=is_whole_mean),
    "QLinearAdd": _of_integers("Add", 6, slice(0, 6, 3), lambda attributes, shape: False),
    "QLinearMul": _of_integers("Mul", 6, slice(0, 6, 3), lambda attributes, shape: False),
    "QLinearConcat": _of_integers("Concat", 0, slice(2, None, 3)),
    "MaxPool": _max_pool,
    "GlobalMaxPool": _largest,
    "ConvTranspose": _conv_transpose,
    "Softplus": lambda inputs, attributes: np.logaddexp(inputs[0], 0),  # the reference overflows
    **{f"QLinear{each.onnx}": _of_integers(each.onnx) for each in ACTIVATIONS if each.qlinear},
}
"""Operator -> its definition."""


def reference(node: SourceNode, inputs: Sequence[Array | None], opset: int) -> Array:
    """The values that a node makes.

    Parameters
    ----------
    node : SourceNode
    inputs : sequence of array or None
    opset : int
        Version of ONNX's own operators.

    Returns
    -------
    array
        Numbers are float32.

    Raises
    ------
    Unsupported
        If the node is not as its operator is defined.
    """
    if node.domain == TFLITE:
        return run_kernel(node, inputs)
    node = _with_pads(node, inputs)
    definition = REFERENCES.get(node.op)
    if definition is not None:
        result = np.asarray(definition(inputs, node.attributes))
        return result.astype(np.float32) if result.dtype.kind == "f" else result
    if node.domain != STANDARD:
        raise Unsupported(f"{node.op} has no reference")
    if node.op == "BatchNormalization":  # the reference takes older ones' momentum for a sign of training
        kept = {key: value for key, value in node.attributes.items() if key == "epsilon"}
        return run_node(replace(node, attributes=kept), inputs, 15)[0]
    if node.op == "Conv":
        return _conv(node, inputs, opset)
    if node.op == "LogSoftmax":
        return _log_softmax(np.asarray(inputs[0]), node.attributes, opset)
    if node.op == "QuantizeLinear":
        inputs = [_within_integers(node, inputs[0], inputs[1]), *inputs[1:]]
    if node.op == "Resize":  # an empty input is one that is left out, which onnx 1.17's reference doesn't know
        inputs = [values if values is None or values.size else None for values in inputs]
    x = np.asarray(inputs[0])
    if node.op in ("Resize", "Upsample") and x.dtype.kind in "iu" and node.attributes.get("mode") == "linear":
        return np.fix(run_node(node, [x.astype(np.float64), *inputs[1:]], opset)[0]).astype(x.dtype)  # as onnxruntime
    return run_node(node, inputs, opset)[0]


def _within_integers(node: SourceNode, x: Any, scale: Any) -> Array:
    """Input of QuantizeLinear, clipped so that no quotient is beyond 2 ** 30: ONNX's reference makes integers of 32
    bits of quotients before it clips them. Results have 16 bits at most, so that they stay the same."""
    if np.ndim(scale):
        shape = [1] * np.ndim(x)
        shape[int(node.attributes.get("axis", 1))] = -1
        scale = np.reshape(scale, shape)
    with np.errstate(over="ignore"):  # no number is beyond infinity
        most = np.asarray(scale, np.float32) * np.float32(1 << 30)
    return np.asarray(np.clip(x, -most, most))


def _log_softmax(x: Array, attributes: Mapping[str, Any], opset: int) -> Array:
    """LogSoftmax, which ONNX's reference makes as the logarithm of a share: float32 has no room for small ones.

    Before version 13 of ONNX's operators a share is one of all values from the axis on.
    """
    axis = int(attributes.get("axis", 1 if opset < 13 else -1)) % x.ndim
    axes = tuple(range(axis, x.ndim)) if opset < 13 else axis
    wide = x.astype(np.float64)
    return np.asarray(wide - np.logaddexp.reduce(wide, axis=axes, keepdims=True), x.dtype)


def _conv(node: SourceNode, inputs: Inputs, opset: int) -> Array:
    """A convolution by ONNX's reference, which copies every window: the sum of those of some channels at a time."""
    x, weight, *bias = inputs
    each = max(1, MOST_COPIED // max(1, x[:, :1].size * prod(weight.shape[2:])))
    if int(node.attributes.get("group", 1)) != 1 or each >= x.shape[1]:
        return run_node(node, inputs, opset)[0]
    result = run_node(node, [x[:, :each], weight[:, :each], *bias], opset)[0]
    for first in range(each, x.shape[1], each):
        part = slice(first, first + each)
        unbiased = replace(node, inputs=node.inputs[:2])
        result = result + run_node(unbiased, [x[:, part], weight[:, part]], opset)[0]
    return result


WINDOWED = {"Conv": 1, "MaxPool": 0, "AveragePool": 0}
"""Operators with windows: which input their weights are; 0 of those that have none."""


def _with_pads(node: SourceNode, inputs: Sequence[Array | None]) -> SourceNode:
    """The node with pads in place of auto_pad, which the reference takes wrongly: VALID pads all the same, with
    SAME_LOWER and SAME_UPPER and strides the last windows are others than ONNX says, and pools of maps without rows
    fail."""
    rule = node.attributes.get("auto_pad", "NOTSET")
    x = inputs[0]
    if rule == "NOTSET" or x is None or node.op not in WINDOWED:
        return node
    kept = {key: value for key, value in node.attributes.items() if key not in ("auto_pad", "pads")}
    if rule == "VALID":
        return replace(node, attributes=kept)
    place = WINDOWED[node.op]
    weight = inputs[place] if 0 < place < len(inputs) else None
    kernel = kept.get("kernel_shape") or (weight.shape[2:] if weight is not None else ())
    ones = (1,) * len(kernel)
    whole = [
        max(0, (-(-size // stride) - 1) * stride + (taps - 1) * apart + 1 - size)
        for size, stride, taps, apart in zip(
            x.shape[2:], kept.get("strides", ones), kernel, kept.get("dilations", ones)
        )
    ]
    fewer, more = [both // 2 for both in whole], [-(-both // 2) for both in whole]
    pads = (*fewer, *more) if rule == "SAME_UPPER" else (*more, *fewer)
    return replace(node, attributes={**kept, "pads": pads})
