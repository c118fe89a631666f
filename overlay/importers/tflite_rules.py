"""TFLite's integer rules: what its kernels make of a sum, given by the first sum of each value.

A scale is multiplier * 2^shift / 2^31, with a multiplier of 31 bits. Kernels of convolutions round twice: the product
with the multiplier to a whole number, halves upwards, then, where the shift is negative, that by 2^-shift, halves away
from zero. Those of fully connected layers multiply the sum by the scale in floating point of 64 bits and round once,
halves away from zero. Either way the value rises with the sum, so it is given by where each value begins;
`tflite_kernels` computes the same rules forwards.
"""

from dataclasses import dataclass
from math import floor, frexp

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.rounding import rounded_twice

from .errors import Unsupported
from .rationals import first_integer

LOW, HIGH = -128, 127
"""Values of int8."""
ONE = 1 << 31
"""A multiplier m stands for m / ONE."""
SHIFTS = range(-31, 31)


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorScale:
    """Scale and zero point of a tensor: an integer stands for (value - zero) * scale."""

    kind: str
    """The schema's word for its type, such as ``"INT8"``."""
    scale: Array
    """float32 array: one, or one a channel; empty for tensors that are not quantised."""
    zero: Array
    """int64 array."""

    def check_kind(self, what: str) -> None:
        """Raise Unsupported unless the type is INT8."""
        if self.kind != "INT8":
            raise Unsupported(f"{what} must be of type INT8, got {self.kind}", "quantise the network to int8")

    def per_tensor(self, what: str) -> tuple[float, int]:
        """The scale and the zero point of an int8 tensor; Unsupported if it has several, or another type."""
        self.check_kind(what)
        if self.scale.size != 1 or self.zero.size != 1:
            raise Unsupported(f"{what} must have one scale and one zero point, got {self.scale.size}")
        scale = float(self.scale[0])
        zero = int(self.zero[0])
        if not (np.isfinite(scale) and scale > 0 and LOW <= zero <= HIGH):
            raise Unsupported(f"{what} must have a scale > 0 and a zero point of int8, got {scale:g} and {zero}")
        return scale, zero

    def channels(self, count: int) -> Array:
        """The scales of weights, (count,) float64; Unsupported if they are no symmetric int8 weights."""
        self.check_kind("weights")
        if self.scale.size not in (1, count) or (np.asarray(self.zero) != 0).any():
            raise Unsupported(f"weights must have 1 or {count} scales and zero points of 0, got {self.scale.size}")
        if not (np.isfinite(self.scale) & (self.scale >= 0)).all():
            raise Unsupported("weights must have finite scales >= 0")
        return np.broadcast_to(np.asarray(self.scale, np.float64), (count,))


@dataclass(frozen=True, kw_only=True)
class Multiplier:
    """A scale as kernels have it: multiplier * 2^shift / 2^31."""

    multiplier: int
    """2^30 .. 2^31 - 1; 0 for a scale that is too small for any shift."""
    shift: int
    """Of SHIFTS."""
    scale: float
    """The scale itself."""

    def first_sums(self, values: range, roundings: int) -> list[int]:
        """The smallest sum of which the kernel makes at least each of ``values``, before the zero point is added.

        Parameters
        ----------
        values : range
        roundings : int
            2 for the rule of convolutions, 1 for that of fully connected layers.
        """
        if roundings == 1:
            return self._first_products(np.array(values))
        left = max(self.shift, 0)
        right = max(-self.shift, 0)
        # The first rounded product that is rounded to the value: its half belongs to it above 0, not below.
        middles = [(2 * value - 1) << right for value in values]
        rounded = [first_integer(middle, 2, value > 0) for value, middle in zip(values, middles)]
        return [first_integer(product * ONE - ONE // 2, self.multiplier << left, True) for product in rounded]

    def _first_products(self, values: Array) -> list[int]:
        """The smallest sums whose products with the scale, as floating point has them, are rounded to values or more:
        a half belongs to the value above it above 0, not below."""
        halves = values - 0.5
        first = np.floor(halves / self.scale) - 1
        for _ in range(2):
            product = first * self.scale
            first += np.where(values > 0, product < halves, product <= halves)
        return [int(each) for each in first]


@dataclass(frozen=True, kw_only=True)
class KernelRule:
    """How a kernel makes values of sums, less their zero point."""

    multipliers: tuple[Multiplier, ...]
    """One a channel."""
    low: int
    """The smallest value, before the zero point is added."""
    roundings: int
    """2 for the rule of convolutions, 1 for that of fully connected layers."""
    count: int = 1
    """How many values each sum has, if what is rounded are means of these."""

    @property
    def needs_sums(self) -> bool:
        """Whether no line has its values, so that a layer must have the rule's own sums: where values of both signs
        are rounded twice, halves are rounded up below the middle and down above it."""
        return self.roundings == 2 and self.low < 0


def multiplier_of(scale: float) -> Multiplier:
    """A scale as kernels have it.

    Parameters
    ----------
    scale : float
        Finite and >= 0.

    Raises
    ------
    Unsupported
        If it is too large for 31 bits.
    """
    part, shift = frexp(scale)
    multiplier = floor(part * ONE + 0.5)
    if multiplier == ONE:
        multiplier = multiplier // 2
        shift = shift + 1
    if shift < SHIFTS[0]:
        return Multiplier(multiplier=0, shift=0, scale=0.0)
    if shift > SHIFTS[-1]:
        raise Unsupported(f"scales must be below 2^{SHIFTS[-1]}, got {scale:g}")
    return Multiplier(multiplier=multiplier, shift=shift, scale=scale)


SUM_SHIFT = 20
"""Bits by which an addition shifts its integers to the left."""


def sums_of_pairs(
    first: tuple[float, int], second: tuple[float, int], result: tuple[float, int], sign: int = 1
) -> Array:
    """Results of an addition or a subtraction for all pairs of int8 values, before they are clipped.

    Each value less its zero point is shifted to the left and scaled by half of its scale's share of the larger one; the
    sum or the difference is scaled to the result. All three scalings round twice.

    Parameters
    ----------
    first, second, result : (float, int)
        Scale and zero point of both maps and of the result.
    sign : int
        1 for a sum, -1 for the first less the second.

    Returns
    -------
    (256, 256) int64

    Raises
    ------
    Unsupported
        If the result's scale is so small that the sum would have to be shifted to the left.
    """
    twice = 2 * max(first[0], second[0])
    parts = [_scaled(np.arange(LOW, HIGH + 1) - zero << SUM_SHIFT, scale / twice) for scale, zero in (first, second)]
    total = parts[0][:, None] + sign * parts[1][None, :]
    return _scaled(total, twice / ((1 << SUM_SHIFT) * result[0])) + result[1]


def single_scale(result: float, *factors: float) -> float:
    """The product of scales over that of the result, in single precision, as kernels of activations and of products
    work it out; those of weights, QUANTIZE, ADD and MEAN take double precision."""
    product = np.float32(factors[0])
    for factor in factors[1:]:
        product = product * np.float32(factor)
    return float(product / np.float32(result))


def rounded_product(values: Array, multiplier: Multiplier) -> Array:
    """Integers times a multiplier, rounded twice: int64, of products below 2^62."""
    product = values * multiplier.multiplier << max(multiplier.shift, 0)
    return rounded_twice(product, np.array(31 - min(multiplier.shift, 0)))


def _scaled(values: Array, scale: float) -> Array:
    """Integers below 2^30 times a scale, rounded twice."""
    multiplier = multiplier_of(scale)
    if multiplier.shift > 0:
        raise Unsupported(f"the scale of an addition's result must not be so small, got a factor of {scale:g}")
    return rounded_product(values, multiplier)


def mean_multiplier(scale: float, count: int) -> Multiplier:
    """The scale of a mean of ``count`` values, as the kernel of MEAN divides it: downwards, of 31 bits again."""
    whole = multiplier_of(scale)
    shift = min(count.bit_length() - 1, 32, 31 + whole.shift)
    return Multiplier(multiplier=(whole.multiplier << shift) // count, shift=whole.shift - shift, scale=scale / count)


ENDS: dict[str, tuple[float | None, float | None]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}
"""Activation -> the real numbers that it clips to."""


def activation_ends(activation: str, scale: float, zero: int) -> tuple[int, int]:
    """The smallest and the largest integer that an activation leaves.

    Parameters
    ----------
    activation : str
        Of ENDS.
    scale : float
        Of the result, a float32.
    zero : int
        Its zero point.

    Returns
    -------
    (int, int)
        Within -128 .. 127.

    Raises
    ------
    Unsupported
        If there is no such activation, or it leaves one integer alone.
    """
    if activation not in ENDS:
        raise Unsupported(f"the activation must be one of {', '.join(ENDS)}, got {activation}")
    reals = ENDS[activation]
    low, high = (None if end is None else zero + _rounded(np.float32(end) / np.float32(scale)) for end in reals)
    ends = LOW if low is None else max(LOW, low), HIGH if high is None else min(HIGH, high)
    if ends[0] >= ends[1]:
        raise Unsupported(f"the activation must leave two integers at least, got {ends[0]}..{ends[1]}")
    return ends


def _rounded(value: np.float32) -> int:
    """The nearest integer, halves away from zero, of what fits an int8 or lies far outside."""
    nearest = floor(min(abs(float(value)), 1e6) + 0.5)
    return nearest if value >= 0 else -nearest
