"""Types of integers, also those of 2 and 4 bits that ONNX has and numpy doesn't."""

import re
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported

Ends = tuple[int, int]
"""The least and the largest of some integers."""
_NAME = re.compile(r"(u?)int(2|4|8|16|32|64)")


def element_dtype(element: int) -> "np.dtype[Any] | None":
    """numpy's type of the elements of ONNX's type number ``element``; None of a number that has no type.

    Raises
    ------
    Unsupported
        If the type has 2 or 4 bits, and the installed onnx holds its numbers as ones of 8 bits: onnx 1.18 and older.
    """
    from onnx import TensorProto, __version__, helper

    try:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(element))
        name = TensorProto.DataType.Name(element).lower()
    except (KeyError, TypeError, ValueError):
        return None
    if _NAME.fullmatch(name) and dtype.name != name:
        raise Unsupported(f"type {name} needs the package onnx 1.19 or later, got {__version__}")
    return dtype


def integer_ends(dtype: "np.dtype[Any]") -> Ends | None:
    """The least and the largest number of a type of integers; None of other types."""
    match = _NAME.fullmatch(dtype.name)
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
