"""Arrays of npy data, without numpy's own reader of the header, which takes any Python literal however large or deep.

What ``numpy.save`` writes for an array of plain numbers or text is read, in either byte order and either order of the
axes. Objects and structures are not.
"""

import math
import re
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.names import shown

MAGIC = b"\x93NUMPY"
LENGTH_BYTES = {1: 2, 2: 4, 3: 4}
"""Bytes of the header's length, by version of the format."""
LONGEST_HEADER = 1024
MOST_AXES = 32
LAST_CHARACTER = 0x10FFFF
"""Unicode's; numpy makes texts of larger numbers, but no Python string of them."""
KINDS = {"b": "truth values", "i": "integers", "u": "integers", "f": "floats", "U": "text"}
"""Name of each kind of dtype, for messages."""

_HEADER = re.compile(
    r"\{'descr': '([<>|=]?[a-zA-Z]\d{0,8})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), ?\} *\n?",
    re.ASCII,
)


def parse_npy(data: bytes, kinds: str = "biu") -> Array:
    """Read an array.

    Parameters
    ----------
    data : bytes
        A whole npy file.
    kinds : str
        Kinds of dtypes that are allowed, some of KINDS.

    Returns
    -------
    array
        A copy, row-major, in the machine's byte order.

    Raises
    ------
    ValueError
        If the data are not npy, of another kind, or more or less than the shape needs; also if floats are not finite,
        or texts have numbers that are no characters.
    """
    header, begin = _header(data)
    match = _HEADER.fullmatch(header)
    if match is None:
        raise ValueError(f"must have an npy header of one plain dtype and a shape, got {shown(header.strip())}")
    dtype = _dtype(match[1])
    if dtype is None or dtype.kind not in kinds:
        names = " or ".join(dict.fromkeys(KINDS[kind] for kind in kinds))
        raise ValueError(f"must be an array of {names}, got dtype {match[1]!r}")
    shape = tuple(int(digits) for digits in match[3].replace(" ", "").split(",") if digits)
    if len(shape) > MOST_AXES:
        raise ValueError(f"must have at most {MOST_AXES} axes, got {len(shape)}")
    needed = dtype.itemsize * math.prod(shape)
    size = len(data) - begin
    if dtype.itemsize == 0 or needed != size:
        raise ValueError(f"an array of {dtype} and shape {shape} needs {needed:,} bytes, got {size:,}")
    flat = np.frombuffer(data, dtype, offset=begin).astype(dtype.newbyteorder("="))
    if dtype.kind == "f" and not np.isfinite(flat).all():
        raise ValueError(f"values must be finite, got {flat[~np.isfinite(flat)][0]}")
    if dtype.kind == "U" and (largest := int(flat.view(np.uint32).max(initial=0))) > LAST_CHARACTER:
        raise ValueError(f"text must be of Unicode characters, <= {LAST_CHARACTER:#x}, got {largest:#x}")
    if match[2] == "False":
        return flat.reshape(shape)
    return np.ascontiguousarray(flat.reshape(shape[::-1]).T).reshape(shape)  # ascontiguousarray makes 0 axes 1


def _dtype(name: str) -> "np.dtype[Any] | None":
    """The dtype of that name; None where numpy knows none, or none that is read here."""
    try:
        return np.dtype(name) if name.lstrip("<>|=")[0] in KINDS else None
    except TypeError:
        return None


def _header(data: bytes) -> tuple[str, int]:
    """The header's text, and where the values begin."""
    if not data.startswith(MAGIC) or len(data) < 12 or data[6] not in LENGTH_BYTES:
        raise ValueError(f"must be npy data, got {shown(bytes(data[: len(MAGIC)]))}")
    first = 8 + LENGTH_BYTES[data[6]]
    length = int.from_bytes(data[8:first], "little")
    if length > min(LONGEST_HEADER, len(data) - first):
        most = "the file's end" if length <= LONGEST_HEADER else f"{LONGEST_HEADER} bytes"
        raise ValueError(f"the npy header must not go beyond {most}, got {length:,} bytes")
    return data[first : first + length].decode("latin-1"), first + length
