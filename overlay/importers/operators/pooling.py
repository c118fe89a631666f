"""Pools."""

from bitloom.golden.window import Window
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Pooling

from .linear import pair, sliding
from .quantise import dequantise, requantise
from .registry import MICROSOFT, operator


@operator("MaxPool")
def max_pool(node: NodeView) -> None:
    """The maximum of each window."""
    node.only_map(0)
    if len([name for name in node.node.outputs if name]) > 1:
        raise Unsupported("the places of the maxima are not computed", "PyTorch: return_indices=False")
    node.append(Pooling, window=_window(node), average=False)


@operator("AveragePool")
def average_pool(node: NodeView) -> None:
    """The mean of each window."""
    node.only_map(0)
    window = _window(node)
    if int(node.attribute("count_include_pad", 0)) and any(window.padding):
        raise Unsupported(
            "count_include_pad must be 0 where windows go beyond the map, got 1", "PyTorch: count_include_pad=False"
        )
    node.append(Pooling, window=window, average=True)


@operator("GlobalAveragePool")
def global_average_pool(node: NodeView) -> None:
    """The mean of each channel."""
    node.only_map(0)
    _whole(node, average=True)


@operator("QLinearGlobalAveragePool", domains=MICROSOFT)
def qlinear_global_average_pool(node: NodeView) -> None:
    """Inputs: x, its scale and zero point; the result's scale and zero point."""
    node.only_map(0)
    if int(node.attribute("channels_last", 0)):
        raise Unsupported("channels_last must be 0, got 1")
    dequantise(node)
    _whole(node, average=True)
    requantise(node, 3)


@operator("GlobalMaxPool")
def global_max_pool(node: NodeView) -> None:
    """The maximum of each channel."""
    node.only_map(0)
    _whole(node, average=False)


@operator("ReduceMean")
def reduce_mean(node: NodeView) -> None:
    """The mean over rows and columns."""
    node.only_map(0)
    given = node.optional(1)
    axes = tuple(node.attribute("axes", ())) if given is None else tuple(int(axis) for axis in given.ravel())
    rank = len(node.shape)
    if rank != 4 or sorted(axis % rank for axis in axes) != [2, 3]:
        raise Unsupported(f"the mean must be over rows and columns, axes 2 and 3, got {axes}")
    _whole(node, average=True)
    if not int(node.attribute("keepdims", 1)):
        node.layout(node.places().reshape(1, -1))


def _whole(node: NodeView, *, average: bool) -> None:
    """Append a pool of the whole map."""
    node.check_rows()
    node.append(Pooling, window=Window(kernel=(node.shape[2], node.shape[3])), average=average)


def _window(node: NodeView) -> Window:
    node.check_rows()
    kernel = pair(node, "kernel_shape")
    if pair(node, "dilations") != (1, 1):
        raise Unsupported(f"dilations must be 1, got {pair(node, 'dilations')}", "PyTorch: dilation=1")
    return sliding(node, kernel, ceil=bool(int(node.attribute("ceil_mode", 0))))
