"""Quantisers of QONNX and ONNX: what they make of constants, and their levels (see `operations.Levels`).

The rules are those of the operators' definitions: QONNX's Quant clips and rounds x / scale + zero point; ONNX's
QuantizeLinear rounds halves to even and clips to its type. In older files QONNX's operators have other domains
(onnx.brevitas, finn.custom_op.general), and the same names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array

from .budget import FRACTION_STEPS, take
from .errors import Unsupported
from .integer_types import element_dtype, integer_ends
from .rationals import floats, fractions, same
from .rows import Boundaries
from .source import Shape, SourceNode

MOST_LEVELS = 1 << 16
"""Values of a map at most; maps that weights read have far fewer."""
HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Values that are integers times a scale."""

    integers: Array
    """int64 array."""
    scale: Array = field(default_factory=lambda: np.array(Fraction(1), object))
    """It spreads over the integers."""
    real: Array | None = None
    """Real numbers of which the integers are the signs, 1 where they are >= 0 and -1 elsewhere; None for others."""

    @property
    def values(self) -> Array:
        """The values: float64."""
        return self.integers * floats(self.scale)

    def moved(self, move: Callable[[Array], Array]) -> "Grid":
        """The values elsewhere: ``move`` makes another shape or order of an array of theirs."""
        scale = move(np.broadcast_to(self.scale, self.integers.shape)) if self.scale.ndim else self.scale
        real = None if self.real is None else move(self.real)
        return Grid(integers=move(self.integers), scale=scale, real=real)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A quantiser of equal steps: clip(round(x / scale + zero), low, high), worth (that - zero) * scale."""

    scale: Array
    """> 0; it spreads over the values."""
    zero: Fraction
    low: int
    high: int
    rounding: str
    """One of ROUNDINGS."""
    zero_after: bool = False
    """Whether the zero point is added after rounding, as ONNX has it: round(x / scale) + zero. QONNX adds it before, as
    onnxruntime's QLinearAdd, QLinearMul and QLinearAveragePool do, and halves that are rounded to even differ by
    that."""

    @property
    def levels(self) -> int:
        """The highest level; Unsupported if a map can't have so many."""
        if self.high - self.low >= MOST_LEVELS:
            raise Unsupported(f"a map must have at most {MOST_LEVELS:,} values, got {self.high - self.low + 1:,}")
        return self.high - self.low

    def boundaries(self) -> Boundaries:
        """The boundaries of x, a row for each scale."""
        take(steps=FRACTION_STEPS * self.levels * self.scale.size)
        place = ROUNDINGS[self.rounding].place
        after = int(self.zero) if self.zero_after else 0
        places = [place(self.low + level - after) for level in range(1, self.levels + 1)]
        # In halves of a scale a place is a whole number: fractions that are added and multiplied would take four times
        # as long.
        moved = 2 * (after - self.zero)
        numbers = [twice * moved.denominator + moved.numerator for twice, _ in places]
        halves = self.scale.ravel() / (2 * moved.denominator)
        limits = [[Fraction(half.numerator * number, half.denominator) for number in numbers] for half in halves]
        return Boundaries(limits=np.array(limits, object), reached=np.array([reached for _, reached in places]))

    def grid(self, values: Array) -> Grid:
        """Quantise constants, in floating point of their own precision, as the tool that wrote the file did."""
        scale = floats(self.scale).astype(values.dtype)
        if self.zero.denominator != 1:
            raise Unsupported(f"a zero point must be an integer, got {self.zero}")
        if not np.isfinite(values).all() or not (scale > 0).all():
            raise Unsupported("weights must be finite, and their scales > 0 in weights' precision")
        zero = values.dtype.type(int(self.zero))
        run = ROUNDINGS[self.rounding].run
        y = run(values / scale) + zero if self.zero_after else run(values / scale + zero)
        integers = np.clip(y.astype(np.float64), self.low, self.high).astype(np.int64)
        return Grid(integers=integers - int(self.zero), scale=self.scale)


@dataclass(frozen=True)
class Rounding:
    """A way to round numbers to whole ones."""

    place: Callable[[int], tuple[int, bool]]
    """``place(q)`` is twice the place from which numbers are rounded to q or more, and whether the place itself is."""
    run: Callable[[Array], Array]
    """``run(x)`` are numbers rounded."""


ROUNDINGS = {
    "ROUND": Rounding(lambda q: (2 * q - 1, q % 2 == 0), np.rint),
    "HALF_EVEN": Rounding(lambda q: (2 * q - 1, q % 2 == 0), np.rint),
    "HALF_UP": Rounding(lambda q: (2 * q - 1, q > 0), lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5)),
    "HALF_DOWN": Rounding(lambda q: (2 * q - 1, q <= 0), lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5)),
    "FLOOR": Rounding(lambda q: (2 * q, True), np.floor),
    "CEIL": Rounding(lambda q: (2 * q - 2, False), np.ceil),
    "UP": Rounding(lambda q: (2 * q - 2 * (q > 0), q <= 0), lambda x: np.sign(x) * np.ceil(np.abs(x))),
    "DOWN": Rounding(lambda q: (2 * q - 2 * (q <= 0), q > 0), np.fix),
}
"""By QONNX's names."""


def quant_rule(node: SourceNode, inputs: Sequence[Array | None]) -> Rule:
    """The rule of QONNX's Quant and IntQuant: inputs are x, scale, zero point, bits."""
    scale, zero, bits = (
        _constant(inputs, place, what) for place, what in ((1, "scale"), (2, "zero point"), (3, "bits"))
    )
    width = _one_number(bits, "bits")
    if width.denominator != 1 or not 1 <= width <= 32:
        raise Unsupported(f"bits must be 1..32, got {float(width):g}")
    is_signed, narrow = (bool(node.attributes.get(name, default)) for name, default in (("signed", 1), ("narrow", 0)))
    low, high = ends_of_bits(int(width), is_signed=is_signed, narrow=narrow)
    if high <= low:
        raise Unsupported(f"bits must leave two values at least, got {int(width)} bits", "use BipolarQuant")
    rounding = str(node.attributes.get("rounding_mode", "ROUND")).upper()
    return Rule(scale=_scale(scale), zero=_one_number(zero, "zero point"), low=low, high=high, rounding=known(rounding))


def ends_of_bits(bits: int, *, is_signed: bool, narrow: bool) -> tuple[int, int]:
    """The least and the largest integer of so many bits, as QONNX has them."""
    if is_signed:
        return -(1 << bits - 1) + narrow, (1 << bits - 1) - 1
    return 0, (1 << bits) - 1 - narrow


def linear_rule(scale: Array, zero: Array | None, zero_after: bool = True) -> Rule:
    """The rule of ONNX's QuantizeLinear; the zero point's type says which integers there are, and without one uint8.
    See `Rule` for ``zero_after``."""
    values = np.zeros(1, np.uint8) if zero is None else np.asarray(zero)
    low, high = integer_ends(values.dtype) or (0, 0)
    if not 0 < high < 256:
        raise Unsupported(
            f"quantised values must be integers of at most 8 bits, got {values.dtype}",
            "quantise to these (onnxruntime: activation_type=QuantType.QInt8)",
        )
    return Rule(
        scale=_scale(scale),
        zero=_one_number(values, "zero point"),
        low=low,
        high=high,
        rounding="ROUND",
        zero_after=zero_after,
    )


def zero_point(zero: Array | None, output_dtype: int) -> Array | None:
    """The zero point of QuantizeLinear; where it is left out 0, of the type that ``output_dtype`` says."""
    if zero is not None or not output_dtype:
        return zero
    dtype = element_dtype(output_dtype)
    if dtype is None:
        raise Unsupported(f"output_dtype must be a type of numbers, got {output_dtype}")
    return np.zeros(1, dtype)


def _quant(node: SourceNode, inputs: Sequence[Array | None]) -> Grid:
    values = _constant(inputs, 0, "the input")
    bits = _one_number(_constant(inputs, 3, "bits"), "bits")
    if bits == 1 and node.attributes.get("signed", 1):
        return _bipolar(node, inputs)  # QONNX's execution takes a signed bit as BipolarQuant
    return quant_rule(node, inputs).grid(values)


def _bipolar(node: SourceNode, inputs: Sequence[Array | None]) -> Grid:
    values = _constant(inputs, 0, "the input")
    scale = _constant(inputs, 1, "scale")
    return Grid(integers=np.where(values >= 0, 1, -1).astype(np.int64), scale=_scale(scale), real=values)


def _sign(node: SourceNode, inputs: Sequence[Array | None]) -> Grid:
    """Sign of a constant, which is 0 at 0."""
    values = _constant(inputs, 0, "the input")
    if not np.isfinite(values).all():
        raise Unsupported("the constants of a sign must be finite")
    signs = np.sign(values).astype(np.int64)
    return Grid(integers=signs, real=values if signs.all() else None)


def _quantize(node: SourceNode, inputs: Sequence[Array | None]) -> Grid:
    """QuantizeLinear of a constant: the integers themselves."""
    values = _constant(inputs, 0, "the input")
    scale = inputs[1]
    axis = int(node.attributes.get("axis", 1))
    zero = inputs[2] if len(inputs) > 2 else None
    rule = linear_rule(along(scale, values.shape, axis), zero_point(zero, node.attributes.get("output_dtype", 0)))
    grid = rule.grid(values)
    return Grid(integers=grid.integers + int(rule.zero))


def _dequantize(node: SourceNode, inputs: Sequence[Array | None]) -> Grid:
    """DequantizeLinear of constants: (integers - zero points) * scales."""
    values = _constant(inputs, 0, "the input")
    scale = inputs[1]
    zero = inputs[2] if len(inputs) > 2 else None
    axis = int(node.attributes.get("axis", 1))
    integers = np.asarray(values).astype(np.int64)
    if zero is not None:
        integers = integers - along(zero, values.shape, axis).astype(np.int64)
    return Grid(integers=integers, scale=_scale(along(scale, values.shape, axis)))


def along(parameter: Array | None, shape: Shape, axis: int) -> Array:
    """A parameter for each channel, spread along an axis of a tensor of a ``shape``; one for all stays as it is."""
    if parameter is None:
        raise Unsupported("the scale must be a constant")
    if parameter.size == 1:
        return parameter.reshape(())
    if not -len(shape) <= axis < len(shape) or parameter.shape != (shape[axis],):
        rule = f"scales must be one, or one for each of axis {axis} of {shape}"
        raise Unsupported(f"{rule}, got {parameter.shape}")
    spread = [1] * len(shape)
    spread[axis] = -1
    return parameter.reshape(spread)


def _constant(inputs: Sequence[Array | None], place: int, what: str) -> Array:
    value = inputs[place] if place < len(inputs) else None
    if value is None:
        raise Unsupported(f"{what} must be given as a constant")
    return value


def _one_number(values: Array, what: str) -> Fraction:
    """The one value of a parameter."""
    value = same(fractions(np.asarray(values)))
    if value is None:
        raise Unsupported(f"the {what} must be one number, got several")
    return value


def _scale(values: Array) -> Array:
    scale = fractions(values)
    if scale.size == 0 or any(value <= 0 for value in scale.ravel()):
        raise Unsupported("scales must be > 0")
    return scale if same(scale) is None else np.array(same(scale), object)


def known(rounding: str) -> str:
    """The name of a rounding; Unsupported if it is none of ROUNDINGS."""
    if rounding not in ROUNDINGS:
        raise Unsupported(f"the rounding mode must be one of {', '.join(ROUNDINGS)}, got {rounding[:40]}")
    return rounding


QUANTISERS: dict[str, Callable[[SourceNode, Sequence[Array | None]], Grid]] = {
    "Quant": _quant,
    "IntQuant": _quant,
    "BipolarQuant": _bipolar,
    "Sign": _sign,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
}
"""Operator -> what it makes of constants."""
