"""Operations: the few kinds of operators that all others are rewritten into, on tensors of real numbers.

A tensor has the number of images in front, which is 1 in shapes. What an operation computes is stated twice: exactly,
by its fields, and by `run` in float64, by which passes are verified.

=========  ==================================================================
operation  makes of x
=========  ==================================================================
Scaling    x * multiply + add, fractions for each value
Clip       min(max(x, low), high)
Levels     base + step * (how many boundaries x has reached): every quantiser
Linear     sums of weight * x over windows, weights being integers times a scale
Pooling    the maximum or the mean of each window
Layout     the same values in another shape or order
Closing    softmax, argmax and what else the host does at the end
=========  ==================================================================
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .errors import Unsupported
from .rationals import floats
from .source import MOST_CHANNELS, MOST_MAP, Shape, check_shape
from .tflite_rules import KernelRule
from .windows import check_weights, output_size, taps_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(ABC):
    """One operation of a chain.

    Attributes
    ----------
    name : str
        Of the node that it was made of.
    op : str
        That node's operator.
    reads, makes : str
        Tensors.
    """

    name: str
    op: str
    reads: str
    makes: str

    @abstractmethod
    def shape(self, source: Shape) -> Shape:
        """The shape of what the operation makes of a tensor of shape ``source``; Unsupported if it can't."""

    @abstractmethod
    def run(self, x: Array) -> Array:
        """What the operation makes of (N, ...) float64, in float64."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaling(Operation):
    """x * multiply + add.

    Attributes
    ----------
    multiply, add : array of Fraction
        They spread over a tensor of one image as numpy has it.
    """

    multiply: Array
    add: Array

    def shape(self, source: Shape) -> Shape:
        for values in (self.multiply, self.add):
            _check_spread(values, source)
        return source

    def run(self, x: Array) -> Array:
        return x * floats(self.multiply) + floats(self.add)


def _check_spread(values: Array, source: Shape) -> None:
    """Refuse constants that make a tensor larger."""
    try:
        shape = np.broadcast_shapes(values.shape, source)
    except ValueError:
        shape = ()
    if shape != source:
        raise Unsupported(f"constants must spread over a tensor of shape {source}, got shape {values.shape}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Clip(Operation):
    """min(max(x, low), high); an end may be missing."""

    low: Fraction | None
    high: Fraction | None

    def shape(self, source: Shape) -> Shape:
        return source

    def run(self, x: Array) -> Array:
        if self.low is not None:
            x = np.maximum(x, float(self.low))
        return x if self.high is None else np.minimum(x, float(self.high))


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels(Operation):
    """A quantiser: base + step * level, where level is the number of boundaries that x has reached.

    Attributes
    ----------
    base : Fraction
        The value of level 0.
    step : Fraction
        Distance of neighbouring values, > 0.
    boundaries : (channels or 1, levels) array of Fraction
        Rising.
    reached : (levels,) bool
        Whether a value that is equal to the boundary has reached it.
    axis : int
        The tensor's axis of the channels.
    rule : KernelRule or None
        The rule of TFLite that the boundaries were made of, for a sum and its bias.
    """

    base: Fraction
    step: Fraction
    boundaries: Array
    reached: Array
    axis: int = 1
    rule: KernelRule | None = None

    @property
    def levels(self) -> int:
        """Number of boundaries: the highest level."""
        return self.boundaries.shape[1]

    def shape(self, source: Shape) -> Shape:
        if self.boundaries.shape[0] not in (1, source[self.axis]):
            raise Unsupported(
                f"thresholds must be for 1 or {source[self.axis]} channels, got {self.boundaries.shape[0]}"
            )
        return source

    def level(self, x: Array) -> Array:
        """The level of each value: (N, ...) float64 -> int64."""
        moved = np.moveaxis(np.asarray(x, np.float64), self.axis, -1)
        ends = floats(self.boundaries)
        out = np.empty(moved.shape, np.int64)
        equal = np.append(0, np.cumsum(self.reached))  # of the first boundaries, those that equality reaches
        for channel in range(moved.shape[-1]):
            limits, values = ends[channel if len(ends) > 1 else 0], moved[..., channel]
            below = np.searchsorted(limits, values, side="left")  # boundaries < value
            upto = np.searchsorted(limits, values, side="right")  # boundaries <= value
            out[..., channel] = below + equal[upto] - equal[below]
        return np.moveaxis(out, -1, self.axis)

    def run(self, x: Array) -> Array:
        return float(self.base) + float(self.step) * self.level(x)

    def margin(self, x: Array) -> Array:
        """How far each value is from the nearest boundary: (N, ...) float64 -> (N, ...) float64."""
        moved = np.moveaxis(np.asarray(x, np.float64), self.axis, -1)
        ends = floats(self.boundaries)
        out = np.empty(moved.shape)
        for channel in range(moved.shape[-1]):
            limits, values = ends[channel if len(ends) > 1 else 0], moved[..., channel]
            after = np.clip(np.searchsorted(limits, values), 1, len(limits) - 1) if len(limits) > 1 else 0
            near = np.abs(values - limits[after])
            out[..., channel] = np.minimum(near, np.abs(values - limits[np.maximum(after - 1, 0)]))
        return np.moveaxis(out, -1, self.axis)


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear(Operation):
    """Sums of products over windows; a dense layer is the one window of a flat tensor.

    Attributes
    ----------
    weight : (outputs, inputs, rows, columns) or (outputs, inputs) int64
        In ONNX's order, one group: kernels of several groups have zeros for the others' channels.
    scale : (outputs,) array of Fraction
        What an integer weight is worth; of any sign.
    window : Window or None
        None for a dense layer.
    real : array or None
        Real numbers of which ``weight`` are the signs, in the same order.
    """

    weight: Array
    scale: Array
    window: Window | None
    real: Array | None = None

    def shape(self, source: Shape) -> Shape:
        outputs, inputs = self.weight.shape[:2]
        check_weights(self.weight.size)
        if outputs > MOST_CHANNELS:
            raise Unsupported(f"a map must have at most {MOST_CHANNELS:,} channels, got {outputs:,}")
        if self.window is None:
            if len(source) != 2 or source[1] != inputs:
                raise Unsupported(f"the input must have shape (1, {inputs}), got {source}", "flatten it before")
            return 1, outputs
        if len(source) != 4 or source[1] != inputs:
            raise Unsupported(f"the input must have shape (1, {inputs}, rows, columns), got {source}")
        return check_shape(self.name, (1, outputs, *output_size(self.window, source)), MOST_MAP)

    def sums(self, x: Array) -> Array:
        """The sums of integer weights: (N, ...) float64 -> float64, exact while they are below 2^53."""
        if self.window is None:
            return x @ self.weight.T.astype(np.float64)
        total: Array | None = None
        for row, column, taken in taps_of(x, self.window, 0.0):
            weight = self.weight[:, :, row, column].astype(np.float64)
            if weight.any():
                part = np.tensordot(taken, weight, axes=(1, 1))  # (N, rows, columns, outputs)
                total = part if total is None else total + part
        if total is None:
            return np.zeros((len(x), len(self.weight), *output_size(self.window, x.shape)))
        return np.moveaxis(total, -1, 1)

    def run(self, x: Array) -> Array:
        sums = self.sums(x)
        return sums * floats(self.scale).reshape(1, -1, *(1,) * (sums.ndim - 2))


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooling(Operation):
    """The maximum or the mean of each window of (1, channels, rows, columns).

    Attributes
    ----------
    window : Window
    average : bool
        The mean of all taps, padded ones not counted; else the maximum.
    """

    window: Window
    average: bool

    def shape(self, source: Shape) -> Shape:
        if len(source) != 4:
            raise Unsupported(f"the input must have shape (1, channels, rows, columns), got {source}")
        return check_shape(self.name, (1, source[1], *output_size(self.window, source)), MOST_MAP)

    def run(self, x: Array) -> Array:
        parts = (taken for _, _, taken in taps_of(x, self.window, np.nan))
        if not self.average:
            return np.asarray(reduce(np.fmax, parts))
        total, count = 0.0, 0
        for part in parts:
            inside = ~np.isnan(part)
            total, count = total + np.where(inside, part, 0), count + inside
        return np.asarray(total / count)


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout(Operation):
    """The same values in another order and shape.

    Attributes
    ----------
    order : array of int
        For each value of what is made, its place in what is read, both of one image with the 1 in front.
    """

    order: Array

    def shape(self, source: Shape) -> Shape:
        return check_shape(self.name, self.order.shape, MOST_MAP)

    def run(self, x: Array) -> Array:
        return x.reshape(len(x), -1)[:, self.order.ravel()].reshape(len(x), *self.order.shape[1:])


@dataclass(frozen=True, kw_only=True, eq=False)
class Closing(Operation):
    """An operator at the end that the host computes, one of `bitloom.golden.host.host.CLOSINGS`.

    It leaves the order of the classes as it is.
    """

    def shape(self, source: Shape) -> Shape:
        return source

    def run(self, x: Array) -> Array:
        return x
