"""Working place of an operator's function: a node, known facts of its tensors, and the operations that the function
appends."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .budget import FRACTION_BYTES, LEVEL_STEPS, VALUE_BYTES, take
from .constants import grid_of
from .errors import Unsupported, printable
from .links import Line, Link
from .operations import Concatenation, Elementwise, Layout, Levels, Operation, Pointwise
from .quantisers import Grid, Rule
from .rationals import fractions
from .source import MOST_MAP, STANDARD, Shape, SourceNode, check_shape
from .tensors import Tensors

KINDS = {int: "a number", float: "a number", str: "a text", tuple: "a list"}
"""How messages name the types of attributes."""
REAL = ("DequantizeLinear", "Cast", "CastLike")
"""Operators of integers that may make real numbers, whole ones too; all others keep the type."""


class NodeView:
    """A node while it is rewritten into operations; each appended operation reads the result of the one before.

    Parameters
    ----------
    node : SourceNode
    tensors : Tensors
        Known facts of the tensors that it reads; facts of those that it makes are noted there.
    following : str
        Name of the first node behind it that the host can't compute at the network's end; empty if there is none.
    """

    def __init__(self, node: SourceNode, tensors: Tensors, following: str) -> None:
        self.node = node
        self.following = following
        self._tensors = tensors
        self.opset = tensors.opset
        self.operations: list[Operation] = []
        self.in_rows = False
        self._here = ""
        self.makes_imageless = self.imageless
        keeps = node.domain == STANDARD and node.op not in REAL
        known = {tensors.types.get(name) for name in self.maps} if keeps else set()
        self.makes_type = known.pop() if len(known) == 1 else None
        """The smallest and the largest number of the type of integers that it makes; None of other types, and of those
        that nobody knows."""

    @property
    def maps(self) -> list[str]:
        """Tensors among the inputs that are no constants."""
        return [name for name in self.node.inputs if name and name not in self._tensors.values]

    @property
    def reads_two_maps(self) -> bool:
        """Whether the node reads two maps, and nothing else."""
        return len(self.maps) == 2 == len(self.node.inputs)

    @property
    def shape(self) -> Shape:
        """Shape of what the last operation made, or of the tensor that the node reads."""
        return self._tensors.shapes[self._here or self.only_map()]

    @property
    def imageless(self) -> bool:
        """Whether the maps among the inputs begin with another axis in the file than that of the images."""
        return any(name in self._tensors.imageless for name in self.maps)

    def check_images(self, everywhere: bool) -> None:
        """Raise Unsupported if maps must begin with the axis of the images and don't: if the operator isn't one
        for ``everywhere``, or other inputs may have that axis."""
        lacking = [name for name in self.maps if name in self._tensors.imageless]
        if not lacking:
            return
        others = [self._tensors.values[name] for name in self.node.inputs if name in self._tensors.values]
        rank = min(len(self._tensors.shapes[name]) for name in self.maps)
        if not everywhere or lacking != self.maps or any(each.ndim >= rank for each in others):
            shapes = " and ".join(str(self._tensors.shapes[name][1:]) for name in lacking)
            raise Unsupported(f"the number of images must be the first axis of what it reads, got shape {shapes}")

    def axis(self, name: str, default: int) -> int:
        """An attribute that is an axis, of `shape`; below 0 it is counted from the last one."""
        axis = int(self.attribute(name, default))
        return axis + (self.imageless and axis >= 0)

    def only_map(self, place: int | None = None) -> str:
        """The one tensor that the node reads; at input ``place``, if that is said.

        Raises
        ------
        Unsupported
            If there are several, or the tensor is elsewhere.
        """
        maps = self.maps
        if len(maps) != 1:
            raise several_maps(len(maps))
        if place is not None and (len(self.node.inputs) <= place or self.node.inputs[place] != maps[0]):
            raise Unsupported(f"input {place} must be the map and the others constants")
        return maps[0]

    def check_inputs(self, count: int) -> None:
        """Raise Unsupported unless the node has so many inputs."""
        if len(self.node.inputs) != count:
            raise Unsupported(f"the number of inputs must be {count}, got {len(self.node.inputs)}")

    def check_rows(self) -> None:
        """Raise Unsupported unless the map has rows and columns."""
        if len(self.shape) != 4:
            raise Unsupported(f"maps must have rows and columns, got shape {self.shape}")

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute of the node, of the type of its default; None stands for a number that may be missing."""
        value = self.node.attributes.get(name, default)
        if value is default:
            return value
        number = isinstance(value, int | float) and math.isfinite(value)
        if not (number if default is None or isinstance(default, int | float) else isinstance(value, type(default))):
            kind = "a number" if default is None else KINDS[type(default)]
            raise Unsupported(f"attribute {name} must be {kind}, got {printable(repr(value))}")
        return value

    def constant(self, place: int, what: str) -> Array:
        """The constant at input ``place``; Unsupported if there is none."""
        value = self.optional(place)
        if value is None:
            raise Unsupported(f"{what} must be given as a constant")
        return value

    def optional(self, place: int) -> Array | None:
        """The constant at input ``place``; None if the input is left out, Unsupported if it is a map."""
        name = self.node.inputs[place] if place < len(self.node.inputs) else ""
        if name and name not in self._tensors.values:
            raise Unsupported(f"input {place} must be a constant, got a map")
        return self._tensors.values[name] if name else None

    def weights(self, place: int) -> Grid:
        """The weights at input ``place``: integers times a scale.

        Raises
        ------
        Unsupported
            If they are real numbers.
        """
        values = self.constant(place, "weights")
        grid = self._tensors.grids.get(self.node.inputs[place]) or grid_of(values)
        if grid is None:
            raise Unsupported(
                "weights must be integers times a scale, got real numbers",
                "quantise them in training (Brevitas, QKeras) or after it (onnxruntime's quantize_static)",
            )
        return grid

    def has_constant(self, place: int) -> bool:
        """Whether input ``place`` is a constant."""
        return any(name in self._tensors.values for name in self.node.inputs[place : place + 1])

    @contextmanager
    def reading(self, inputs: Sequence[str | Array | Grid]) -> Iterator[None]:
        """In the block, the node reads these tensors, and constants, in place of its inputs."""
        node, tensors = self.node, self._tensors
        names = [each if isinstance(each, str) else f"constant {place}" for place, each in enumerate(inputs)]
        grids = {name: each for name, each in zip(names, inputs) if isinstance(each, Grid)}
        arrays = {name: each for name, each in zip(names, inputs) if isinstance(each, np.ndarray)}
        values = {**arrays, **{name: grid.integers for name, grid in grids.items()}}
        self.node = replace(node, inputs=tuple(names))
        self._tensors = replace(tensors, values=values, grids=grids)
        self._here = ""
        yield
        self.node = node
        self._tensors = tensors

    def start(self, place: int) -> None:
        """Let the next operation read the map at input ``place``.

        Raises
        ------
        Unsupported
            If there is no map.
        """
        if place >= len(self.node.inputs) or self.node.inputs[place] not in self._tensors.shapes:
            raise Unsupported(f"input {place} must be a map, got a constant")
        self._here = self.node.inputs[place]

    @property
    def here(self) -> str:
        """The tensor that the next operation reads."""
        return self._here or self.only_map()

    def append(self, kind: type[Operation], **fields: Any) -> None:
        """Append an operation of a kind; it reads the last operation's result, the first one the node's tensor."""
        self._append(kind, (self._here or self.only_map(),), **fields)

    def join(self, kind: type[Pointwise], tensors: Sequence[str] = (), **fields: Any) -> None:
        """Append an operation of the values at each place of the tensors that the node reads, or of others."""
        self._append(kind, self._of_one_shape(tensors or self.maps), **fields)

    def _of_one_shape(self, tensors: Sequence[str]) -> tuple[str, ...]:
        """Tensors, of which one is repeated where another one has more rows and columns: a value a channel."""
        shapes = [self._tensors.shapes[name] for name in tensors]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return tuple(tensors)  # refused by the operation
        out = []
        for name, before in zip(tensors, shapes):
            if before != shape:
                check_shape(self.node.name, shape, MOST_MAP)
                self._here = name
                self.layout(np.broadcast_to(self.places(), shape))
                name = self.here
            out.append(name)
        return tuple(out)

    def concatenate(self, axis: int, tensors: Sequence[str] = ()) -> None:
        """Append the concatenation of the tensors that the node reads, in the order of its inputs, or of others."""
        names = tuple(tensors) or tuple(name for name in self.node.inputs if name)
        rank = len(self._tensors.shapes[names[0]])
        if axis not in range(-rank, rank) or axis % rank == 0:
            raise Unsupported(f"the axis must be one of the values of an image, got {axis}")
        self._append(Concatenation, names, axis=axis % rank)

    def _append(self, kind: type[Operation], reads: tuple[str, ...], **fields: Any) -> None:
        makes = f"{self.node.outputs[0]}/{len(self.operations)}"
        operation = kind(name=self.node.name, op=self.node.op, reads=reads, makes=makes, **fields)
        shapes = [self._tensors.shapes[name] for name in reads]
        if len(self.operations) == 0:
            take(held=VALUE_BYTES * sum(map(math.prod, shapes)))
        take(
            held=sum(_bytes_of(array) for value in fields.values() for array in _arrays_of(value)),
            steps=LEVEL_STEPS * operation.boundaries.limits.size if isinstance(operation, Levels) else 0,
        )
        self._tensors.shapes[makes] = operation.shape(*shapes)
        known = [self._tensors.ranges[name] for name in reads if name in self._tensors.ranges]
        ends = operation.whole(*known) if len(known) == len(reads) and self.node.op not in REAL else None
        if ends is not None:
            self._tensors.ranges[makes] = ends
        self.operations.append(operation)
        self._here = makes

    def affine(self, multiply: Any = 1, add: Any = 0) -> None:
        """Append x * multiply + add, of numbers or of arrays that spread over one image."""
        self.elementwise(Line(multiply=_exact(multiply), add=_exact(add)))

    def elementwise(self, link: Link) -> None:
        """Append a function of each value, whose parameters spread over one image."""
        self.append(Elementwise, link=link)

    def quantise(self, rule: Rule, *, integers: bool = False) -> None:
        """Append a quantiser: of real values, or with ``integers`` of the integers that stand for them.

        Where channels have scales of their own, real values are those of the first one's, and a line behind them.
        """
        axis = self._axis_of(rule.scale)
        boundaries = rule.boundaries()
        step: Fraction = Fraction(1) if integers else rule.scale.flat[0]
        base = Fraction(rule.low) if integers else (rule.low - rule.zero) * step
        self.append(Levels, base=base, step=step, boundaries=boundaries, axis=axis)
        if integers:
            self._tensors.ranges[self.here] = rule.low, rule.high
        if rule.scale.size > 1 and not integers:
            self.affine(multiply=rule.scale / step)

    def quantise_linear(self, rule: Rule) -> None:
        """Append a quantiser to the integers of a type, as QuantizeLinear has them."""
        self.quantise(rule, integers=True)
        self.makes_type = rule.low, rule.high

    def _axis_of(self, scale: Array) -> int:
        """The axis of the map along which a quantiser's scales spread."""
        sizes = (1,) * (len(self.shape) - scale.ndim) + scale.shape
        several = [axis for axis, size in enumerate(sizes) if size > 1]
        if len(several) > 1 or 0 in several or len(sizes) > len(self.shape):
            raise Unsupported(f"a map's scale must be one number, or one a channel, got shape {scale.shape}")
        return several[0] if several else 1

    @property
    def integers(self) -> tuple[int, int] | None:
        """The least and the largest value of the map, if it is known to hold integers."""
        return self._tensors.ranges.get(self.only_map())

    def quantise_integers(self, low: int, high: int, rounding: str = "ROUND") -> None:
        """Append a quantiser of a map of integers, or of means of them, to the integers of ``low`` to ``high``."""
        unit_scale = np.array(Fraction(1), object)
        self.quantise(Rule(scale=unit_scale, zero=Fraction(0), low=low, high=high, rounding=rounding), integers=True)

    def keeps_integers(self, low: int, high: int) -> bool:
        """Whether the map is one of integers, all from ``low`` to ``high``; then what the node makes is one, too."""
        integers = self.integers
        if integers is None or not low <= integers[0] <= integers[1] <= high:
            return False
        self._tensors.ranges[self.node.outputs[0]] = integers
        return True

    def check_type(self) -> None:
        """Raise Unsupported if the integers that it makes may be none of their type."""
        ends = self._tensors.ranges.get(self.here)
        if ends is None or self.makes_type is None:
            return
        low, high = self.makes_type
        if not low <= ends[0] <= ends[1] <= high:
            rule = f"what it makes must be integers of its type, {low}..{high}, got {ends[0]}..{ends[1]}"
            raise Unsupported(rule, "put DequantizeLinear before it")

    def layout(self, order: Array) -> None:
        """Append another order of the values: see `operations.Layout`."""
        self.append(Layout, order=order)

    def layout_as_file(self, order: Array) -> None:
        """Append another order of the values, as an operator makes it of `places_as_file`: without an axis of images in
        front, where the first one isn't 1."""
        if order.ndim == 0:
            raise Unsupported(f"the number of images must stay the first axis, got shape {order.shape}")
        self.makes_imageless = order.ndim > 1 and order.shape[0] != 1
        self.layout(order[None] if self.makes_imageless or order.ndim == 1 else order)

    @contextmanager
    def as_rows(self) -> Iterator[None]:
        """In the block, maps without rows, (1, channels, columns), have one; `in_rows` says so."""
        shape = self.shape
        self.in_rows = len(shape) == 3
        if self.in_rows:
            self.layout(self.places().reshape(1, shape[1], 1, shape[2]))
        yield
        if self.in_rows:
            self.layout(self.places()[:, :, 0])

    @contextmanager
    def channels_first(self) -> Iterator[None]:
        """In the block, a map (1, ..., channels) is (1, channels, rows, columns), the columns being the last axis but
        one."""
        before = self.shape
        self.layout(self.places().reshape(1, -1, *before[-2:]).transpose(0, 3, 1, 2))
        yield
        places = self.places().transpose(0, 2, 3, 1)
        self.layout(places if len(before) == 4 else places.reshape(*before[:-2], *places.shape[2:]))

    def per_channel(self, values: Array) -> Array:
        """Numbers a channel, (C,), as they spread over a tensor with channels at axis 1."""
        shape = self.shape
        if values.shape != (shape[1],):
            raise Unsupported(f"there must be {shape[1]} parameters, one a channel, got shape {values.shape}")
        spread = [1] * len(shape)
        spread[1] = -1
        return values.reshape(spread)

    def places(self) -> Array:
        """Numbers 0, 1, ... for the values of one image, in the tensor's shape; a layout puts them in another order."""
        count = math.prod(self.shape)
        if count > MOST_MAP:  # before the numbers take memory
            raise Unsupported(f"a map must have at most {MOST_MAP:,} values, got {count:,}")
        return np.arange(count).reshape(self.shape)

    def places_as_file(self) -> Array:
        """`places` of the tensor that the node reads, in the shape that it has in the file."""
        return self.places()[0] if self.imageless else self.places()


def several_maps(count: int) -> Unsupported:
    """Why an operator that reads several maps can't be imported."""
    return Unsupported(
        f"one input must be a map and the others constants, got {count} maps",
        "what joins maps must be a sum, a difference, a product, TFLite's maximum or minimum of two, "
        "a concatenation, or a function of one map",
    )


def _arrays_of(field: Any) -> Sequence[Array]:
    """The arrays that a field of an operation holds."""
    if isinstance(field, Link):
        return field.parameters
    return [field] if isinstance(field, np.ndarray) else []


def _bytes_of(values: Array) -> int:
    """Bytes that an array takes, with the fractions in it."""
    return values.size * FRACTION_BYTES if values.dtype == object else values.nbytes


def _exact(values: Any) -> Array:
    if isinstance(values, Fraction | int | float):
        return np.array(Fraction(values), object)
    return fractions(np.asarray(values))
