"""TFLite's operators on shapes, which files for any number of images compute, and those that move the values of other
constants, such as a detector's anchors: they are constants here.

Keras' Flatten is SHAPE, STRIDED_SLICE, PACK and RESHAPE: the first number of the input's shape, then -1 for the rest.
"""

from collections.abc import Callable, Sequence

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .source import SourceNode

MOST = 64
"""Numbers that an operator on shapes reads and makes, at most."""


def run_shape(node: SourceNode, inputs: Sequence[Array | None]) -> Array:
    """What an operator of OF_SHAPES makes of constants.

    Raises
    ------
    Unsupported
        If the constants are larger than shapes are, or the operator can't compute with them.
    """
    given = [values for values in inputs if values is not None]
    count = sum(values.size for values in given)
    if count > MOST or not of_shapes(given):
        raise Unsupported(f"of constants, shapes of at most {MOST} integers are computed, got {count:,} numbers")
    try:
        return OF_SHAPES[node.op](node, given)
    except (ValueError, IndexError) as e:
        raise Unsupported(f"must be of shapes that fit, got: {e}") from None


def run_moved(node: SourceNode, inputs: Sequence[Array | None]) -> Array:
    """What an operator of MOVES makes.

    Raises
    ------
    Unsupported
        If its inputs don't fit each other.
    """
    try:
        return MOVES[node.op](node, [np.asarray(values) for values in inputs if values is not None])
    except (ValueError, IndexError, TypeError) as e:
        if isinstance(e, Unsupported):
            raise
        raise Unsupported(f"values must be moved within a map, got: {e}") from None


def of_shapes(inputs: Sequence[Array | None]) -> bool:
    """Whether constants are of the types that shapes have."""
    return all(values is None or values.dtype in (np.int32, np.int64) for values in inputs)


def strided_slice(node: SourceNode, inputs: Sequence[Array]) -> Array:
    """Numbers from where to where, and each how many; those of an axis that is shrunk are one number."""
    values, begin, end, strides = inputs
    axes = begin.size
    if node.attributes.get("others") or not axes == end.size == strides.size <= values.ndim:
        raise Unsupported("a slice must have a begin, an end and a stride for each axis, and no other masks")
    places: list[int | slice] = []
    for axis, (first, last, stride) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist())):
        masked = {key: int(node.attributes.get(key, 0)) >> axis & 1 for key in ("begin", "end", "shrink")}
        part = slice(None if masked["begin"] else first, None if masked["end"] else last, stride)
        places.append(first if masked["shrink"] else part)
    return np.asarray(values[tuple(places)])


def _pack(node: SourceNode, inputs: Sequence[Array]) -> Array:
    """Arrays of one shape beside one another, along a new axis."""
    return np.stack(inputs, axis=int(node.attributes.get("axis", 0)))


def _concatenation(node: SourceNode, inputs: Sequence[Array]) -> Array:
    return np.concatenate(inputs, axis=int(node.attributes.get("axis", 0)))


def _gather(node: SourceNode, inputs: Sequence[Array]) -> Array:
    return np.asarray(np.take(inputs[0], inputs[1], axis=0))


def _dequantize(node: SourceNode, inputs: Sequence[Array]) -> Array:
    scale, zero = node.attributes["scales"][0].per_tensor("the input")
    return (inputs[0].astype(np.float32) - np.float32(zero)) * np.float32(scale)


MOVES: dict[str, Callable[[SourceNode, Sequence[Array]], Array]] = {
    "CONCATENATION": _concatenation,
    "TRANSPOSE": lambda node, inputs: inputs[0].transpose(inputs[1]),
    "TILE": lambda node, inputs: np.tile(inputs[0], inputs[1].tolist()),
    "STRIDED_SLICE": strided_slice,
    "DEQUANTIZE": _dequantize,
}
"""Operator -> what it makes of maps, and of constants that are no shapes: the same values elsewhere, several times, or
the real numbers that they stand for."""
OF_SHAPES: dict[str, Callable[[SourceNode, Sequence[Array]], Array]] = {
    "STRIDED_SLICE": strided_slice,
    "PACK": _pack,
    "CONCATENATION": _concatenation,
    "GATHER": _gather,
    "MUL": lambda node, inputs: np.asarray(inputs[0] * inputs[1]),
    "REDUCE_PROD": lambda node, inputs: np.asarray(np.prod(inputs[0])),
    "CAST": lambda node, inputs: inputs[0].astype(np.int64),
}
"""Operator -> what it makes of constants."""
