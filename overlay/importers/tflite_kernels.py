"""TFLite's reference kernels in numpy, integers in and integers out: an imported file is verified with them.

Nothing here is used to make a model: the rewriting states where each value begins (`tflite_rules`), these compute it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bitloom.golden.encoding import Array
from bitloom.golden.layers.rounding import rounded_quotient, rounded_shift

from .activations import CURVES, node_table
from .errors import Unsupported
from .source import SourceNode
from .tflite_pointwise import POINTWISE
from .tflite_rules import (
    ENDS,
    HIGH,
    LOW,
    SUM_SHIFT,
    activation_ends,
    mean_multiplier,
    multiplier_of,
    rounded_product,
    single_scale,
)
from .tflite_shapes import MOVERS, run_constants, run_moved

Inputs = Sequence[Array | None]


def run_kernel(node: SourceNode, inputs: Inputs) -> Array:
    """The values that a node of a TFLite file makes.

    Parameters
    ----------
    node : SourceNode
    inputs : sequence of array or None

    Returns
    -------
    array
        int8 values, float32 ones of DEQUANTIZE, or integers of shapes.

    Raises
    ------
    Unsupported
        If there is no kernel.
    """
    if node.op in MOVERS and node.op not in KERNELS:
        return run_constants(node, inputs)
    if node.op not in KERNELS:
        raise Unsupported(f"{node.op} has no reference")
    return KERNELS[node.op](node, inputs)


def rounded_once(sums: Array, scales: Array) -> Array:
    """Sums times their scales as the kernel of a fully connected layer rounds: once, halves away from zero."""
    product = sums * scales
    return np.copysign(np.floor(np.abs(product) + 0.5), product).astype(np.int64)


def _by_multipliers(sums: Array, scales: Array) -> Array:
    """Sums times their scales, those of channels of the last axis, as the kernel of a convolution rounds: twice."""
    of_channels = [rounded_product(sums[..., k], multiplier_of(float(scale))) for k, scale in enumerate(scales)]
    return np.stack(of_channels, axis=-1)


def _ended(node: SourceNode, values: Array) -> Array:
    """The zero point added, and clipped by the activation."""
    return _clipped(node, values + node.attributes["result_scale"].per_tensor("the result")[1])


def _clipped(node: SourceNode, values: Array) -> Array:
    """Clipped by the activation."""
    ends = activation_ends(
        node.attributes.get("activation", "NONE"), *node.attributes["result_scale"].per_tensor("the result")
    )
    return np.asarray(np.clip(values, *ends), np.int8)


def _layer(
    node: SourceNode,
    inputs: Inputs,
    sums: Callable[[Array, Array], Array],
    rounded: Callable[[Array, Array], Array],
    source: int = 0,
) -> Array:
    """A layer with weights, of which ``sums`` makes sums from the values less their zero point, and the weights. Inputs
    are the map, weights and perhaps a bias; ``source`` is the node's input that the map is."""
    x, weight = (np.asarray(values).astype(np.int64) for values in inputs[:2] if values is not None)
    scale, zero = node.attributes["scales"][source].per_tensor("the input")
    total = sums(x - zero, weight)
    bias = inputs[2] if len(inputs) > 2 else None
    channels = total.shape[-1]
    if bias is not None:
        total = total + bias.astype(np.int64)
    result = node.attributes["result_scale"].per_tensor("the result")[0]
    return _ended(node, rounded(total, scale * node.attributes["scales"][1].channels(channels) / result))


def _windows(node: SourceNode, x: Array, kernel: Sequence[int], filler: int) -> Array:
    """(1, rows, columns, channels) -> (1, rows', columns', channels, *kernel): windows of a map with its border."""
    strides = node.attributes["strides"]
    dilations = node.attributes.get("dilations", (1, 1))
    wide = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    border = [(0, 0)] * 4
    if node.attributes["auto_pad"] == "SAME_UPPER":
        for axis, (k, stride) in enumerate(zip(wide, strides), 1):
            more = max((-(-x.shape[axis] // stride) - 1) * stride + k - x.shape[axis], 0)
            border[axis] = (more // 2, more - more // 2)
    windows = sliding_window_view(np.pad(x, border, constant_values=filler), (1, *wide, 1))[..., 0, :, :, 0]
    return np.asarray(windows[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]])


def _conv(node: SourceNode, inputs: Inputs) -> Array:
    def sums(x: Array, weight: Array) -> Array:
        if node.op == "DEPTHWISE_CONV_2D":  # (1, rows, columns, channels * multiplier): a channel is a group
            weight = weight.transpose(3, 1, 2, 0)
        # weights (outputs, rows, columns, channels of a group)
        taps = _windows(node, x, weight.shape[1:3], 0).transpose(0, 1, 2, 4, 5, 3)
        groups = x.shape[3] // weight.shape[3]
        parts = zip(np.split(taps, groups, axis=5), np.split(weight, groups))
        of_groups = [part.reshape(*part.shape[:3], -1) @ each.reshape(len(each), -1).T for part, each in parts]
        return np.concatenate(of_groups, axis=3)

    return _layer(node, inputs, sums, _by_multipliers)


def crops_of(size: int, stride: int, kernel: int, wanted: int, padding: str) -> tuple[int, int]:
    """How many rows or columns a transposed convolution takes off its result before and behind, so that ``wanted`` are
    left; below 0, how many come besides."""
    whole = (size - 1) * stride + kernel - wanted
    of_conv = (-(-wanted // stride) - 1) * stride + kernel - wanted
    before = max(of_conv, 0) // 2 if padding == "SAME_UPPER" else 0
    return before, whole - before


def _transpose_conv(node: SourceNode, inputs: Inputs) -> Array:
    """Each value is multiplied by the whole kernel, and the products are added where they come to lie."""

    def sums(x: Array, weight: Array) -> Array:  # weights (outputs, rows, columns, channels)
        _, *sizes, _ = np.ravel(inputs[0]).tolist()  # type: ignore[arg-type]
        strides = node.attributes["strides"]
        kernel = weight.shape[1:3]
        axes = zip(x.shape[1:3], strides, kernel, sizes)
        first = [crops_of(*axis, node.attributes["auto_pad"])[0] for axis in axes]
        total = np.zeros((1, *sizes, len(weight)), np.int64)
        for y, z, row, column in np.ndindex(*x.shape[1:3], *kernel):
            at = y * strides[0] + row - first[0], z * strides[1] + column - first[1]
            if 0 <= at[0] < sizes[0] and 0 <= at[1] < sizes[1]:
                total[0, at[0], at[1]] += weight[:, row, column] @ x[0, y, z]
        return total

    return _layer(node, [inputs[2], *inputs[1:2], *inputs[3:]], sums, _by_multipliers, source=2)


def nearest_places(size: int, wanted: int, attributes: Mapping[str, Any]) -> Array:
    """Which of the ``size`` rows or columns each of the wanted ones is, in single precision."""
    align = attributes.get("align", False) and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if align else np.float32(size) / np.float32(wanted)
    half = np.float32(0.5 if attributes.get("centres", False) else 0)
    places = (np.arange(wanted, dtype=np.float32) + half) * scale
    nearest = np.floor(places + np.float32(0.5)) if align else np.floor(places)  # C's round: halves away from 0
    return np.asarray(np.minimum(nearest.astype(np.int64), size - 1))


def _resize_nearest(node: SourceNode, inputs: Inputs) -> Array:
    x = np.asarray(inputs[0])
    sizes = np.ravel(inputs[1]).tolist()  # type: ignore[arg-type]
    rows, columns = (nearest_places(*pair, node.attributes) for pair in zip(x.shape[1:3], sizes))
    return x[:, rows][:, :, columns]


SHARE_BITS = 10
"""Bits behind the point of the shares that two rows, or columns, have in one between them."""


def bilinear_shares(size: int, wanted: int, attributes: Mapping[str, Any]) -> Array:
    """The share that each of ``size`` rows or columns has in each of the ``wanted`` ones, in whole 1024ths: (wanted,
    size) int64."""
    one = 1 << SHARE_BITS
    scale = (one * size + wanted // 2) // wanted
    if attributes.get("align", False) and wanted > 1:
        scale = (one * (size - 1) + (wanted - 1) // 2) // (wanted - 1)
    places = np.arange(wanted) * scale
    if attributes.get("centres", False):
        places += scale // 2 - one // 2
    lower = np.maximum(places // one, 0)
    upper = np.minimum(-(-places // one), size - 1)
    shares = np.zeros((wanted, size), np.int64)
    np.add.at(shares, (np.arange(wanted), lower), one - (places - one * lower))
    np.add.at(shares, (np.arange(wanted), upper), places - one * lower)
    return shares


def _resize_bilinear(node: SourceNode, inputs: Inputs) -> Array:
    """The integers themselves, by their shares, halves away from zero."""
    x = np.asarray(inputs[0]).astype(np.int64)
    sizes = np.ravel(inputs[1]).tolist()  # type: ignore[arg-type]
    rows, columns = (bilinear_shares(*pair, node.attributes) for pair in zip(x.shape[1:3], sizes))
    total = np.einsum("yk,nkxc,zx->nyzc", rows, x, columns)
    return rounded_shift(total, np.array(2 * SHARE_BITS)).astype(np.int8)


def _depth_to_space(node: SourceNode, inputs: Inputs) -> Array:
    x = np.asarray(inputs[0])
    _, rows, columns, channels = x.shape
    block = node.attributes["block"]
    if block < 1 or channels % block**2:
        raise Unsupported(f"a block must be >= 1 and its positions divide {channels} channels, got {block}")
    parts = x.reshape(1, rows, columns, block, block, -1).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(1, rows * block, columns * block, -1)


def _space_to_depth(node: SourceNode, inputs: Inputs) -> Array:
    x = np.asarray(inputs[0])
    _, rows, columns, channels = x.shape
    block = node.attributes["block"]
    if block < 1 or rows % block or columns % block:
        raise Unsupported(f"a block must be >= 1 and divide {rows} rows and {columns} columns, got {block}")
    parts = x.reshape(1, rows // block, block, columns // block, block, channels).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(1, rows // block, columns // block, -1)


def _fully_connected(node: SourceNode, inputs: Inputs) -> Array:
    keeps = node.attributes.get("keep", False)

    def sums(x: Array, weight: Array) -> Array:
        return (x if keeps else x.reshape(-1, weight.shape[1])) @ weight.T

    return _layer(node, inputs, sums, rounded_once)


def _max_pool(node: SourceNode, inputs: Inputs) -> Array:
    return _clipped(node, _windows(node, np.asarray(inputs[0]), node.attributes["kernel_shape"], LOW).max(axis=(4, 5)))


def _average_pool(node: SourceNode, inputs: Inputs) -> Array:
    """The mean of the integers themselves, halves away from zero; taps outside the map are not counted."""
    x = np.asarray(inputs[0]).astype(np.int64)
    kernel = node.attributes["kernel_shape"]
    total = _windows(node, x, kernel, 0).sum(axis=(4, 5))
    count = _windows(node, np.ones_like(x), kernel, 0).sum(axis=(4, 5))
    return _clipped(node, rounded_quotient(total, count))


def _mean(node: SourceNode, inputs: Inputs) -> Array:
    x = np.asarray(inputs[0]).astype(np.int64)
    scale, zero = node.attributes["scales"][0].per_tensor("the input")
    result, _ = node.attributes["result_scale"].per_tensor("the result")
    total = (x - zero).sum(axis=_axes(inputs), keepdims=bool(node.attributes["keep"]))
    return _ended(node, rounded_product(total, mean_multiplier(scale / result, x.size // total.size)))


def _reduce_max(node: SourceNode, inputs: Inputs) -> Array:
    largest: Array = np.asarray(inputs[0]).max(axis=_axes(inputs), keepdims=bool(node.attributes["keep"]))
    return largest


def _axes(inputs: Inputs) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.ravel(inputs[1]))  # type: ignore[arg-type]


def _add(node: SourceNode, inputs: Inputs) -> Array:
    """Both maps with 20 bits more, in halves of the larger scale; their sum or difference in the result's."""
    scales = [of_input.per_tensor("an input") for of_input in node.attributes["scales"]]
    largest = max(scale for scale, _ in scales)
    total: Array = np.int64(0)  # type: ignore[assignment]
    for x, (scale, zero), sign in zip(inputs, scales, (1, -1 if node.op == "SUB" else 1)):
        values = np.asarray(x).astype(np.int64) - zero << SUM_SHIFT
        total = total + sign * rounded_product(values, multiplier_of(scale / (2 * largest)))
    result, _ = node.attributes["result_scale"].per_tensor("the result")
    return _ended(node, rounded_product(total, multiplier_of(2 * largest / ((1 << SUM_SHIFT) * result))))


def _mul(node: SourceNode, inputs: Inputs) -> Array:
    """The product of values less their zero points."""
    (first, zero), (second, other_zero) = (scale.per_tensor("an input") for scale in node.attributes["scales"])
    x, y = (np.asarray(values).astype(np.int64) for values in inputs)
    result = node.attributes["result_scale"].per_tensor("the result")[0]
    scale = single_scale(result, first, second)
    return _ended(node, rounded_product((x - zero) * (y - other_zero), multiplier_of(scale)))


def _requantised(node: SourceNode, x: Array, activation: str) -> Array:
    """Values less their zero point in the scale of the result: of QUANTIZE, or of an activation."""
    scale, zero = node.attributes["scales"][0].per_tensor("the input")
    result = node.attributes["result_scale"].per_tensor("the result")[0]
    factor = scale / result if activation == "NONE" else single_scale(result, scale)
    values = rounded_product(x.astype(np.int64) - zero, multiplier_of(factor))
    return _ended(replace(node, attributes={**node.attributes, "activation": activation}), values)


def _curve(node: SourceNode, inputs: Inputs) -> Array:
    """The kernel's own table."""
    rows = node_table(node.op, node.attributes, [np.asarray(constant) for constant in inputs[1:]])
    return np.asarray(rows[np.arange(len(rows)), np.asarray(inputs[0]).astype(np.int64) - LOW], np.int8)


def _pointwise(node: SourceNode, inputs: Inputs) -> Array:
    values = POINTWISE[node.op](node.attributes, *(np.asarray(x).astype(np.int64) for x in inputs))
    return values.astype(bool if node.attributes["result_scale"].kind == "BOOL" else np.int8)


def _pad(node: SourceNode, inputs: Inputs) -> Array:
    """With zero points around, or with a number that is given."""
    x, widths, number = (*inputs, None)[:3]
    around = node.attributes["result_scale"].per_tensor("it")[1] if number is None else np.ravel(number)[0]
    return np.pad(np.asarray(x), np.asarray(widths), constant_values=around)


def _slice(node: SourceNode, inputs: Inputs) -> Array:
    """From where and how many along each axis; -1: all that follow."""
    x, begin, size = (np.asarray(values) for values in inputs)
    ends = [first + count if count >= 0 else None for first, count in zip(begin.tolist(), size.tolist())]
    return x[tuple(map(slice, begin.tolist(), ends))]


def _split(node: SourceNode, inputs: Inputs) -> Array:
    """One of the parts that a map is cut into along an axis: as many values as numbers say, or as many parts."""
    if node.op == "SPLIT":
        axis, x = (np.asarray(values) for values in inputs)
        cuts: Any = node.attributes["part"][1]
    else:
        x, sizes, axis = (np.asarray(values) for values in inputs)
        known = sizes.copy()
        known[known < 0] = x.shape[int(axis)] - known[known >= 0].sum()
        cuts = np.cumsum(known)[:-1]
    parts = np.split(x, cuts, axis=int(axis))
    return parts[int(node.attributes["part"][0])]


def _quantize(node: SourceNode, inputs: Inputs) -> Array:
    x = np.asarray(inputs[0])
    result = node.attributes["result_scale"]
    if x.dtype == np.uint8:
        return (x.astype(np.int64) - 128).astype(np.int8)
    if node.attributes["scales"][0].kind == result.kind:
        return _requantised(node, x, "NONE")
    if result.kind == "UINT8":
        return (x.astype(np.int64) + 128).astype(np.uint8)
    scale, zero = result.per_tensor("the result")
    parts = x.astype(np.float32) / np.float32(scale)
    values = np.sign(parts) * np.floor(np.abs(parts) + np.float32(0.5)) + zero
    return np.asarray(np.clip(values, LOW, HIGH), np.int8)


KERNELS: dict[str, Callable[[SourceNode, Inputs], Array]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _conv,
    "TRANSPOSE_CONV": _transpose_conv,
    "RESIZE_NEAREST_NEIGHBOR": _resize_nearest,
    "RESIZE_BILINEAR": _resize_bilinear,
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_DEPTH": _space_to_depth,
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _max_pool,
    "AVERAGE_POOL_2D": _average_pool,
    "MEAN": _mean,
    "ADD": _add,
    "SUB": _add,
    "MUL": _mul,
    "MAXIMUM": lambda node, inputs: np.maximum(*map(np.asarray, inputs)),
    "MINIMUM": lambda node, inputs: np.minimum(*map(np.asarray, inputs)),
    "REDUCE_MAX": _reduce_max,
    **{op: lambda node, inputs: _requantised(node, np.asarray(inputs[0]), node.op) for op in ENDS if op != "NONE"},
    **dict.fromkeys(CURVES, _curve),
    **dict.fromkeys(POINTWISE, _pointwise),
    **{op: run_moved for op, mover in MOVERS.items() if mover.others},
    **dict.fromkeys(("PAD", "PADV2"), _pad),
    "MIRROR_PAD": lambda node, inputs: np.pad(np.asarray(inputs[0]), np.asarray(inputs[1]), mode="reflect"),
    "SLICE": _slice,
    **dict.fromkeys(("SPLIT", "SPLIT_V"), _split),
    "QUANTIZE": _quantize,
}
"""Operator -> what it makes."""
