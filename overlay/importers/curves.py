"""Curves: activations that may fall, or bend anywhere, such as sigmoid and GELU.

No boundary can be pulled back through a curve. So a curve must lie between two quantisers: of each of the first one's
values, 256 at most, the second one's level is computed, and a lookup has them as a table. The value of a curve is that
of its function in float64, or exact where it has fractions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .links import Condition, Link


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve(Link):
    """A function of each value, the same in every channel."""

    looked_up: ClassVar[bool] = True

    of: Callable[[Fraction], Fraction]
    """``of(x)`` is its value at a number."""
    of_floats: Callable[[Array], Array]
    """``of_floats(x)`` are its values at float64 numbers."""

    @property
    def falls(self) -> Array:
        return np.array([True])  # it may

    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        return self.of(x)

    def run(self, x: Array) -> Array:
        return self.of_floats(x)

    def before(self, condition: Condition, channel: int = 0) -> Condition:
        raise TypeError(f"{self.name}: no condition can be pulled back through a curve")


def curve(name: str, function: Callable[[float], float]) -> Curve:
    """The curve of a function of float64 numbers."""

    values = infinite_beyond(function)

    def of(x: Fraction) -> Fraction:
        value = values(float(x))
        if not math.isfinite(value):
            raise Unsupported(f"its values must be finite, got {value} at {float(x):g}")
        return Fraction(value)

    return Curve(name=name, of=of, of_floats=np.vectorize(values, otypes=[np.float64]))


def infinite_beyond(function: Callable[[float], float]) -> Callable[[float], float]:
    """The function, which is infinite where it leaves the range of float64, as exp does."""

    def value_at(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf

    return value_at


def table_curve(name: str, values: Array, first: int) -> Curve:
    """The curve that has ``values``, integers, at ``first``, ``first`` + 1 and so on; beyond, those at the ends."""

    def run(x: Array) -> Array:
        place = np.clip(np.rint(x).astype(np.int64) - first, 0, len(values) - 1)
        return np.asarray(values[place].astype(np.float64))

    return Curve(name=name, of=lambda x: Fraction(int(run(np.array(float(x))))), of_floats=run)


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), of which no part overflows."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x: float) -> float:
    """log(1 + exp(x)), of which no part overflows."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def softsign(x: Any) -> Any:
    """x / (1 + |x|), of a fraction or of float64 numbers."""
    return x / (1 + abs(x))


def mish(x: float) -> float:
    """x * tanh(softplus(x))."""
    return x * math.tanh(softplus(x))


def gelu(x: float) -> float:
    """x times the share of a normal distribution below x."""
    return 0.5 * x * math.erfc(-x * math.sqrt(0.5))


def gelu_by_tanh(x: float) -> float:
    """GELU as it is approximated with tanh."""
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def elu(x: float, alpha: float) -> float:
    """x, or alpha * (exp(x) - 1) below 0."""
    return x if x > 0 else alpha * math.expm1(x)


def hard_swish() -> Curve:
    """x * min(max(x / 6 + 1 / 2, 0), 1), exactly."""

    def of(x: Fraction) -> Fraction:
        return x * min(max(x / 6 + Fraction(1, 2), Fraction(0)), Fraction(1))

    return Curve(name="HardSwish", of=of, of_floats=lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
