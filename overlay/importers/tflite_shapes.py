"""TFLite's operators that compute shapes, and those that move the values of maps and of other constants, such as a
detector's anchors. What they make of constants is a constant.

Files for any number of images compute shapes: Keras' Flatten is SHAPE, STRIDED_SLICE, PACK and RESHAPE: the first
number of the input's shape, then -1 for the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .source import SourceNode

MOST = 64
"""Numbers that an operator reads and makes of shapes, at most."""


@dataclass(frozen=True)
class Mover:
    """An operator, and what it is computed of."""

    run: Callable[[SourceNode, Sequence[Array]], Array]
    shapes: bool
    """Whether of shapes: integers of 32 or 64 bits."""
    others: bool
    """Whether of maps, and of constants that are no shapes: it makes the same values elsewhere, several times, or the
    real numbers that they stand for."""


def run_constants(node: SourceNode, inputs: Sequence[Array | None]) -> Array:
    """Result of an operator of MOVERS for constants.

    Raises
    ------
    Unsupported
        If the operator isn't computed of such constants, they don't fit each other, or they are larger than shapes are.
    """
    mover = MOVERS[node.op]
    given = [values for values in inputs if values is not None]
    of_shapes = all(values.dtype in (np.int32, np.int64) for values in given)
    if mover.others and not of_shapes:
        return run_moved(node, given)
    if not mover.shapes:
        raise Unsupported("must be one of the operators that constants can be made with")
    count = sum(values.size for values in given)
    if count > MOST or not of_shapes:
        raise Unsupported(f"of constants, shapes of at most {MOST} integers are computed, got {count:,} numbers")
    try:
        return mover.run(node, given)
    except (ValueError, IndexError) as e:
        raise Unsupported(f"must be of shapes that fit, got: {e}") from None


def run_moved(node: SourceNode, inputs: Sequence[Array | None]) -> Array:
    """Result of an operator of MOVERS for a map, or for constants that are no shapes.

    Raises
    ------
    Unsupported
        If its inputs don't fit each other.
    """
    try:
        return MOVERS[node.op].run(node, [np.asarray(values) for values in inputs if values is not None])
    except (ValueError, IndexError, TypeError) as e:
        if isinstance(e, Unsupported):
            raise
        raise Unsupported(f"values must be moved within a map, got: {e}") from None


def _strided_slice(node: SourceNode, inputs: Sequence[Array]) -> Array:
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


MOVERS = {
    "CONCATENATION": Mover(_concatenation, shapes=True, others=True),
    "STRIDED_SLICE": Mover(_strided_slice, shapes=True, others=True),
    "TRANSPOSE": Mover(lambda node, inputs: inputs[0].transpose(inputs[1]), shapes=False, others=True),
    "TILE": Mover(lambda node, inputs: np.tile(inputs[0], inputs[1].tolist()), shapes=False, others=True),
    "DEQUANTIZE": Mover(_dequantize, shapes=False, others=True),
    "PACK": Mover(_pack, shapes=True, others=False),
    "GATHER": Mover(_gather, shapes=True, others=False),
    "MUL": Mover(lambda node, inputs: np.asarray(inputs[0] * inputs[1]), shapes=True, others=False),
    "REDUCE_PROD": Mover(lambda node, inputs: np.asarray(np.prod(inputs[0])), shapes=True, others=False),
    "CAST": Mover(lambda node, inputs: inputs[0].astype(np.int64), shapes=True, others=False),
}
"""Operator by its name."""
