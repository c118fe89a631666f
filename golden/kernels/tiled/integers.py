"""Layers of integer networks on this processor, in C++ with the widest instructions that it has: equal to the layers'
definitions by test, and compiled, chosen and kept as the binary convolution is (golden/kernels/tiled/cpu.py).

===================================  ===================================================================================
layer                                numbers
===================================  ===================================================================================
conv, dense, grouped, depthwise      features and weights of 15 bits, sums of 31; a step adds two products
max, min, average, sum pool          values of 31 bits, as have sums of whole windows
requantise, threshold                values of 31 bits, inside 64 bits
add                                  features of 15 bits, inside 64 bits
===================================  ===================================================================================

Maps are held in the narrowest of int16, int32 and int64 that has room for one value more at each end (`value_dtype`). A
sum's encoding covers all partial sums, whatever the order in which they are made, so none of them wraps. Larger
numbers, and other layers, go the plain way, as everything does where nothing can be compiled.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.kernels.native import BuildError
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.rounding import ROUNDINGS
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.window import Window

from . import cpu

Forward = Callable[..., Array]
"""A layer as a function of a batch: an array of each source, in its value_dtype -> the target, in its value_dtype."""

KINDS: Mapping[type[Layer], int] = {MaxPool: 0, MinPool: 1, SumPool: 2, DepthwiseConv: 2, AvgPool: 3}
"""Number of the reduction of a window in ``bitloom_by_channel``, by the kind of layer."""
SAME_TIME = 64
"""Values with constants of their own, at least, so that loops over them are long enough for vectors."""


def value_dtype(m: Map) -> "np.dtype[Any]":
    """The narrowest dtype that holds each value of the map, and one more at each end: int16, int32 or int64."""
    return _dtype(m.encoding)


def _dtype(encoding: Encoding, times: int = 1) -> "np.dtype[Any]":
    """That of values of the encoding, or of the sums of so many."""
    largest = max(-encoding.low, encoding.high) * times
    return np.dtype(np.int16 if largest < (1 << 15) - 1 else np.int32 if largest < (1 << 31) - 1 else np.int64)


def forward_of(
    layer: Layer, sources: Sequence[Map], target: Map, arrays: Mapping[str, Array], path: str | None = None
) -> Forward | None:
    """The layer in C++, by one of `cpu.paths`, by default the first; None where its numbers don't fit, where it is of
    another kind, or without a compiler."""
    source = sources[0]
    narrow = all(value_dtype(read) == np.int16 for read in sources)
    if value_dtype(source) == np.int64 or value_dtype(target) == np.int64:
        return None
    try:
        library = cpu.library(path or cpu.paths()[0])
    except BuildError:
        return None
    if isinstance(layer, DepthwiseConv):
        weight = np.ascontiguousarray(layer.weights(arrays).reshape(layer.out_channels, -1).T)  # (taps, C)
        fits = narrow and _dtype(layer.weight) == np.int16
        return _by_channel(library, layer, layer.window(source), source, target, weight) if fits else None
    if isinstance(layer, Weighted):
        return _dots(library, layer, source, target, arrays) if narrow and _dtype(layer.weight) == np.int16 else None
    if isinstance(layer, Pool):
        fits = _dtype(source.encoding, layer.window.taps) != np.int64 or isinstance(layer, MaxPool | MinPool)
        return _by_channel(library, layer, layer.window, source, target) if fits else None
    if isinstance(layer, Requantise):
        return _requantise(library, layer, source, arrays)
    if isinstance(layer, Add):
        return _add(library, layer, arrays) if narrow else None
    if isinstance(layer, Threshold):
        return _threshold(library, source, target, arrays) if value_dtype(target) == np.int16 else None
    return None


class _Windows(ctypes.Structure):
    """``Windows`` of integers.cpp."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "images",
            "height",
            "width",
            "channels",
            "rows",
            "columns",
            "kernel_y",
            "kernel_x",
            "stride_y",
            "stride_x",
            "dilation_y",
            "dilation_x",
            "top",
            "left",
            "threads",
        )
    ]


class _Values(ctypes.Structure):
    """``Values`` of integers.cpp."""

    _fields_ = [("y", ctypes.c_void_p)] + [
        (name, ctypes.c_int64) for name in ("count", "period", "low", "high", "threads")
    ]


def _call(function: Any, *arguments: "ctypes.Structure | Array | int | None") -> None:
    """Call a function of integers.cpp: a structure and an array by their address, an integer as 64 bits."""
    function.restype = None
    function(
        *(
            ctypes.byref(value)
            if isinstance(value, ctypes.Structure)
            else ctypes.c_void_p(value.ctypes.data)
            if isinstance(value, np.ndarray)
            else ctypes.c_void_p()
            if value is None
            else ctypes.c_int64(value)
            for value in arguments
        )
    )


def _windows(window: Window, source: Map, target: Map) -> _Windows:
    """For any number of images, to be said later, of maps as `Window.grow` makes them."""
    height, width = window.grown(source.height, source.width)
    top, left, bottom, right = window.padding
    if window.beside != "nothing":
        height, width, top, left = height + top + bottom, width + left + right, 0, 0
    (kernel_y, kernel_x), (stride_y, stride_x), (dilation_y, dilation_x) = window.kernel, window.stride, window.dilation
    return _Windows(
        height=height,
        width=width,
        channels=source.channels,
        rows=target.height,
        columns=target.width,
        kernel_y=kernel_y,
        kernel_x=kernel_x,
        stride_y=stride_y,
        stride_x=stride_x,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        top=top,
        left=left,
        threads=cpu.processors(),
    )


def _dots(library: ctypes.CDLL, layer: Weighted, source: Map, target: Map, arrays: Mapping[str, Array]) -> Forward:
    groups = layer.groups if isinstance(layer, GroupedConv) else 1
    window = layer.window(source)
    weight = layer.weights(arrays).astype(np.int16)  # (O, kernel rows, kernel columns, C / groups)
    if groups == 1 and window == Window(kernel=(source.height, source.width)):  # the whole map: its values are channels
        weight = weight.reshape(layer.out_channels, 1, 1, -1)
        source = Map(height=1, width=1, channels=source.size, encoding=source.encoding)
        window = Window(kernel=(1, 1))
    kernels = _in_steps(weight, groups, groups == 1 and window.dilation[1] == 1, int(library.bitloom_lanes()))
    dtype = value_dtype(target)
    windows = _windows(window, source, target)

    def run(x: Array) -> Array:
        x = np.ascontiguousarray(window.grow(x))
        sums = np.empty((len(x), *target.shape), dtype)
        windows.images = len(x)
        _call(library.bitloom_dots, windows, x, kernels, layer.out_channels, groups, sums, dtype.itemsize)
        return sums

    return run


def _in_steps(weight: Array, groups: int, whole: bool, lanes: int) -> Array:
    """(groups, vectors, steps, lanes, 2): weights (O, rows, columns, C) as ``Dots`` of integers.cpp reads them, where
    ``whole`` says whether a row of taps is one run."""
    outputs = len(weight) // groups
    rows = weight.reshape(len(weight), weight.shape[1] if whole else weight.shape[1] * weight.shape[2], -1)
    vectors = -(-outputs // lanes)
    padded = np.zeros((groups, vectors * lanes, rows.shape[1], -(-rows.shape[2] // 2) * 2), np.int16)
    padded[:, :outputs, :, : rows.shape[2]] = rows.reshape(groups, outputs, *rows.shape[1:])
    pairs = padded.reshape(groups, vectors, lanes, -1, 2)
    return np.ascontiguousarray(np.moveaxis(pairs, 2, 3))


def _by_channel(
    library: ctypes.CDLL, layer: Layer, window: Window, source: Map, target: Map, weight: Array | None = None
) -> Forward:
    weights = None if weight is None else weight.astype(np.int16)
    dtype = value_dtype(target)
    kind = KINDS[type(layer)]
    windows = _windows(window, source, target)

    def run(x: Array) -> Array:
        x = np.ascontiguousarray(window.grow(x))
        y = np.empty((len(x), *target.shape), dtype)
        windows.images = len(x)
        _call(library.bitloom_by_channel, windows, kind, x, x.itemsize, weights, y, dtype.itemsize)
        return y

    return run


def _values(y: Array, period: int, low: int = 0, high: int = 0) -> _Values:
    return _Values(y=y.ctypes.data, count=y.size, period=period, low=low, high=high, threads=cpu.processors())


def _repeated(constants: Array) -> Array:
    """(..., period) constants of (..., C) channels: those of as many positions as make the period long enough."""
    positions = max(1, -(-SAME_TIME // constants.shape[-1]))
    return np.ascontiguousarray(np.tile(constants, positions))


def _requantise(library: ctypes.CDLL, layer: Requantise, source: Map, arrays: Mapping[str, Array]) -> Forward:
    names = ("bias", "multiplier", "shift")
    constants = [_repeated(arrays[name].astype(np.int64)) for name in names]
    rounding = ROUNDINGS.index(layer.rounding)
    wide = int(constants[1].max()) << layer.fraction >= 1 << 31

    def run(x: Array) -> Array:
        x = np.ascontiguousarray(x)
        y = np.empty(x.shape, np.int16)
        values = _values(y, len(constants[0]), layer.low, layer.high)
        _call(library.bitloom_requantise, values, x, x.itemsize, *constants, layer.fraction, rounding, wide)
        return y

    return run


def _add(library: ctypes.CDLL, layer: Add, arrays: Mapping[str, Array]) -> Forward:
    first, second = arrays["multiplier"].tolist()
    bias, shift = int(arrays["bias"][0]), int(arrays["shift"][0])

    def run(x_1: Array, x_2: Array) -> Array:
        x_1, x_2 = np.ascontiguousarray(x_1), np.ascontiguousarray(x_2)
        y = np.empty(x_1.shape, np.int16)
        values = _values(y, SAME_TIME, layer.low, layer.high)
        _call(library.bitloom_add, values, x_1, x_2, first, second, bias, shift)
        return y

    return run


def _threshold(library: ctypes.CDLL, source: Map, target: Map, arrays: Mapping[str, Array]) -> Forward:
    # Thresholds out of reach are clipped to just out of reach, which 32 bits hold.
    reach = source.encoding.low - 1, source.encoding.high + 1
    direction = arrays["direction"].astype(np.int32)  # (C,)
    threshold = np.clip(arrays["threshold"].astype(np.int64), *reach).T * direction  # (levels, C)
    directions, limits = _repeated(direction), _repeated(threshold.astype(np.int32))

    def run(x: Array) -> Array:
        x = np.ascontiguousarray(x)
        y = np.empty(x.shape, np.int16)
        values = _values(y, len(directions))
        _call(library.bitloom_threshold, values, x, x.itemsize, directions, limits, len(limits))
        return y

    return run
