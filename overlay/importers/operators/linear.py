"""Convolutions and matrix products."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Sides, Window
from bitloom.overlay.importers.errors import RECURRENT, Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Linear, Padding, check_weights
from bitloom.overlay.importers.quantisers import Grid
from bitloom.overlay.importers.rationals import fractions
from bitloom.overlay.importers.source import Shape

from .registry import operator, refused

refused("LSTM", "GRU", "RNN", instead=RECURRENT)


@operator("Conv")
def conv(node: NodeView) -> None:
    """A convolution of maps with rows and columns, or with columns alone, then its bias."""
    node.only_map(0)
    kernels = _kernels(node)
    with node.as_rows():
        convolve(node, kernels, node.optional(2), int(node.attribute("group", 1)))


def _kernels(node: NodeView) -> Grid:
    """The kernels of a convolution; those of columns alone as kernels of one row."""
    grid = node.weights(1)
    return grid.moved(lambda values: values[:, :, None]) if grid.integers.ndim == 3 else grid


def _check_rows(node: NodeView, weight: Array) -> None:
    """Raise Unsupported unless the map and the kernels have rows and columns."""
    node.check_rows()
    if weight.ndim != 4:
        raise Unsupported(f"weights must have rows and columns, got shape {weight.shape}")


def convolve(node: NodeView, grid: Grid, bias: Array | None, groups: int = 1) -> None:
    """Append a convolution and its bias."""
    weight = grid.integers
    _check_rows(node, weight)
    given = tuple(node.attribute("kernel_shape", ()))
    if "kernel_shape" in node.node.attributes and weight.shape[2:] not in (given, (1, *given)):
        raise Unsupported(f"kernel_shape must be that of the weights, {weight.shape[2:]}")
    slide(node, grid, bias, sliding(node, (weight.shape[2], weight.shape[3]), pair(node, "dilations")), groups)


def slide(node: NodeView, grid: Grid, bias: Array | None, window: Window, groups: int) -> None:
    """Append a convolution with a window, and its bias.

    Dilated kernels of which a window has no tap on the map become plain kernels with zeros.
    """
    weight = grid.integers
    real = grid.real
    _check_groups(weight, groups, node.shape)
    rows, columns = node.shape[2:]
    if min(window.output_size(rows, columns)) > 0 and not window.reaches(rows, columns):
        weight = _dilated(weight, window.dilation)
        window = replace(window, kernel=window.span, dilation=(1, 1))
    real = real if weight is grid.integers and groups == 1 else None  # zeros are the sign of no number
    node.append(Linear, weight=weight, groups=groups, scale=output_scales(grid), window=window, real=real)
    if bias is not None:
        node.affine(add=node.per_channel(bias))


@operator("ConvTranspose")
def conv_transpose(node: NodeView) -> None:
    """A transposed convolution of maps with rows and columns, or with columns alone, then its bias."""
    node.only_map(0)
    grid = _kernels(node)
    with node.as_rows():
        groups = int(node.attribute("group", 1))
        weight = grid.integers
        _check_rows(node, weight)
        if groups < 1 or len(weight) % groups or len(weight) != node.shape[1]:
            rule = f"weights must have the {node.shape[1]} channels of the map, in as many groups as divide them"
            raise Unsupported(f"{rule}, got {len(weight)} in {groups} groups")
        kernel = weight.shape[2], weight.shape[3]
        transposed(node, forward(grid, groups), node.optional(2), groups, _crops(node, kernel))


def forward(grid: Grid, groups: int) -> Grid:
    """Weights (channels, outputs of a group, rows, columns) of a transposed convolution as those of a convolution,
    (outputs, channels of a group, rows, columns): the last tap comes first."""

    def turned(values: Array) -> Array:
        parts = [part.transpose(1, 0, 2, 3) for part in np.split(values, groups)]
        return np.flip(np.concatenate(parts), (2, 3))

    return grid.moved(turned)


def transposed(node: NodeView, grid: Grid, bias: Array | None, groups: int, crops: Sequence[int]) -> None:
    """Append a transposed convolution: a convolution of the map that has grown by the strides, with weights of a
    convolution, and what is taken off the result at top, left, bottom and right; below 0, what comes around it."""
    kernel = grid.integers.shape[2], grid.integers.shape[3]
    window = Window(kernel=kernel, dilation=_between_taps(kernel, pair(node, "dilations")))
    sides = [span - 1 - crop for span, crop in zip(window.span * 2, crops)]
    if min(sides) < 0:
        raise Unsupported(f"less than a window must be taken off at each side, got {tuple(crops)}")
    top, left, bottom, right = sides
    widths = ((0, 0), (0, 0), (top, bottom), (left, right))
    growth = (1, 1, *pair(node, "strides"))
    node.append(Padding, widths=widths, value=Fraction(0), growth=growth)
    slide(node, grid, bias, window, groups)


def _crops(node: NodeView, kernel: tuple[int, int]) -> tuple[int, int, int, int]:
    """Rows and columns that are taken off the result of a transposed convolution, as ONNX has them."""
    strides = pair(node, "strides")
    spans = Window(kernel=kernel, dilation=pair(node, "dilations")).span
    more = node.attribute("output_padding", (0, 0))
    more = (0, *more) if len(more) == 1 and node.in_rows else tuple(more)
    if len(more) != 2 or not all(isinstance(v, int) and 0 <= v <= 4096 for v in more):
        raise Unsupported(f"output_padding must be two integers of 0..4096, got {more}")
    auto = str(node.attribute("auto_pad", "NOTSET"))
    sizes = tuple(node.attribute("output_shape", ()))[-2:]
    sizes = (1, *sizes) if len(sizes) == 1 and node.in_rows else sizes
    if not sizes and auto in ("SAME_UPPER", "SAME_LOWER"):
        sizes = tuple(size * stride for size, stride in zip(node.shape[2:], strides))
    if not sizes:
        top, left, bottom, right = _padding(node, spans, strides)
        return top, left, bottom - more[0], right - more[1]
    whole = [
        (size - 1) * stride + span + over - wanted
        for size, stride, span, over, wanted in zip(node.shape[2:], strides, spans, more, sizes)
    ]
    behind = [total - total // 2 if auto == "SAME_UPPER" else total // 2 for total in whole]
    before = [total - last for total, last in zip(whole, behind)]
    return before[0], before[1], behind[0] - more[0], behind[1] - more[1]


@operator("MatMul", everywhere=True)
def matmul(node: NodeView) -> None:
    """x @ weights."""
    node.only_map(0)
    dense(node, node.weights(1), transposed=True)


@operator("Gemm", everywhere=True)
def gemm(node: NodeView) -> None:
    """alpha * x @ weights + beta * bias."""
    node.only_map(0)
    if int(node.attribute("transA", 0)):
        raise Unsupported("transA must be 0, got 1")
    dense(node, node.weights(1), transposed=not int(node.attribute("transB", 0)))
    alpha, beta = (Fraction(float(node.attribute(name, 1.0))) for name in ("alpha", "beta"))
    bias = node.optional(2)
    if bias is not None or alpha != 1:
        node.affine(multiply=alpha, add=0 if bias is None else beta * fractions(bias))


def dense(node: NodeView, grid: Grid, *, transposed: bool) -> None:
    """Append a dense layer; ``transposed`` weights are (inputs, outputs). Of a map with more axes it is a convolution
    of 1 x 1, whose channels are the last axis."""
    if grid.integers.ndim != 2:
        raise Unsupported(f"weights must be a matrix, got shape {grid.integers.shape}")
    if transposed:
        grid = grid.moved(np.transpose)
    if len(node.shape) > 2 and node.shape[-1] == grid.integers.shape[1]:
        with node.channels_first():
            dense_at_each_place(node, grid, None)
        return
    node.append(Linear, weight=grid.integers, scale=output_scales(grid), window=None, real=grid.real)


def dense_at_each_place(node: NodeView, grid: Grid, bias: Array | None) -> None:
    """Append a convolution of 1 x 1 with the weights (outputs, inputs) and the bias of a dense layer."""
    slide(node, grid.moved(lambda values: values[:, :, None, None]), bias, Window(kernel=(1, 1)), groups=1)


def output_scales(grid: Grid) -> Array:
    """The scale of each output, (outputs,); Unsupported if an output's weights have several."""
    count = len(grid.integers)
    if not grid.scale.ndim:
        return np.full(count, grid.scale[()], object)
    rows = np.broadcast_to(grid.scale, grid.integers.shape).reshape(count, -1)
    if any((row != row[0]).any() for row in rows):
        raise Unsupported("weights must have one scale, or one an output, got several for one output")
    return rows[:, 0].copy()


def sliding(
    node: NodeView, kernel: tuple[int, int], dilation: tuple[int, int] = (1, 1), *, ceil: bool = False
) -> Window:
    """The window of a convolution or a pool."""
    window = Window(kernel=kernel, stride=pair(node, "strides"), dilation=_between_taps(kernel, dilation))
    padding = _padding(node, window.span, window.stride)
    if ceil:
        padding = _to_the_end(node.shape, kernel, window.stride, padding)
    window = replace(window, padding=padding)
    try:
        window.check("the window")
    except ValueError as e:
        raise Unsupported(str(e)) from None
    return window


def _between_taps(kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    """A dilation, which is 1 where a kernel has one tap."""
    return dilation[0] if kernel[0] > 1 else 1, dilation[1] if kernel[1] > 1 else 1


def pair(node: NodeView, name: str) -> tuple[int, int]:
    """An attribute for rows and columns, (1, 1) where it is missing; each >= 1. One of columns alone is for 1 row."""
    values = tuple(node.attribute(name, (1, 1)))
    if len(values) == 1 and node.in_rows:
        values = (1, *values)
    if len(values) != 2 or not all(isinstance(v, int) and 1 <= v <= 4096 for v in values):
        raise Unsupported(f"{name} must be two integers of 1..4096, got {values}")
    return values[0], values[1]


def _padding(node: NodeView, kernel: Sequence[int], stride: Sequence[int]) -> Sides:
    """Rows and columns outside of the map: top, left, bottom, right."""
    auto = str(node.attribute("auto_pad", "NOTSET"))
    if auto == "VALID":
        return 0, 0, 0, 0
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        begin = []
        end = []
        for size, k, s in zip(node.shape[2:], kernel, stride):
            total = max((-(-size // s) - 1) * s + k - size, 0)
            small = total // 2
            large = total - total // 2
            begin.append(small if auto == "SAME_UPPER" else large)
            end.append(large if auto == "SAME_UPPER" else small)
        return begin[0], begin[1], end[0], end[1]
    if auto != "NOTSET":
        raise Unsupported(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto[:40]}")
    values = tuple(node.attribute("pads", (0, 0, 0, 0)))
    if len(values) == 2 and node.in_rows:
        values = (0, values[0], 0, values[1])
    if len(values) != 4 or not all(isinstance(v, int) and 0 <= v <= 4096 for v in values):
        raise Unsupported(f"pads must be four integers of 0..4096, got {values}")
    return values[0], values[1], values[2], values[3]


def _to_the_end(shape: Shape, kernel: Sequence[int], stride: Sequence[int], padding: Sides) -> Sides:
    """Padding with which the last window, that sticks out, is taken, too."""
    sides = list(padding)
    for k in (0, 1):
        covered = shape[2 + k] + sides[k] + sides[2 + k] - kernel[k]
        more = -covered % stride[k]
        last = covered + more - sides[k]  # where the last window begins: on the map or its front padding, else it goes
        if last < shape[2 + k]:
            sides[2 + k] += more
    return sides[0], sides[1], sides[2], sides[3]


def _check_groups(weight: Array, groups: int, source: Shape) -> None:
    """Refuse kernels that don't read the channels of a map by so many groups."""
    outputs, inputs = weight.shape[:2]
    if groups < 1 or outputs % groups:
        raise Unsupported(f"group must be >= 1 and divide {outputs} outputs, got {groups}")
    if inputs * groups != source[1]:
        last = source[3] == inputs * groups
        hint = "ONNX has the channels in front of rows and columns: is the map in the order NHWC?" if last else ""
        raise Unsupported(f"weights must read all {source[1]} channels of a map {source}, got {inputs * groups}", hint)


def _dilated(weight: Array, dilations: tuple[int, int]) -> Array:
    """A dilated kernel as a plain one: zeros between its taps."""
    rows, columns = ((weight.shape[2 + k] - 1) * dilations[k] + 1 for k in (0, 1))
    check_weights(weight.shape[0] * weight.shape[1] * rows * columns)
    wide = np.zeros((*weight.shape[:2], rows, columns), weight.dtype)
    wide[:, :, :: dilations[0], :: dilations[1]] = weight
    return wide
