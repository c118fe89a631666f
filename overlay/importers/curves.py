"""Curves: activations that may fall, or bend anywhere, such as sigmoid and GELU.

Between two quantisers a curve is `looked_up`: of each of the first one's values, 256 at most, the second one's level is
computed, and a lookup has them as a table. Behind sums no curve may lie, unless its kind is `reversible`: boundaries
are pulled back through it. The value of a curve is that of its function in float64, or exact where it has fractions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .links import Condition, Link, entry
from .tflite_rules import HIGH, LOW


@dataclass(frozen=True)
class Formula:
    """A function of a number, or of several ones."""

    of: Callable[..., Fraction]
    """``of(x)`` is its value at a number."""
    of_floats: Callable[..., Array]
    """``of_floats(x)`` are its values at float64 numbers."""
    count: int = 1
    """How many numbers it is a function of."""

    @classmethod
    def of_both(cls, function: Callable[..., Any]) -> "Formula":
        """The formula of a function that takes fractions as well as float64 numbers."""

        def of(*numbers: Fraction) -> Fraction:
            try:
                return Fraction(function(*numbers))
            except ZeroDivisionError:
                raise Unsupported("a map must be divided by numbers other than 0") from None

        def of_floats(*arrays: Array) -> Array:
            with np.errstate(all="ignore"):
                return np.asarray(function(*arrays), np.float64)

        return cls(of, of_floats, len(signature(function).parameters))

    @classmethod
    def of_integers(cls, function: Callable[..., Array]) -> "Formula":
        """The formula of a function of int64 arrays; other numbers are rounded."""

        def run(*arrays: Array) -> Array:
            return np.asarray(function(*(np.rint(x).astype(np.int64) for x in arrays)), np.float64)

        def of(*numbers: Fraction) -> Fraction:
            return Fraction(float(run(*(np.array(float(x)) for x in numbers))))

        return cls(of, run, len(signature(function).parameters))


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve(Link):
    """Any function of each value."""

    reversible: ClassVar[bool] = False
    looked_up: ClassVar[bool] = True

    formulas: Array
    """array of Formula: channels with equal ones are alike."""

    @property
    def falls(self) -> Array:
        return np.array([True])  # it may

    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        formula: Formula = entry(self.formulas, channel)
        return formula.of(x)

    def run(self, x: Array) -> Array:
        formulas = self.formulas.reshape((1,) * (x.ndim - self.formulas.ndim) + self.formulas.shape)
        out = np.empty(x.shape)
        for place in np.ndindex(formulas.shape):
            part = tuple(slice(k, k + 1) if size > 1 else slice(None) for k, size in zip(place, formulas.shape))
            with np.errstate(all="ignore"):  # what has no value is nan, or infinite
                out[part] = formulas[place].of_floats(x[part])
        return out

    def before(self, condition: Condition, channel: int = 0) -> Condition:
        raise TypeError(f"{self.name}: no condition can be pulled back through a curve")


def uniform_curve(name: str, formula: Formula) -> Curve:
    """The curve that has one formula, of one number, in all channels."""
    return Curve(name=name, formulas=np.array(formula, object))


def curve(name: str, function: Callable[[float], float]) -> Curve:
    """The curve of a function of float64 numbers, in all channels."""

    values = infinite_beyond(function)

    def of(x: Fraction) -> Fraction:
        value = values(float(x))
        if not math.isfinite(value):
            raise Unsupported(f"the values of {name} must be finite, got {value} at {float(x):g}")
        return Fraction(value)

    return uniform_curve(name, Formula(of, np.vectorize(values, otypes=[np.float64])))


def infinite_beyond(function: Callable[[float], float]) -> Callable[[float], float]:
    """The function, which is infinite where it leaves the range of float64, as exp does, and nan where it has no
    value."""

    def value_at(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return value_at


def table_curve(name: str, rows: Array) -> Curve:
    """The curve that has a row's integers at -128 .. 127; beyond, those at the ends.

    Parameters
    ----------
    name : str
    rows : (channels or 1, 256) int64
        Channels are a tensor's last axis.
    """

    @cache
    def formula(row: tuple[int, ...]) -> Formula:
        values = np.array(row)
        return Formula.of_integers(lambda x: values[np.clip(x, LOW, HIGH) - LOW])

    formulas = np.empty(len(rows), object)
    formulas[:] = [formula(tuple(row)) for row in rows.tolist()]
    return Curve(name=name, formulas=formulas)


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

    return uniform_curve("HardSwish", Formula(of, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)))


def leaky(name: str, slopes: Array) -> Curve:
    """x, or slope * x below 0, whatever sign a slope, a Fraction, has: the curve for slopes that spread over a
    tensor."""

    @cache
    def formula(slope: Fraction) -> Formula:
        return Formula(lambda x: x * slope if x < 0 else x, lambda x: np.where(x < 0, x * float(slope), x))

    return Curve(name=name, formulas=np.asarray(np.vectorize(formula, otypes=[object])(slopes), object))
