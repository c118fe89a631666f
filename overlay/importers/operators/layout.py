"""Operators that put values into another shape or order."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, lcm, prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.bends import bend
from bitloom.overlay.importers.budget import VALUE_BYTES, take
from bitloom.overlay.importers.constants import run_node
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Padding
from bitloom.overlay.importers.rationals import fractions
from bitloom.overlay.importers.source import MOST_MAP, check_shape

from .interpolate import interpolate, repeated
from .registry import operator


def _centre(place: int, size: int, wanted: int) -> Fraction:
    """The place whose centre lies where that of a ``place`` of the ``wanted`` ones does."""
    return Fraction((2 * place + 1) * size - wanted, 2 * wanted)


COORDINATES: Mapping[str, Callable[[int, int, int], Fraction]] = {
    "asymmetric": lambda place, size, wanted: Fraction(place * size, wanted),
    **dict.fromkeys(("half_pixel", "half_pixel_symmetric"), _centre),
    "pytorch_half_pixel": lambda place, size, wanted: _centre(place, size, wanted) if wanted > 1 else Fraction(0),
    "align_corners": lambda place, size, wanted: Fraction(place * (size - 1), max(wanted - 1, 1)),
}
"""Where a place of the ``wanted`` ones of an axis lies among those that the axis has, by ONNX's word for the rule."""
ROUNDINGS: Mapping[str, Callable[[Fraction], int]] = {
    "floor": floor,
    "ceil": ceil,
    "round_prefer_floor": lambda place: ceil(place - Fraction(1, 2)),
    "round_prefer_ceil": lambda place: floor(place + Fraction(1, 2)),
}
"""The nearest place, by ONNX's word for the rule."""


@operator("Resize", "Upsample")
def resize(node: NodeView) -> None:
    """Nearest or linear upsampling by whole numbers."""
    node.only_map(0)
    mode = str(node.attribute("mode", "nearest"))
    older = node.node.op == "Upsample" or node.opset < 11
    coordinates = "asymmetric" if older else str(node.attribute("coordinate_transformation_mode", "half_pixel"))
    rounding = "floor" if older else str(node.attribute("nearest_mode", "round_prefer_floor"))
    if mode not in ("nearest", "linear") or coordinates not in COORDINATES or rounding not in ROUNDINGS:
        got = ", ".join(word[:40] for word in (mode, coordinates, rounding))
        rule = "it must be nearest or linear upsampling"
        raise Unsupported(f"{rule}, got {got}", "upsample so, or by a transposed convolution")
    wanted = _wanted(node, 1 if older else 2)
    check_shape(node.node.name, wanted, MOST_MAP)
    sources = [
        [COORDINATES[coordinates](place, *sizes) for place in range(sizes[1])] for sizes in zip(node.shape, wanted)
    ]
    if mode == "nearest":
        nearest = [np.array([ROUNDINGS[rounding](place) for place in places], np.int64) for places in sources]
        repeat(node, [places.clip(0, size - 1) for places, size in zip(nearest, node.shape)])
        return
    if wanted[:2] != list(node.shape[:2]):
        raise Unsupported(f"rows and columns alone may be interpolated, got {tuple(wanted)} of {node.shape}")
    with node.as_rows():
        node.check_rows()
        of_rows = [[Fraction(0)]] if node.in_rows else []
        shares = [_shares(places, size) for places, size in zip([*of_rows, *sources[2:]], node.shape[2:])]
        integers = node.integers
        if interpolate(node, shares) and integers is not None:
            _cut_off(node, integers, prod(int(each[0].sum()) for each in shares))
        repeated(node, shares)


def _cut_off(node: NodeView, ends: tuple[int, int], one: int) -> None:
    """Append the integers that are left of numbers, whole multiples of 1 / ``one``, without what lies behind the point,
    as onnxruntime has them of its float32."""
    if one & (one - 1):  # not exactly in float32
        rule = f"linear upsampling of integers must have shares of halves, quarters and so on, got shares of {one}"
        raise Unsupported(rule, "quantise with QuantFormat.QDQ, or make rows and columns 2 or 4 times as many")
    if ends[0] < 0:  # numbers below 0 go upwards, as those above it go downwards
        little = Fraction(1, one)
        node.elementwise(bend("linear upsampling of integers of both signs", [(little - 1, 0), (0, 0)], (1, 1)))
    node.quantise_integers(*ends, "FLOOR")


def _shares(places: Sequence[Fraction], size: int) -> Array:
    """The share that each of ``size`` rows or columns has at each of some places between them: (places, size) int64."""
    take(held=VALUE_BYTES * len(places) * size)
    one = lcm(*(place.denominator for place in places))
    shares = np.zeros((len(places), size), np.int64)
    for number, place in enumerate(places):
        before = floor(place)
        for read, share in ((before, 1 + before - place), (before + 1, place - before)):
            shares[number, min(max(read, 0), size - 1)] += int(share * one)
    return shares


def _wanted(node: NodeView, place: int) -> list[int]:
    """The shape that a Resize makes: that of input ``place`` + 1, or given by the scales of input ``place``."""
    rank = len(node.shape)
    axes = [int(axis) % rank for axis in node.attribute("axes", tuple(range(rank)))]
    scales = node.optional(place)
    sizes = node.optional(place + 1) if scales is None or not scales.size else None
    scales = np.array(node.attribute("scales", ()), np.float32) if scales is None else scales.ravel()
    wanted = list(node.shape)
    if sizes is None and len(scales) == len(axes) and all(0 < scale <= 4096 for scale in scales):
        for axis, scale in zip(axes, scales):
            larger = wanted[axis] * Fraction(float(scale))
            if larger.denominator != 1:  # then places lie as far apart as the scale says, not as the sizes do
                raise Unsupported(f"scales must make whole numbers of rows and columns, got {float(scale):g}")
            wanted[axis] = int(larger)
    elif sizes is not None and sizes.shape == (len(axes),):
        for axis, size in zip(axes, sizes):
            wanted[axis] = int(size)
    else:
        raise Unsupported(f"scales or sizes must be {len(axes)} constants")
    return wanted


def repeat(node: NodeView, sources: Sequence[Array]) -> None:
    """Append a layout that has each place of an axis several times, one behind the other: ``sources`` says for each
    axis which places come."""
    order = node.places()
    for axis, (size, places) in enumerate(zip(node.shape, sources)):
        times = len(places) // size
        if not times or times * size != len(places) or (places != np.arange(len(places)) // times).any():
            rule = "rows and columns must become a whole number as many, each coming as often as the others"
            raise Unsupported(f"{rule}, got {len(places)} of {size}")
        take(held=VALUE_BYTES * order.size * times)
        check_shape(node.node.name, [*order.shape[:axis], len(places), *order.shape[axis + 1 :]], MOST_MAP)
        order = order.repeat(times, axis=axis)
    node.layout(order)


MOVES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "DepthToSpace", "SpaceToDepth", "Slice", "Split")
"""Operators that put values elsewhere."""


@operator(*MOVES, everywhere=True)
def layout(node: NodeView) -> None:
    """Run the operator on the numbers of the values, which gives their new order, or some of them."""
    node.only_map(0)
    inputs = [node.places_as_file(), *(node.optional(place) for place in range(1, len(node.node.inputs)))]
    node.layout_as_file(run_node(node.node, inputs, node.opset)[0])


@operator("Pad")
def pad(node: NodeView) -> None:
    """Values around a map, one number, those of its edges or those behind these, mirrored: widths and value are
    attributes in older files."""
    node.only_map(0)
    mode = str(node.attribute("mode", "constant"))
    if mode not in ("constant", "edge", "reflect"):
        raise Unsupported(f"mode must be constant, edge or reflect, got {mode[:40]}")
    rank = len(node.shape)
    given = node.optional(1)
    number = node.optional(2)
    some = node.optional(3)
    pads = node.attribute("pads", ()) if given is None else tuple(int(v) for v in given.ravel())
    value = Fraction(float(node.attribute("value", 0.0))) if number is None else fractions(number).ravel()[0]
    axes = range(rank) if some is None else [int(axis) % rank for axis in some.ravel()]
    if len(pads) != 2 * len(axes) or not all(0 <= v <= 4096 for v in pads):
        raise Unsupported(f"pads must be {2 * len(axes)} integers of 0..4096, got {pads}")
    widths = dict(zip(axes, zip(pads[: len(axes)], pads[len(axes) :])))
    if any(widths.get(0, (0, 0))):
        raise Unsupported("the number of images must not be padded")
    sides = tuple(widths.get(axis, (0, 0)) for axis in range(rank))
    if mode == "reflect" and any(max(pair) >= size for size, pair in zip(node.shape, sides) if any(pair)):
        raise Unsupported(f"pads that reflect must be smaller than the map, got {pads} around {node.shape}")
    if mode != "constant":
        check_shape(node.node.name, [size + sum(pair) for size, pair in zip(node.shape, sides)], MOST_MAP)
        node.layout(np.pad(node.places(), sides, mode="edge" if mode == "edge" else "reflect"))
    else:
        node.append(Padding, widths=sides, value=value)
