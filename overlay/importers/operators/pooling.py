"""Pools."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from bitloom.golden.window import Window
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import AxesReduction, Padding, Pooling

from .linear import pair, sliding
from .registry import operator, refused

refused(
    *("ReduceL1", "ReduceL2", "LpNormalization", "L2_NORMALIZATION"),
    instead="where it normalises a vector of scores, leave it out and divide the scores by their norm on the host",
)


@operator("MaxPool")
def max_pool(node: NodeView) -> None:
    """The maximum of each window."""
    node.only_map(0)
    if len([name for name in node.node.outputs if name]) > 1:
        raise Unsupported("the places of the maxima are not computed", "PyTorch: return_indices=False")
    with node.as_rows():
        node.append(Pooling, window=_window(node), average=False)


@operator("AveragePool")
def average_pool(node: NodeView) -> None:
    """The mean of each window."""
    node.only_map(0)
    with node.as_rows():
        window = _window(node)
        top, left, bottom, right = window.padding
        if int(node.attribute("count_include_pad", 0)) and any(window.padding):
            if int(node.attribute("ceil_mode", 0)):
                why = "ceil_mode must be 0 where padded taps are counted, got 1"
                raise Unsupported(why, "PyTorch: count_include_pad=False")
            node.append(Padding, widths=((0, 0), (0, 0), (top, bottom), (left, right)), value=Fraction(0))
            window = replace(window, padding=(0, 0, 0, 0))
        node.append(Pooling, window=window, average=True)


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: NodeView) -> None:
    """The mean or the maximum of each channel."""
    node.only_map(0)
    axes = tuple(range(2, max(3, len(node.shape))))
    node.append(AxesReduction, axes=axes, average="Max" not in node.node.op)


@operator("ReduceMean", "ReduceSum", "ReduceMax")
def reduce(node: NodeView) -> None:
    """The mean, the sum or the maximum over some axes; a sum is so many times the mean."""
    node.only_map(0)
    before = prod(node.shape)
    given = node.optional(1)
    axes = tuple(node.attribute("axes", ())) if given is None else tuple(int(axis) for axis in given.ravel()[:9])
    keep = bool(int(node.attribute("keepdims", 1)))
    reduce_over(node, axes, average=node.node.op != "ReduceMax", keep=keep)
    if node.node.op == "ReduceSum":
        node.affine(multiply=before // prod(node.shape))


def reduce_over(node: NodeView, axes: Sequence[int], *, average: bool, keep: bool) -> None:
    """Append the mean or the maximum over axes, counted from the image's; without ``keep`` the axes go."""
    rank = len(node.shape)
    places = tuple(sorted({axis % rank for axis in axes if -rank <= axis < rank}))
    if len(places) != len(axes) or not places or places[0] == 0:
        raise Unsupported(f"its axes must be some of 1..{rank - 1}, got {tuple(axes)}")
    node.append(AxesReduction, axes=places, average=average)
    if not keep:
        left = [size for axis, size in enumerate(node.shape) if axis not in places]
        node.layout(node.places().reshape(left))


def _window(node: NodeView) -> Window:
    node.check_rows()
    kernel = pair(node, "kernel_shape")
    if pair(node, "dilations") != (1, 1):
        raise Unsupported(f"dilations must be 1, got {pair(node, 'dilations')}", "PyTorch: dilation=1")
    return sliding(node, kernel, ceil=bool(int(node.attribute("ceil_mode", 0))))
