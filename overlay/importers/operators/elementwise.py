"""Operators that compute each value for itself: they become links."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.activations import ACTIVATIONS, ActivationFunction
from bitloom.overlay.importers.bends import clip
from bitloom.overlay.importers.curves import Formula, uniform_curve
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.integer_types import element_dtype, integer_ends
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Combination, Difference, Extreme, Product, Sum
from bitloom.overlay.importers.rationals import fractions, root

from .registry import operator

MOST_END = 3e38
"""Larger ends of a clip cut nothing: files have the largest float32, or infinity, for an end that is missing."""


def activate(node: NodeView, activation: ActivationFunction) -> None:
    """Append the function of an activation of each value."""
    assert activation.function is not None
    node.elementwise(activation.function(node))


for _activation in ACTIVATIONS:
    if not _activation.at_the_end:  # others have another function (closing.py)
        operator(_activation.onnx, everywhere=True)(partial(activate, activation=_activation))


@operator("Identity", "Dropout", "Cast", "CastLike", everywhere=True)
def identity(node: NodeView) -> None:
    """Nothing happens: a cast of numbers that fit keeps them, and dropout is for training."""
    kind = _cast_to(node)
    if kind not in (1, 11) and not _fits(node, kind):  # narrower floats round
        raise Unsupported(f"a map must be cast to float32 or float64, got type {kind}", "quantise with QuantizeLinear")
    node.only_map(0)
    node.affine()


def _cast_to(node: NodeView) -> int:
    """The type of ONNX's that the node makes: 1, float32, where the node keeps its input's type."""
    if node.node.op == "CastLike":
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(node.constant(1, "what the type is taken of").dtype))
    training = node.optional(2) if node.node.op == "Dropout" else None
    if training is not None and training.any():
        raise Unsupported("training_mode must be False, got True", "export the network in evaluation mode")
    return int(node.attribute("to", 1)) if node.node.op == "Cast" else 1


def _fits(node: NodeView, kind: int) -> bool:
    """Whether the map holds integers that a type of ONNX's has, too: PyTorch casts what is quantised to its type."""
    dtype = element_dtype(kind)
    if dtype is None:
        return False
    node.makes_type = integer_ends(dtype)
    return node.makes_type is not None and node.keeps_integers(*node.makes_type)


@operator("Add", "Sum", everywhere=True)
def add(node: NodeView) -> None:
    """x + c, c + x, or the sum of two maps."""
    if node.reads_two_maps:
        node.join(Sum)
    else:
        node.affine(add=_other(node))


@operator("Concat")
def concatenate(node: NodeView) -> None:
    """Maps behind one another."""
    if len(node.maps) != len(node.node.inputs):
        raise Unsupported("a map must be concatenated with maps, got a constant")
    node.concatenate(int(node.attribute("axis", 1)))


COMBINED: dict[str, Callable[..., Any]] = {
    "Greater": lambda x, y: x > y,
    "GreaterOrEqual": lambda x, y: x >= y,
    "Less": lambda x, y: x < y,
    "LessOrEqual": lambda x, y: x <= y,
    "Equal": lambda x, y: x == y,
    "And": lambda x, y: x * y,
    "Or": lambda x, y: x + y - x * y,
    "Not": lambda x: 1 - x,
    "Where": lambda where, x, y: where * x + (1 - where) * y,
}
"""Operator -> the function of the values at each place, of fractions as well as of float64 numbers, with a parameter
for each input. What is true is 1."""


def combine(node: NodeView, formula: Formula) -> None:
    """Append a function of the values at each place of all inputs, of which those that are constants are one number
    each: a curve of one map, or a combination of several."""
    node.check_inputs(formula.count)
    given = node.node.inputs
    numbers = dict[int, Fraction]()
    for place, name in enumerate(given):
        if name not in node.maps:
            constant = node.constant(place, f"input {place}")
            if constant.size != 1:
                raise Unsupported(f"a constant must be one number, got shape {constant.shape}")
            numbers[place] = fractions(constant).item()

    def whole(values: Iterable[Any], of: type) -> list[Any]:
        """Values of the maps, and the constants between them."""
        others = iter(values)
        return [of(numbers[place]) if place in numbers else next(others) for place in range(len(given))]

    bound = Formula(
        lambda *values: formula.of(*whole(values, Fraction)),
        lambda *values: formula.of_floats(*whole(values, float)),
        len(node.maps),
    )
    if len(node.maps) == 1:
        node.elementwise(uniform_curve(node.node.op, bound))
    else:
        node.join(Combination, formula=bound)


for _op, _function in COMBINED.items():
    operator(_op, everywhere=True)(partial(combine, formula=Formula.of_both(_function)))


@operator("Sub", everywhere=True)
def subtract(node: NodeView) -> None:
    """x - c, c - x, or the difference of two maps."""
    if node.reads_two_maps:
        node.join(Difference)
        return
    constant = fractions(_other(node))
    if _is_first(node):
        node.affine(add=-constant)
    else:
        node.affine(multiply=-1, add=constant)


@operator("Mul", everywhere=True)
def multiply(node: NodeView) -> None:
    """x * c, c * x, or the product of two maps."""
    if node.reads_two_maps:
        node.join(Product)
    else:
        node.affine(multiply=_other(node))


@operator("Div", everywhere=True)
def divide(node: NodeView) -> None:
    """x / c, c / x, or the quotient of two maps."""
    if node.reads_two_maps or not _is_first(node):
        combine(node, Formula.of_both(lambda x, y: x / y))
        return
    constant = fractions(_other(node))
    if node.makes_type is not None:
        raise Unsupported("integers must not be divided, whose rest is cut off", "put DequantizeLinear before it")
    if any(value == 0 for value in constant.ravel()):
        raise Unsupported("a map must be divided by numbers other than 0")
    node.affine(multiply=1 / constant)


@operator("Neg", everywhere=True)
def negate(node: NodeView) -> None:
    """-x."""
    node.affine(multiply=-1)


@operator("BatchNormalization")
def batch_normalization(node: NodeView) -> None:
    """(x - mean) * gamma / sqrt(variance + epsilon) + beta, exactly, with the root as `rationals.root` has it."""
    if int(node.attribute("training_mode", 0)):
        raise Unsupported("training_mode must be 0, got 1", "export the network in evaluation mode")
    node.only_map(0)
    gamma, beta, mean, variance = (
        fractions(node.per_channel(node.constant(place, what)))
        for place, what in enumerate(("gamma", "beta", "mean", "variance"), 1)
    )
    epsilon = Fraction(float(node.attribute("epsilon", 1e-5)))
    total = variance + epsilon
    if any(value <= 0 for value in total.ravel()):
        raise Unsupported("variance + epsilon must be > 0 in every channel")
    scale = gamma / np.vectorize(root, otypes=[object])(total)
    node.affine(multiply=scale, add=beta - mean * scale)


@operator("Clip", everywhere=True)
def within_ends(node: NodeView) -> None:
    """min(max(x, low), high): the ends are inputs, or attributes in older files."""
    ends = []
    for place, name in ((1, "min"), (2, "max")):
        given = node.optional(place)
        value = node.attribute(name, None) if given is None else _end(given, name)
        ends.append(None if value is None else np.array(float(value)))
    node.only_map(0)
    _limit(node, *ends)


@operator("Max", "Min", everywhere=True)
def extreme(node: NodeView) -> None:
    """The larger or the smaller one of two maps, or the extreme one of x and constants, which may differ by channel."""
    largest = node.node.op == "Max"
    if node.reads_two_maps:
        node.join(Extreme, largest=largest)
        return
    for end in _constants(node) or [None]:
        _limit(node, *((end, None) if largest else (None, end)))


def _constants(node: NodeView) -> list[Array | None]:
    """All constants of an operator whose other input is a map."""
    here = node.only_map()
    return [node.constant(place, "the other input") for place, name in enumerate(node.node.inputs) if name != here]


def _limit(node: NodeView, low: Array | None, high: Array | None) -> None:
    """Append min(max(x, low), high), of which each end may be missing or differ by channel."""
    if not _narrowed(node, low, high):
        node.elementwise(clip(_exact_ends(low, "lower"), _exact_ends(high, "upper")))


def _exact_ends(ends: Array | None, side: str) -> Array | None:
    """The "lower" or the "upper" ends of a clip as fractions; None where there is none, as it is beyond all numbers."""
    if ends is None:
        return None
    values = ends.astype(np.float64)
    outwards = values if side == "upper" else -values
    nothing = values[outwards < -MOST_END]
    if nothing.size:
        raise Unsupported(f"the {side} end of a clip must leave some numbers, got {nothing[0]:g}")
    missing = outwards > MOST_END
    out = fractions(np.where(missing, 0, ends))
    out[missing] = None
    return out


def _end(given: Array, name: str) -> float:
    """An end that is an input."""
    if given.size != 1 or np.isnan(given).any():
        got = f"shape {given.shape}" if given.size != 1 else "nan"
        raise Unsupported(f"{name} must be one number, got {got}")
    return float(given.ravel()[0])


def _narrowed(node: NodeView, low: Array | None, high: Array | None) -> bool:
    """Cut a map of integers to fewer of them, as Brevitas writes 2 to 7 bits with QuantizeLinear; False if it is none.

    So the clip is a quantiser itself, which becomes one with that in front of it.
    """
    known = node.integers
    given = [end for end in (low, high) if end is not None]
    if known is None or any(end.size != 1 or not float(end.item()).is_integer() for end in given):
        return False
    least = known[0] if low is None else max(known[0], int(low.item()))
    most = known[1] if high is None else min(known[1], int(high.item()))
    if (least, most) == known or least >= most:
        return False
    node.quantise_integers(least, most)
    return True


def _other(node: NodeView) -> Array:
    """The constant of an operator with two inputs, of which the other is the map."""
    node.only_map()
    node.check_inputs(2)
    return node.constant(1 if _is_first(node) else 0, "the other input")


def _is_first(node: NodeView) -> bool:
    """Whether the map is the first input."""
    return node.node.inputs[0] == node.only_map()
