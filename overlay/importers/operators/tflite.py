"""TFLite's operators on int8 tensors: sums of integers, then levels that begin where the kernels' rules say.

Nothing real is left in between: a layer is a sum of (value - zero point) * weight, plus an integer bias, and a
quantiser whose boundaries lie between two sums. Maps are turned from (rows, columns, channels) and back, which costs
nothing.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.activations import AT_THE_END, CURVES, node_table
from bitloom.overlay.importers.bends import clip
from bitloom.overlay.importers.budget import VALUE_BYTES, take
from bitloom.overlay.importers.curves import Formula, table_curve
from bitloom.overlay.importers.errors import RECURRENT, Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Extreme, Levels, Padding, PairTable, Pooling, Product, Sum
from bitloom.overlay.importers.quantisers import Grid, Rule
from bitloom.overlay.importers.rationals import fractions
from bitloom.overlay.importers.rows import Boundaries
from bitloom.overlay.importers.source import MOST_MAP, check_shape
from bitloom.overlay.importers.tflite_kernels import bilinear_shares, crops_of, nearest_places, run_kernel
from bitloom.overlay.importers.tflite_pointwise import POINTWISE
from bitloom.overlay.importers.tflite_rules import (
    ENDS,
    HIGH,
    LOW,
    KernelRule,
    Multiplier,
    TensorScale,
    activation_ends,
    mean_multiplier,
    multiplier_of,
    single_scale,
    sums_of_pairs,
)

from .elementwise import combine
from .interpolate import interpolate, repeated
from .layout import repeat
from .linear import convolve, dense, dense_at_each_place, pair, sliding, transposed
from .pooling import reduce_over
from .registry import TENSORFLOW, operator, refused

refused("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF", instead=RECURRENT)
refused("ARG_MAX", instead="leave it out: the host gives all scores, the largest of which is the class")
refused("GATHER", "UNPACK", "PACK", instead="what takes maps apart by single numbers has no hardware")

MOST_BOUNDARIES = 1 << 21
"""Boundaries of all channels of a layer at most: 8,192 channels of 8 bits."""


@operator("CONV_2D", "DEPTHWISE_CONV_2D", domains=TENSORFLOW)
def conv_2d(node: NodeView) -> None:
    """A convolution; weights are (outputs, rows, columns, inputs of a group), or (1, rows, columns, channels *
    multiplier) of a convolution of each channel for itself."""
    node.only_map(0)
    node.check_rows()
    axes = (0, 3, 1, 2) if node.node.op == "CONV_2D" else (3, 0, 1, 2)
    zero, weight, bias, multipliers = _layer(node, _weights(node, 4).transpose(axes))
    groups = max(1, node.shape[3] // weight.shape[1])
    with node.channels_first():
        node.affine(add=-zero)
        convolve(node, Grid(integers=weight), bias, groups=groups)
        _quantise_sums(node, multipliers, roundings=2)


@operator("TRANSPOSE_CONV", domains=TENSORFLOW)
def transpose_conv(node: NodeView) -> None:
    """A transposed convolution. Inputs: the shape of the result, weights (outputs, rows, columns, inputs), the map, and
    a bias, if it has one."""
    node.only_map(2)
    node.check_rows()
    weight = _weights(node, 4).transpose(0, 3, 1, 2)[:, :, ::-1, ::-1]
    zero, weight, bias, multipliers = _layer(node, weight, source=2, biases=3)
    wanted = node.constant(0, "the shape of the result").ravel()
    if wanted.shape != (4,) or wanted.dtype.kind != "i":
        raise Unsupported(f"the shape of the result must be four numbers, got {wanted.dtype} of shape {wanted.shape}")
    axes = zip(node.shape[1:3], pair(node, "strides"), weight.shape[2:], wanted[1:3].tolist())
    cut = [crops_of(*axis, str(node.attribute("auto_pad", "VALID"))) for axis in axes]
    crops = cut[0][0], cut[1][0], cut[0][1], cut[1][1]
    with node.channels_first():
        node.affine(add=-zero)
        transposed(node, Grid(integers=weight), bias, 1, crops)
        _quantise_sums(node, multipliers, roundings=2)


@operator("RESIZE_NEAREST_NEIGHBOR", domains=TENSORFLOW)
def resize_nearest(node: NodeView) -> None:
    """Nearest upsampling by whole numbers."""
    sizes = _wanted_sizes(node)
    kept = [np.arange(node.shape[axis]) for axis in (0, 3)]
    rows, columns = (nearest_places(size, wanted, node.node.attributes) for size, wanted in sizes)
    repeat(node, (kept[0], rows, columns, kept[1]))


@operator("RESIZE_BILINEAR", domains=TENSORFLOW)
def resize_bilinear(node: NodeView) -> None:
    """Bilinear upsampling by whole numbers, of the integers themselves, halves away from zero."""
    sizes = _wanted_sizes(node)
    take(held=VALUE_BYTES * sum(size * wanted for size, wanted in sizes))
    shares = [bilinear_shares(size, wanted, node.node.attributes) for size, wanted in sizes]
    zero = _result(node)[1]
    with node.channels_first():
        node.affine(add=-zero)
        interpolated = interpolate(node, shares)
        node.affine(add=zero)
        if interpolated:
            node.quantise_integers(LOW, HIGH, "HALF_UP")
        repeated(node, shares)


def _wanted_sizes(node: NodeView) -> list[tuple[int, int]]:
    """Of rows and of columns, how many there are and how many are to be."""
    node.only_map(0)
    node.check_rows()
    sizes = node.constant(1, "the size").ravel()
    if sizes.shape != (2,) or sizes.dtype.kind != "i" or not all(1 <= size <= 4096 for size in sizes):
        raise Unsupported(f"the size must be two numbers of 1..4096, got {sizes.dtype} of shape {sizes.shape}")
    _check_same_scale(node)
    return [(node.shape[1], int(sizes[0])), (node.shape[2], int(sizes[1]))]


@operator("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", domains=TENSORFLOW)
def depth_to_space(node: NodeView) -> None:
    """Channels of a position become positions of a block, or the other way round."""
    node.check_rows()
    _as_kernel(node, 0)


@operator("MIRROR_PAD", domains=TENSORFLOW)
def mirror_pad(node: NodeView) -> None:
    """A map with its mirror image around; the edge itself comes once."""
    node.check_rows()
    if node.attribute("mode", "REFLECT") != "REFLECT":
        raise Unsupported("the mode must be REFLECT, got SYMMETRIC", "pad by REFLECT")
    widths = node.constant(1, "the widths")
    most = np.array(node.shape)[:, None] - 1
    if widths.shape != (4, 2) or widths.dtype.kind != "i" or not ((widths >= 0) & (widths <= most)).all():
        raise Unsupported("there must be two widths for each axis, each smaller than the axis")
    check_shape(node.node.name, (widths.sum(axis=1) + node.shape).tolist(), MOST_MAP)
    _as_kernel(node, 0)


@operator("STRIDED_SLICE", "SLICE", "SPLIT", "SPLIT_V", "TILE", domains=TENSORFLOW, everywhere=True)
def cut(node: NodeView) -> None:
    """Some values of a map, or all of them several times. The first input of SPLIT is the axis."""
    _as_kernel(node, 1 if node.node.op == "SPLIT" else 0)


def _as_kernel(node: NodeView, source: int) -> None:
    """Run the kernel on the numbers of the values, which gives their new order, or some of them. ``source``: which
    input the map is."""
    node.only_map(source)
    _check_same_scale(node, source)
    others = range(len(node.node.inputs))
    places = node.places_as_file()
    node.layout_as_file(run_kernel(node.node, [places if k == source else node.optional(k) for k in others]))


def _check_same_scale(node: NodeView, source: int = 0) -> None:
    if _source(node, source) != _result(node):
        raise Unsupported("the input and the result must have the same scale and zero point")


@operator("FULLY_CONNECTED", domains=TENSORFLOW, everywhere=True)
def fully_connected(node: NodeView) -> None:
    """A dense layer of every so many values, as many as there are inputs: of all, or at each place; weights are
    (outputs, inputs). Without ``keep`` the result has one axis for the places."""
    node.only_map(0)
    if node.attribute("format", 0) != 0:
        raise Unsupported("weights must be in the format DEFAULT, got a shuffled one")
    zero, weight, bias, multipliers = _layer(node, _weights(node, 2))
    grid = Grid(integers=weight)
    keeps = bool(node.attribute("keep", False))
    inputs = weight.shape[1]
    shape = node.shape
    if not inputs or (shape[-1] if keeps else prod(shape)) % inputs:
        raise Unsupported(f"weights must read the values of shape {shape}, or of each place, got {inputs} inputs")
    kept = shape[:-1] if keeps else (prod(shape) // inputs,)
    if prod(kept) > 1:
        if not keeps:
            node.layout_as_file(node.places().reshape(-1, inputs))
        with node.channels_first():
            node.affine(add=-zero)
            dense_at_each_place(node, grid, bias)
            _quantise_sums(node, multipliers, roundings=1)
        return
    node.layout(node.places().reshape(1, -1))
    node.affine(add=-zero)
    dense(node, grid, transposed=False)
    node.affine(add=bias)
    _quantise_sums(node, multipliers, roundings=1)
    node.makes_imageless = False
    if len(kept) > 1:
        node.layout(node.places().reshape(*kept, -1))


def _layer(
    node: NodeView, weight: Array, source: int = 0, biases: int = 2
) -> tuple[int, Array, Array, list[Multiplier]]:
    """The zero point of the input, the weights, the bias and the multipliers of a layer, a channel. ``source``,
    ``biases``: which inputs the map and the bias are."""
    scale, zero = _source(node, source)
    result = _result(node)[0]
    count = len(weight)
    bias = node.optional(biases)
    if bias is not None and (bias.dtype != np.int32 or bias.shape != (count,)):
        raise Unsupported(f"the bias must be {count} numbers of type INT32, got {bias.dtype} of shape {bias.shape}")
    multipliers = [multiplier_of(float(s)) for s in scale * _scale(node, 1).channels(count) / result]
    bias = np.zeros(count, np.int64) if bias is None else bias.astype(np.int64)
    still = np.array([m.multiplier == 0 for m in multipliers])  # a scale of nothing: the same as weights of 0
    if still.any():
        weight = weight * ~still.reshape(-1, *(1,) * (weight.ndim - 1))
        half = multiplier_of(0.5)
        multipliers = [m if m.multiplier else half for m in multipliers]
    return zero, weight, bias * ~still, multipliers


def _quantise_sums(
    node: NodeView, multipliers: Sequence[Multiplier], roundings: int, count: int = 1, activation: str = ""
) -> None:
    """Append the quantiser of sums, or of means of ``count`` values: with one multiplier, or one for each of axis 1."""
    zero = _result(node)[1]
    low, high = _ends(node, activation)
    if len(multipliers) * (high - low) > MOST_BOUNDARIES:
        raise Unsupported(f"it must have at most {MOST_BOUNDARIES // 256:,} channels, got {len(multipliers):,}")
    values = range(low + 1 - zero, high + 1 - zero)
    sums = [multiplier.first_sums(values, roundings) for multiplier in multipliers]
    limits = [[Fraction(2 * first - 1, 2 * count) for first in firsts] for firsts in sums]  # between two sums
    rule = KernelRule(multipliers=tuple(multipliers), low=low - zero, roundings=roundings, count=count)
    _append_levels(node, low, limits, rule=rule)


def _append_levels(node: NodeView, low: int, limits: Sequence[Sequence[Fraction]], **fields: Any) -> None:
    """Append a quantiser to the integers from ``low`` on; ``limits`` of each channel, or of all, are reached."""
    boundaries = Boundaries(limits=np.array(limits, object), reached=np.ones(len(limits[0]), bool))
    node.append(Levels, base=Fraction(low), step=Fraction(1), boundaries=boundaries, **fields)


@operator("AVERAGE_POOL_2D", "MAX_POOL_2D", domains=TENSORFLOW)
def pool_2d(node: NodeView) -> None:
    """The maximum of each window, or the mean of its integers themselves, halves away from zero."""
    average = node.node.op == "AVERAGE_POOL_2D"
    node.only_map(0)
    node.check_rows()
    _check_same_scale(node)
    kernel = tuple(node.node.attributes.get("kernel_shape", ()))
    if len(kernel) != 2 or not all(1 <= size <= 4096 for size in kernel):
        raise Unsupported(f"a window must have 1 to 4096 rows and columns, got {kernel}")
    with node.channels_first():
        node.append(Pooling, window=sliding(node, (kernel[0], kernel[1])), average=average)
        low, high = _ends(node)
        if average or (low, high) != (LOW, HIGH):
            node.quantise_integers(low, high, "HALF_UP")


@operator("MEAN", domains=TENSORFLOW)
def mean(node: NodeView) -> None:
    """The mean over some axes, of values less their zero point."""
    node.only_map(0)
    scale, zero = _source(node)
    result = _result(node)[0]
    node.affine(add=-zero)
    before = prod(node.shape)
    reduce_over(node, _axes(node), average=True, keep=bool(node.attribute("keep", False)))
    count = before // prod(node.shape)
    _quantise_sums(node, [mean_multiplier(scale / result, count)], roundings=2, count=count)


@operator("REDUCE_MAX", domains=TENSORFLOW)
def reduce_max(node: NodeView) -> None:
    """The maximum over some axes."""
    node.only_map(0)
    _check_same_scale(node)
    reduce_over(node, _axes(node), average=False, keep=bool(node.attribute("keep", False)))


def _axes(node: NodeView) -> list[int]:
    return [int(axis) for axis in node.constant(1, "the axes").ravel()[:9]]


@operator("PAD", "PADV2", domains=TENSORFLOW)
def pad(node: NodeView) -> None:
    """Zero points around a map: the convolution that reads it takes them for its own padding. PADV2 has another number,
    the integer that input 2 is."""
    node.only_map(0)
    widths = node.constant(1, "the widths")
    _check_same_scale(node)
    number = _number_around(node, _result(node))
    if len(node.shape) != 3:
        node.check_rows()
    elif widths.shape == (3, 2):  # maps without rows have one
        widths = np.insert(widths, 1, 0, axis=0)
    if widths.shape != (4, 2) or widths.dtype.kind != "i" or not ((widths >= 0) & (widths <= 4096)).all():
        raise Unsupported(f"there must be two widths of 0 to 4096 for each axis, got shape {widths.shape}")
    sides = [(int(before), int(behind)) for before, behind in widths]
    with node.channels_first():
        node.append(Padding, widths=(sides[0], sides[3], *sides[1:3]), value=Fraction(number))


def _number_around(node: NodeView, result: tuple[float, int]) -> int:
    """The integer that comes around a map: input 2, or else the zero point of the ``result``."""
    number = node.optional(2)
    if number is None:
        return result[1]
    if number.size != 1 or _scale(node, 2).per_tensor("the number around a map") != result:
        raise Unsupported("the number around a map must be one, with the map's scale and zero point")
    return int(number.ravel()[0])


@operator("TRANSPOSE", domains=TENSORFLOW, everywhere=True)
def transpose(node: NodeView) -> None:
    """Put the axes of a tensor into another order; values stay."""
    node.only_map(0)
    order = [int(axis) for axis in node.constant(1, "the order of the axes").ravel()[:9]]
    places = node.places_as_file()
    if sorted(order) != list(range(places.ndim)):
        raise Unsupported(f"the axes of {places.shape} must change places, got {order}")
    node.layout_as_file(places.transpose(order))


@operator("QUANTIZE", domains=TENSORFLOW, everywhere=True)
def quantize(node: NodeView) -> None:
    """Real numbers become int8; or 8 bits without a sign become ones with, or the other way round."""
    node.only_map(0)
    source = _scale(node, 0)
    result = _result_scale(node)
    if source.kind == "FLOAT32":
        scale, zero = result.per_tensor("the result")
        exact_scale = np.array(Fraction(scale), object)
        offset = Fraction(zero)
        rule = Rule(scale=exact_scale, zero=offset, low=LOW, high=HIGH, rounding="HALF_UP", zero_after=True)
        node.quantise(rule, integers=True)
        return
    if source.kind == result.kind == "INT8":
        scale, zero = source.per_tensor("the input")
        node.affine(add=-zero)
        _quantise_sums(node, [multiplier_of(scale / result.per_tensor("the result")[0])], roundings=2)
        return
    steps = {("UINT8", "INT8"): -128, ("INT8", "UINT8"): 128}
    step = steps.get((source.kind, result.kind))
    same = np.array_equal(source.scale, result.scale) and source.zero.size == result.zero.size == 1
    if step is None or not same or int(result.zero[0]) - int(source.zero[0]) != step:
        raise Unsupported(
            f"it must make INT8 of FLOAT32, INT8 or UINT8, with the same scale, got {source.kind} to {result.kind}",
            "another scale belongs into the layer before",
        )
    node.affine(add=step)


@operator("DEQUANTIZE", domains=TENSORFLOW, everywhere=True)
def dequantize(node: NodeView) -> None:
    """(value - zero point) * scale."""
    node.only_map(0)
    scale, zero = _source(node)
    node.affine(multiply=Fraction(scale), add=-Fraction(scale) * zero)


@operator("ADD", "SUB", domains=TENSORFLOW, everywhere=True)
def add(node: NodeView) -> None:
    """The sum or the difference of two maps, each with a scale of its own, or of a map and a constant."""
    sign = -1 if node.node.op == "SUB" else 1
    first = _scale(node, 0).per_tensor("input 0")
    second = _scale(node, 1).per_tensor("input 1")
    result = _result(node)
    low, high = _ends(node)
    values = sums_of_pairs(first, second, result, sign)
    slopes = Fraction(first[0]) / Fraction(result[0]), sign * Fraction(second[0]) / Fraction(result[0])
    offset = result[1] - slopes[0] * first[1] - slopes[1] * second[1]
    values = np.clip(values, low, high)
    if node.reads_two_maps:
        table = PairTable(values=values, first=LOW, slopes=slopes, offset=offset, low=low, high=high)
        node.join(Sum, table=table)
        return
    place = 1 - node.node.inputs.index(node.only_map())
    constant = _of_channels(node, place)
    each = values.T[constant - LOW] if place == 1 else values[constant - LOW]  # (channels or 1, 256)
    slope = slopes[1 - place]
    offsets = [slopes[place] * int(number) + offset for number in constant]
    if slope > 0:
        _by_table(node, each, range(low, high + 1), LOW, slope, offsets)
    else:  # the constant less the map
        node.affine(multiply=-1)
        _by_table(node, each[:, ::-1], range(low, high + 1), -HIGH, -slope, offsets)


@operator("MUL", domains=TENSORFLOW, everywhere=True)
def multiply(node: NodeView) -> None:
    """The product of a map and a constant, or of two maps, each less its zero point."""
    (scale, zero), (other_scale, other_zero) = (_scale(node, k).per_tensor(f"input {k}") for k in (0, 1))
    result = _result(node)[0]
    if node.reads_two_maps:
        tensors = []
        for place, number in enumerate((zero, other_zero)):
            node.start(place)
            node.affine(add=-number)
            tensors.append(node.here)
        node.join(Product, tensors)
    else:
        place = node.node.inputs.index(node.only_map())
        node.affine(add=-(zero, other_zero)[place])
        node.affine(multiply=_of_channels(node, 1 - place) - (zero, other_zero)[1 - place])
    _quantise_sums(node, [multiplier_of(single_scale(result, scale, other_scale))], roundings=2)


@operator(*POINTWISE, domains=TENSORFLOW, everywhere=True)
def pointwise(node: NodeView) -> None:
    """A kernel of the integers at each place, of one map and constants, or of maps that are functions of one."""
    _scale(node, 0)
    formula = Formula.of_integers(partial(POINTWISE[node.node.op], node.node.attributes))
    combine(node, formula)
    formula.of_floats(*[np.zeros(1)] * formula.count)  # scales that the kernel refuses are refused here
    node.quantise_integers(*((0, 1) if _result_scale(node).kind == "BOOL" else (LOW, HIGH)))


@operator("MAXIMUM", "MINIMUM", domains=TENSORFLOW, everywhere=True)
def limit(node: NodeView) -> None:
    """The larger or the smaller one of a map and a constant, or of two maps, whose integers the kernel compares as they
    are."""
    result = _result(node)
    for number in (0, 1):
        if _scale(node, number).per_tensor(f"input {number}") != result:
            raise Unsupported("both inputs and the result must have the same scale and zero point")
    if node.reads_two_maps:
        node.join(Extreme, largest=node.node.op == "MAXIMUM", ends=(LOW, HIGH))
        node.quantise_integers(LOW, HIGH)
        return
    place = node.node.inputs.index(node.only_map())
    ends = fractions(_of_channels(node, 1 - place))
    node.elementwise(clip(ends, None) if node.node.op == "MAXIMUM" else clip(None, ends))
    node.quantise_integers(LOW, HIGH)


def _of_channels(node: NodeView, place: int) -> Array:
    """The constant at an input, (channels,) or (1,) int64: one number, or one for each of the last axis."""
    constant = node.constant(place, "the other input")
    last = node.shape[-1]
    if constant.dtype != np.int8 or constant.size not in (1, last) or constant.shape[-1:] not in ((), (constant.size,)):
        rule = f"a constant must be of type INT8 and one number, or one for each of {last} channels"
        raise Unsupported(f"{rule}, got {constant.dtype} of shape {constant.shape}")
    return constant.ravel().astype(np.int64)


def _by_table(
    node: NodeView, values: Array, results: range, first: int, slope: Fraction, offsets: Sequence[Fraction]
) -> None:
    """Append a quantiser by a table: ``values``, (channels or 1, 256), are the results of ``first``, ``first`` + 1 and
    so on; they never fall. Beyond the table they are those of a line, x * slope + offset, with an offset a channel."""
    if len(values) * len(results) > MOST_BOUNDARIES:
        raise Unsupported(f"it must have at most {MOST_BOUNDARIES // 256:,} channels, got {len(values):,}")
    rows = dict(zip(offsets, values))  # channels of one offset have one row
    limits = {offset: _first_places(row, results[1:], first, slope, offset) for offset, row in rows.items()}
    _append_levels(node, results[0], [limits[offset] for offset in offsets], axis=len(node.shape) - 1)


def _first_places(row: Array, results: range, first: int, slope: Fraction, offset: Fraction) -> list[Fraction]:
    """Between which numbers each result begins, of a row of `_by_table`."""
    half = Fraction(1, 2)
    out = []
    for result, place in zip(results, np.searchsorted(row, results).tolist()):
        begin = first + place - half
        if place in (0, len(row)):
            beyond = (result - half - offset) / slope
            begin = max(begin, beyond) if place else min(begin, beyond)
        out.append(begin)
    return out


@operator(*(kind for kind in ENDS if kind != "NONE"), domains=TENSORFLOW, everywhere=True)
def relu(node: NodeView) -> None:
    """An activation as an operator of its own, which may have another scale than what it reads."""
    node.only_map(0)
    scale, zero = _source(node)
    result = _result(node)[0]
    node.affine(add=-zero)
    _quantise_sums(node, [multiplier_of(single_scale(result, scale))], roundings=2, activation=node.node.op)


@operator(*(kind for kind in CURVES if kind not in AT_THE_END), domains=TENSORFLOW, everywhere=True)
def activation_table(node: NodeView) -> None:
    """An activation whose kernel has a result of its own for each int8 value."""
    kind = node.node.op
    node.only_map(0)
    _scale(node, 0)
    constants = [node.constant(place, f"the {name}") for place, name in enumerate(CURVES[kind].constants, 1)]
    node.elementwise(table_curve(kind, node_table(kind, node.node.attributes, constants)))
    node.quantise_integers(LOW, HIGH)


@operator("CONCATENATION", domains=TENSORFLOW)
def concatenation(node: NodeView) -> None:
    """Maps behind one another, all of one scale."""
    if len(node.maps) != len(node.node.inputs):
        raise Unsupported("a map must be concatenated with maps, got a constant")
    result = _result(node)
    for place in range(len(node.maps)):
        scale, zero = _scale(node, place).per_tensor(f"input {place}")
        if (scale, zero) != result:
            raise Unsupported(
                f"its maps must have the result's scale and zero point, {result[0]:g} and {result[1]}, got {scale:g} "
                f"and {zero} at input {place}"
            )
    if str(node.attribute("activation", "NONE")) != "NONE":
        raise Unsupported("an activation behind it must be NONE", "it belongs into the layers before")
    axis = int(node.attribute("axis", 0))
    node.start(0)
    if len(node.shape) == 4 and axis % 4 in (1, 2):
        _below_one_another(node, axis % 4, result[1])
    else:
        node.concatenate(axis)


def _below_one_another(node: NodeView, axis: int, zero: int) -> None:
    """Rows, or columns, of maps behind one another: the sum of maps that are as large as the result, each worth 0 where
    the others are."""
    sizes = []
    for place in range(len(node.maps)):
        node.start(place)
        sizes.append(node.shape[axis])
    first = ""
    for place in range(len(sizes)):
        node.start(place)
        widths = [(0, 0)] * 4
        widths[axis] = sum(sizes[:place]), sum(sizes[place + 1 :])
        node.affine(add=-zero)
        node.append(Padding, widths=tuple(widths), value=Fraction(0))
        if first:
            node.join(Sum, (first, node.here))
            node.affine(add=zero)
            node.quantise_integers(LOW, HIGH)
        if 0 < place < len(sizes) - 1:
            node.affine(add=-zero)
        first = node.here


def _weights(node: NodeView, rank: int) -> Array:
    weight = node.constant(1, "weights")
    _scale(node, 1).check_kind("weights")
    if weight.ndim != rank:
        raise Unsupported(f"weights must have {rank} axes, got {weight.ndim}")
    return weight.astype(np.int64)


def _scale(node: NodeView, place: int) -> TensorScale:
    scales = node.node.attributes.get("scales", ())
    scale = scales[place] if isinstance(scales, tuple) and place < len(scales) else None
    if not isinstance(scale, TensorScale):
        raise Unsupported("it must be read from a TFLite file, which says what its integers are worth")
    return scale


def _source(node: NodeView, place: int = 0) -> tuple[float, int]:
    """Scale and zero point of the map, which is at input ``place``."""
    return _scale(node, place).per_tensor("the input")


def _result(node: NodeView) -> tuple[float, int]:
    """Scale and zero point of what the node makes."""
    return _result_scale(node).per_tensor("the result")


def _ends(node: NodeView, activation: str = "") -> tuple[int, int]:
    """The smallest and the largest integer that an activation leaves, by default the node's own."""
    return activation_ends(activation or str(node.attribute("activation", "NONE")), *_result(node))


def _result_scale(node: NodeView) -> TensorScale:
    _scale(node, 0)
    scale = node.node.attributes["result_scale"]
    assert isinstance(scale, TensorScale)
    return scale
