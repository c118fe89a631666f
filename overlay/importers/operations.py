"""Operations: the few kinds of operators that all others are rewritten into, on tensors of real numbers.

A tensor has the number of images in front, which is 1 in shapes. What an operation computes is stated twice: exactly,
by its fields, and by `run` in float64, by which passes are verified.

=============  ==================================================================
operation      makes of x
=============  ==================================================================
Elementwise    a function of each value: see links.py
Levels         base + step * (how many boundaries x has reached): every quantiser
Linear         sums of weight * x over windows, weights being integers times a scale
Pooling        the maximum or the mean of each window
AxesReduction  the maximum or the mean over whole axes
Padding        the same values with others around and between
Layout         the same values in another shape or order, some perhaps again
Sum            of x and y: x + y, or what a table says for each pair of integers
Difference     of x and y: x - y
Product        of x and y: x * y
Extreme        of x and y: the larger or the smaller one
Combination    of any number of tensors: any function of the values at each place
Concatenation  of any number of tensors: their values behind one another
Closing        softmax, argmax and what else the host does at the end
=============  ==================================================================
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import Any, ClassVar, TypeVar

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import walk
from bitloom.golden.host.host import CLOSINGS
from bitloom.golden.layers.add import Add, Pairwise
from bitloom.golden.layers.lookup import ENTRIES
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.limits import TAPS
from bitloom.golden.window import Window

from .curves import Formula
from .errors import Unsupported
from .integer_types import Ends
from .links import Link
from .rationals import floats
from .rows import Boundaries
from .source import MOST_CHANNELS, MOST_MAP, MOST_WEIGHTS, Shape, check_shape
from .tflite_rules import ONE, KernelRule

AnyOperation = TypeVar("AnyOperation", bound="Operation")
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(ABC):
    """One operation of a graph."""

    reads_map: ClassVar[bool] = False
    """Whether an engine computes it, of maps."""
    makes_map: ClassVar[bool] = False
    """Whether a map begins with what it makes: whatever changes the values of a tensor counts from there."""

    name: str
    """Of the node that it was made of."""
    op: str
    """That node's operator."""
    reads: tuple[str, ...]
    """The tensors that it reads: one, but for `Join`."""
    makes: str
    """The tensor that it makes."""

    def become(self, kind: type[AnyOperation], **fields: Any) -> AnyOperation:
        """An operation of another kind in place of this one, of the same node and tensors unless fields say others."""
        return kind(**{"name": self.name, "op": self.op, "reads": self.reads, "makes": self.makes, **fields})

    @property
    def picks(self) -> bool:
        """Whether each value that it makes is one of those that it reads."""
        return False

    def whole(self, *ends: Ends) -> Ends | None:
        """The least and the largest integer that it makes of integers between these ends, of each tensor that it reads;
        None if they may be others than integers."""
        lows, highs = zip(*ends)
        return (min(lows), max(highs)) if self.picks else None

    @property
    def keeps_largest(self) -> bool:
        """Whether of the largest value of a channel it makes the largest one: it is a function of each value, alike at
        all places of a channel, and never falls."""
        return False

    @property
    def monotone(self) -> bool:
        """Whether each value that it makes rises with all values of a tensor that it reads, or falls with all."""
        return True

    @property
    def unit(self) -> float:
        """Distance of neighbouring values that it makes, where it quantises; else 0."""
        return 0.0

    @property
    def host_refusal(self) -> str:
        """Why the host can't compute it at an end of the network; empty if it can."""
        return ""

    @abstractmethod
    def shape(self, *sources: Shape) -> Shape:
        """The shape of what the operation makes of tensors of these shapes; Unsupported if it can't."""

    @abstractmethod
    def run(self, *tensors: Array) -> Array:
        """The result of the operation for tensors, each (N, ...) float64: float64."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(Operation):
    """An operation that makes each value of the value at the same place."""

    @property
    @abstractmethod
    def is_uniform(self) -> bool:
        """Whether it is one function for all values of its tensor."""

    @property
    @abstractmethod
    def anywhere(self) -> "Function":
        """This function for a tensor of any shape; it must be uniform."""

    @abstractmethod
    def value(self, x: Fraction) -> Fraction:
        """The function's value at a number; it must be uniform."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Elementwise(Function):
    """A link that is applied to each value."""

    link: Link
    """Its parameters spread over a tensor of one image."""

    @property
    def reads_map(self) -> bool:  # type: ignore[override]  # an engine looks curves up
        return self.link.looked_up

    @property
    def is_uniform(self) -> bool:
        return self.link.is_uniform

    @property
    def anywhere(self) -> "Elementwise":
        return replace(self, link=self.link.placed(lambda array: array.ravel()[:1]))

    def value(self, x: Fraction) -> Fraction:
        return self.link.value(x)

    def whole(self, *ends: Ends) -> Ends | None:
        ((low, high),) = ends
        if high - low >= ENTRIES or self.link.looked_up or not self.is_uniform:
            return None
        values = {self.value(Fraction(number)) for number in range(low, high + 1)}
        if any(value.denominator != 1 for value in values):
            return None
        return int(min(values)), int(max(values))

    @property
    def keeps_largest(self) -> bool:
        alike = all(array.size == 1 or array.shape[-2:] == (1, 1) for array in self.link.parameters)
        return alike and not self.link.falls.any()

    @property
    def monotone(self) -> bool:
        return self.link.reversible

    @property
    def host_refusal(self) -> str:
        if self.link.on_host:
            return ""
        return "at a network's ends the host computes lines and clips alone; put a quantiser behind it"

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        for array in self.link.parameters:
            _check_spread(array, source)
        return source

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        return self.link.run(x)


def _check_spread(values: Array, source: Shape) -> None:
    """Refuse constants that make a tensor larger."""
    try:
        shape = np.broadcast_shapes(values.shape, source)
    except ValueError:
        shape = ()
    if shape != source:
        raise Unsupported(f"constants must spread over a tensor of shape {source}, got shape {values.shape}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels(Function):
    """A quantiser: base + step * level, where level is the number of boundaries that x has reached."""

    makes_map: ClassVar[bool] = True

    base: Fraction
    """The value of level 0."""
    step: Fraction
    """Distance of neighbouring values, > 0."""
    boundaries: Boundaries
    axis: int = 1
    """The tensor's axis of the channels."""
    rule: KernelRule | None = None
    """The rule of TFLite that the boundaries were made of, for a sum and its bias."""

    @property
    def levels(self) -> int:
        """The highest level."""
        return self.boundaries.count

    @property
    def line(self) -> tuple[Fraction, Fraction]:
        """(slope, offset): rounding and clips aside, a value x of the first channel has level slope * x + offset."""
        if self.rule is not None:
            multiplier = self.rule.multipliers[0]
            slope = self.rule.count * Fraction(multiplier.multiplier, ONE) * Fraction(2) ** multiplier.shift
            return slope, Fraction(-self.rule.low)
        limits = self.boundaries.limits[0]
        slope = (len(limits) - 1) / (limits[-1] - limits[0]) if limits[-1] > limits[0] else Fraction(1)
        return slope, Fraction(1, 2) - limits[0] * slope

    @property
    def is_uniform(self) -> bool:
        return self.boundaries.is_uniform

    @property
    def anywhere(self) -> "Levels":
        return self

    def value(self, x: Fraction) -> Fraction:
        (level,) = self.boundaries.level(np.array([x], object))
        return self.base + self.step * int(level)

    @property
    def keeps_largest(self) -> bool:
        return self.is_uniform or self.axis == 1

    @property
    def unit(self) -> float:
        return float(self.step)

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        count = len(self.boundaries.limits)
        if count not in (1, source[self.axis]):
            raise Unsupported(f"thresholds must be for 1 or {source[self.axis]} channels, got {count}")
        return source

    def level(self, x: Array) -> Array:
        """The level of each value: (N, ...) float64 -> int64."""
        moved = np.moveaxis(np.asarray(x, np.float64), self.axis, -1)
        return np.moveaxis(self.boundaries.in_floats.level(moved), -1, self.axis)

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        return float(self.base) + float(self.step) * self.level(x)


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear(Operation):
    """Sums of products over windows; a dense layer is the one window of a flat tensor."""

    reads_map: ClassVar[bool] = True
    makes_map: ClassVar[bool] = True

    weight: Array
    """(outputs, inputs / groups, rows, columns) or (outputs, inputs) int64: in ONNX's order."""
    groups: int = 1
    """Groups that inputs and outputs are cut into; outputs read the inputs of their own group alone."""
    scale: Array
    """(outputs,) array of Fraction: what an integer weight is worth; of any sign."""
    window: Window | None
    """None for a dense layer."""
    real: Array | None = None
    """Real numbers of which ``weight`` are the signs, in the same order."""

    @property
    def aside(self) -> "Linear":
        """This operation for a map on its side, whose rows are the columns."""
        assert self.window is not None
        real = None if self.real is None else self.real.transpose(0, 1, 3, 2)
        return replace(self, weight=self.weight.transpose(0, 1, 3, 2), real=real, window=aside(self.window))

    @property
    def monotone(self) -> bool:
        signs = np.sign(self.weight.reshape(len(self.weight), -1))
        return bool((signs.max(axis=1) - signs.min(axis=1) < 2).all())

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        outputs = len(self.weight)
        inputs = self.weight.shape[1] * self.groups
        check_weights(self.weight.size)
        if outputs > MOST_CHANNELS:
            raise Unsupported(f"a map must have at most {MOST_CHANNELS:,} channels, got {outputs:,}")
        if self.window is None:
            if len(source) != 2 or source[1] != inputs:
                raise Unsupported(f"the input must have shape (1, {inputs}), got {source}", "flatten it before")
            return 1, outputs
        return check_shape(self.name, (1, outputs, *output_size(self.window, source)), MOST_MAP)

    def sums(self, x: Array) -> Array:
        """The sums of integer weights: (N, ...) float64 -> float64, exact while they are below 2^53."""
        if self.window is None:
            return x @ self.weight.T.astype(np.float64)
        outputs, inputs = self.weight.shape[:2]
        total: Array | None = None
        for row, column, taken in taps_of(x, self.window, 0.0):
            weight = self.weight[:, :, row, column].astype(np.float64)
            if weight.any():
                grouped = taken.reshape(len(x), self.groups, inputs, -1)
                each = weight.reshape(self.groups, outputs // self.groups, inputs)
                part = np.matmul(each, grouped)  # (N, groups, outputs of a group, positions)
                total = part if total is None else total + part
        shape = (len(x), outputs, *output_size(self.window, x.shape))
        return np.zeros(shape) if total is None else total.reshape(shape)

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        sums = self.sums(x)
        return np.asarray(sums * floats(self.scale).reshape(1, -1, *(1,) * (sums.ndim - 2)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooling(Operation):
    """The maximum or the mean of each window of (1, channels, rows, columns)."""

    reads_map: ClassVar[bool] = True

    window: Window
    average: bool
    """The mean of all taps, padded ones not counted; else the maximum."""

    @property
    def picks(self) -> bool:
        return not self.average

    @property
    def aside(self) -> "Pooling":
        """This operation for a map on its side, whose rows are the columns."""
        return replace(self, window=aside(self.window))

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        return check_shape(self.name, (1, source[1], *output_size(self.window, source)), MOST_MAP)

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        parts = (taken for _, _, taken in taps_of(x, self.window, np.nan))
        if not self.average:
            return np.asarray(reduce(np.fmax, parts))
        total, count = np.zeros(()), np.zeros((), int)
        for part in parts:
            inside = ~np.isnan(part)
            total = total + np.where(inside, part, 0)
            count = count + inside
        return np.asarray(total / count)


@dataclass(frozen=True, kw_only=True, eq=False)
class AxesReduction(Operation):
    """The maximum or the mean over whole axes, which stay with a size of 1."""

    reads_map: ClassVar[bool] = True

    axes: tuple[int, ...]
    """tuple of int: of a tensor with the image in front, each >= 1, rising."""
    average: bool
    """The mean; else the maximum."""

    @property
    def picks(self) -> bool:
        return not self.average

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        if not self.axes or not set(self.axes) <= set(range(1, len(source))):
            raise Unsupported(f"its axes must be some of 1..{len(source) - 1}, got {self.axes}")
        return tuple(1 if axis in self.axes else size for axis, size in enumerate(source))

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        return np.asarray((np.mean if self.average else np.max)(x, axis=self.axes, keepdims=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Padding(Operation):
    """An operation that puts values around a tensor's own and, where the tensor grows, between them."""

    widths: tuple[tuple[int, int], ...]
    """tuple of (int, int): of each axis, how many come before and behind."""
    value: Fraction
    """The number that is put in."""
    growth: tuple[int, ...] = ()
    """tuple of int: of each axis, how far apart neighbours then are; nothing: 1 in all axes."""

    def whole(self, *ends: Ends) -> Ends | None:
        ((low, high),) = ends
        if self.value.denominator != 1:
            return None
        return min(low, int(self.value)), max(high, int(self.value))

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        apart = self.growth or (1,) * len(source)
        grown = [(size - 1) * step + 1 for size, step in zip(source, apart)]
        return check_shape(self.name, [size + a + b for size, (a, b) in zip(grown, self.widths)], MOST_MAP)

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        return self.around(x, float(self.value))

    def around(self, x: Array, value: float) -> Array:
        """A tensor with a value around and between its own."""
        if self.growth:
            grown = np.full([(size - 1) * step + 1 for size, step in zip(x.shape, self.growth)], value, x.dtype)
            grown[tuple(slice(None, None, step) for step in self.growth)] = x
            x = grown
        return np.pad(x, self.widths, constant_values=value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout(Operation):
    """An operation that gives values another order and shape; some may come several times."""

    order: Array
    """For each value of what is made, its place in what is read, both of one image with the 1 in front."""

    @property
    def picks(self) -> bool:
        return True

    def shape(self, *sources: Shape) -> Shape:
        return check_shape(self.name, self.order.shape, MOST_MAP)

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        return x.reshape(len(x), -1)[:, self.order.ravel()].reshape(len(x), *self.order.shape[1:])


@dataclass(frozen=True, kw_only=True, eq=False)
class Join(Operation):
    """An operation that reads several tensors."""

    reads_map: ClassVar[bool] = True
    makes_map: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Pointwise(Join):
    """An operation of the values at each place of several tensors of one shape."""

    verb: ClassVar[str]
    """For messages, what becomes of the maps."""

    def shape(self, *sources: Shape) -> Shape:
        first, *others = sources
        if any(other != first for other in others):
            count = "two" if len(others) == 1 else len(sources)
            got = " and ".join(map(str, sources))
            raise Unsupported(f"{count} maps that are {self.verb} must have one shape, got {got}")
        return first

    @abstractmethod
    def value(self, *numbers: Fraction) -> Fraction:
        """The operation's value at a number of each tensor."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Combination(Pointwise):
    """Any function of the values: no layer computes it of maps, but where these are functions of one map, it is a
    table (rules.py)."""

    verb: ClassVar[str] = "combined"

    formula: Formula

    @property
    def monotone(self) -> bool:
        return False

    def value(self, *numbers: Fraction) -> Fraction:
        return self.formula.of(*numbers)

    def run(self, *tensors: Array) -> Array:
        return self.formula.of_floats(*tensors)


@dataclass(frozen=True, kw_only=True, eq=False)
class Extreme(Pointwise):
    """The larger or the smaller one of two values: of integers it is two sums (rules.py)."""

    verb: ClassVar[str] = "compared"

    largest: bool
    ends: tuple[int, int] | None = None
    """(int, int): the least and the largest value of both tensors, which hold integers; None if these are any
    numbers."""

    @property
    def picks(self) -> bool:
        return True

    def value(self, *numbers: Fraction) -> Fraction:
        return max(numbers) if self.largest else min(numbers)

    def run(self, *tensors: Array) -> Array:
        if self.ends is not None:  # no map has other values, but a check of a rewriting may try them
            tensors = tuple(np.clip(np.rint(values), *self.ends) for values in tensors)
        return np.asarray((np.maximum if self.largest else np.minimum)(*tensors))


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable:
    """A kernel's results for each pair of integers of two maps."""

    values: Array
    """(m, n) int64: of first + i and first + j."""
    first: int
    """The smallest integer of both maps."""
    slopes: tuple[Fraction, ...]
    """tuple of Fraction: one for each factor of the layer."""
    offset: Fraction
    """Rounding and clips aside, values are what the layer makes with the factors ``slopes``, + offset."""
    low: int
    high: int
    """low, high: what values are clipped to."""

    def run(self, x: Array, y: Array) -> Array:
        """The entries of float64 integers. Of numbers beyond the table, which no map has but a check of a rewriting may
        try, those at its ends."""
        places = [np.rint(values).astype(np.int64) - self.first for values in (x, y)]
        first, second = (place.clip(0, size - 1) for place, size in zip(places, self.values.shape))
        return np.asarray(self.values[first, second], np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairOperation(Pointwise):
    """An operation of two tensors that a layer computes: a function of two real numbers, or a table of integers."""

    noun: ClassVar[str]
    """For messages, what it makes of two maps."""
    layer: ClassVar[type[Pairwise]]
    """Golden's layer that computes it of integers."""
    degree: ClassVar[int] = 1
    """Of both numbers times k > 0 the function makes k ** degree times as much."""
    needs_zero: ClassVar[bool] = False
    """Whether the layer needs maps whose integer 0 is worth 0, and makes such a map; else offsets go into its bias."""

    table: PairTable | None = None
    """None for the function."""

    @abstractmethod
    def function(self, x: Any, y: Any) -> Any:
        """The function, of fractions and of float64 arrays."""

    def factors(self, x: Fraction, y: Fraction) -> tuple[Fraction, ...]:
        """The layer's factors with which it makes, of integers of which 1 is worth ``x`` and ``y``, what the function
        makes of what they are worth."""
        return x, y

    @property
    def unit(self) -> float:
        return 0.0 if self.table is None else 1.0

    def whole(self, *ends: Ends) -> Ends | None:
        if self.table is not None:
            return None
        corners = [self.function(x, y) for x, y in product(*ends)]
        return min(corners), max(corners)

    def value(self, *numbers: Fraction) -> Fraction:
        x, y = numbers
        if self.table is None:
            return Fraction(self.function(x, y))
        return Fraction(float(self.table.run(np.array(float(x)), np.array(float(y)))))

    def run(self, *tensors: Array) -> Array:
        x, y = tensors
        return np.asarray(self.function(x, y)) if self.table is None else self.table.run(x, y)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sum(PairOperation):
    """The sum of two tensors."""

    noun: ClassVar[str] = "sum"
    verb: ClassVar[str] = "added"
    layer: ClassVar[type[Pairwise]] = Add

    def function(self, x: Any, y: Any) -> Any:
        return x + y


@dataclass(frozen=True, kw_only=True, eq=False)
class Difference(PairOperation):
    """The first of two tensors less the second one."""

    noun: ClassVar[str] = "difference"
    verb: ClassVar[str] = "subtracted"
    layer: ClassVar[type[Pairwise]] = Add

    def function(self, x: Any, y: Any) -> Any:
        return x - y

    def factors(self, x: Fraction, y: Fraction) -> tuple[Fraction, ...]:
        return x, -y


@dataclass(frozen=True, kw_only=True, eq=False)
class Product(PairOperation):
    """The product of two tensors."""

    noun: ClassVar[str] = "product"
    verb: ClassVar[str] = "multiplied"
    layer: ClassVar[type[Pairwise]] = MultiplyMaps
    degree: ClassVar[int] = 2
    needs_zero: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:
        return False

    def function(self, x: Any, y: Any) -> Any:
        return x * y

    def factors(self, x: Fraction, y: Fraction) -> tuple[Fraction, ...]:
        return (x * y,)


@dataclass(frozen=True, kw_only=True, eq=False)
class Concatenation(Join):
    """Tensors behind one another along an axis."""

    axis: int
    """Of the tensors with the image in front, >= 1."""

    @property
    def picks(self) -> bool:
        return True

    def shape(self, *sources: Shape) -> Shape:
        others = {(*shape[: self.axis], *shape[self.axis + 1 :]) for shape in sources}
        if len(others) > 1 or len({len(shape) for shape in sources}) > 1:
            got = " and ".join(map(str, sources))
            raise Unsupported(f"maps that are concatenated must differ in one axis alone, got shapes {got}")
        total = sum(shape[self.axis] for shape in sources)
        whole = (*sources[0][: self.axis], total, *sources[0][self.axis + 1 :])
        return check_shape(self.name, whole, MOST_MAP)

    def run(self, *tensors: Array) -> Array:
        return np.asarray(np.concatenate(tensors, axis=self.axis))


LEFT = ("ArgMax", "TopK")
"""Operators at the end instead of whose results the host gives all scores."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Closing(Operation):
    """An operator at the end that the host computes, one of `bitloom.golden.host.host.CLOSINGS`.

    It leaves the order of the classes as it is; those that are LEFT leave all as it is.
    """

    classes: int
    apart: int
    """classes, apart: it is computed over so many values at a time, each so many places behind the one before; over one
    value where each counts for itself."""

    @property
    def monotone(self) -> bool:
        return self.classes == 1

    def groups(self, values: Array) -> Array:
        """The values of one image that it takes together: (groups, classes)."""
        return values.reshape(-1, self.classes, self.apart).transpose(0, 2, 1).reshape(-1, self.classes)

    def shape(self, *sources: Shape) -> Shape:
        (source,) = sources
        return source

    def run(self, *tensors: Array) -> Array:
        (x,) = tensors
        return CLOSINGS[self.op](x.reshape(len(x), -1, self.classes, self.apart)).reshape(x.shape)


@dataclass(frozen=True, kw_only=True)
class OperationGraph:
    """A network as operations."""

    name: str
    source: str
    """The input tensor."""
    outputs: tuple[str, ...]
    """The output tensors that depend on the input."""
    operations: tuple[Operation, ...]
    """Each behind those whose tensors it reads."""
    shapes: dict[str, Shape]
    """Of every tensor."""
    constants: Mapping[str, Array] = field(default_factory=dict)
    """The output tensors that don't depend on the input, by name."""
    channels_last: bool = False
    """Whether tensors of the file have their channels last, as TFLite's do."""

    @cached_property
    def makers(self) -> Mapping[str, Operation]:
        """The operation that makes each tensor but the input."""
        return {operation.makes: operation for operation in self.operations}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[Operation]]:
        """The operations that read each tensor that is read, in their order."""
        readers: dict[str, list[Operation]] = {}
        for operation in self.operations:
            for name in dict.fromkeys(operation.reads):
                readers.setdefault(name, []).append(operation)
        return readers

    def first_reader(self, tensor: str) -> Operation | None:
        """The first operation that reads a tensor; None if there is none."""
        return next(iter(self.readers.get(tensor, ())), None)

    def with_others(self, others: Mapping[Operation, Sequence[Operation]]) -> "OperationGraph":
        """The graph with other operations, or none, in place of some."""
        shapes = dict(self.shapes)
        operations = list[Operation]()
        for operation in self.operations:
            for each in others.get(operation, (operation,)):
                operations.append(each)
                if each is not operation:
                    shapes[each.makes] = each.shape(*(shapes[name] for name in each.reads))
        return replace(self, operations=tuple(operations), shapes=shapes)

    def check(self) -> None:
        """Raise ValueError unless each tensor is made once, before it is read, in the shape that its operation says."""
        known = {self.source}
        for operation in self.operations:
            if not known.issuperset(operation.reads) or operation.makes in known:
                raise ValueError(f"{operation.name}: operations must read what was made, and make what was not")
            shape = operation.shape(*(self.shapes[name] for name in operation.reads))
            if shape != self.shapes[operation.makes]:
                raise ValueError(f"{operation.name}: the shape must be {shape}, got {self.shapes[operation.makes]}")
            known.add(operation.makes)
        for output in self.outputs:
            if output not in known:
                raise ValueError(f"{self.name}: the output must be made by an operation, got {output}")


def computed(
    operations: Iterable[Operation],
    sources: Mapping[str, Value],
    compute: Callable[[Operation, list[Value]], Value],
) -> Iterator[tuple[str, Value]]:
    """Compute something for each tensor that operations make, one behind the other, and give each with its name.

    ``sources`` are the values of the tensors that none of them makes. ``compute(operation, values)`` gives what the
    operation makes; ``values`` are those of the tensors that it reads. They are held as `walk` holds them.
    """
    makers = {operation.makes: operation for operation in operations}
    reads = {name: operation.reads for name, operation in makers.items()}
    return walk(reads, sources, lambda name, values: compute(makers[name], values))


def aside(window: Window) -> Window:
    """A window on its side, whose rows are the columns."""
    top, left, bottom, right = window.padding
    pairs = {name: getattr(window, name)[::-1] for name in ("kernel", "stride", "dilation", "growth")}
    return replace(window, **pairs, padding=(left, top, right, bottom))


def output_size(window: Window, shape: Shape) -> tuple[int, int]:
    """Rows and columns of what a window makes of (N, C, rows, columns); Unsupported if it doesn't fit."""
    rows, columns = window.output_size(shape[2], shape[3])
    if rows < 1 or columns < 1:
        raise Unsupported(f"the window must fit the padded map, got {window.kernel} on {shape[2]} x {shape[3]}")
    if (taps := rows * columns * window.kernel[0] * window.kernel[1]) > TAPS.value:
        raise Unsupported(f"all windows together must have at most {TAPS.value:,} taps, got {taps:,}")
    return rows, columns


def taps_of(x: Array, window: Window, filler: float) -> Iterator[tuple[int, int, Array]]:
    """For each tap of a kernel its row and column, and the values of (N, C, rows, columns) that it reads."""
    rows, columns = output_size(window, x.shape)
    top, left, bottom, right = window.padding
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=filler)
    (down, aside), (height, width), (lower, further) = window.stride, window.kernel, window.dilation
    for row in range(height):
        for column in range(width):
            begin = row * lower
            first = column * further
            taken = padded[:, :, begin : begin + (rows - 1) * down + 1 : down]
            yield row, column, taken[..., first : first + (columns - 1) * aside + 1 : aside]


def check_weights(count: int) -> None:
    """Refuse more weights than MOST_WEIGHTS, before they are made."""
    if count > MOST_WEIGHTS:
        raise Unsupported(f"a layer must have at most {MOST_WEIGHTS:,} weights, zeros counted, got {count:,}")
