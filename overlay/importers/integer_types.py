"""Types of integers, also those of 2 and 4 bits that ONNX has and numpy doesn't."""

import re
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

_NAME = re.compile(r"(u?)int(2|4|8|16|32|64)")


def integer_ends(dtype: "np.dtype[Any]") -> tuple[int, int] | None:
    """The least and the largest number of a type of integers; None of other types."""
    name = dtype.names[0] if dtype.names else dtype.name  # older ones of ONNX are int8 with such a field
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    bits = int(match[2])
    return (0, (1 << bits) - 1) if match[1] else (-(1 << bits - 1), (1 << bits - 1) - 1)


def is_number(dtype: "np.dtype[Any]") -> bool:
    """Whether a type is one of numbers that fractions can be made of."""
    return dtype.kind in "biuf" or integer_ends(dtype) is not None


def plain(values: Array) -> Array:
    """Numbers as numpy has them: those of 2 and 4 bits become int64."""
    return values if values.dtype.kind in "biufO" or integer_ends(values.dtype) is None else values.astype(np.int64)
