"""Arrays of IDX data, the format of MNIST's files, plain or compressed by gzip.

Two zero bytes, a byte for the type, a byte for the number of axes; the axes' sizes, 4 bytes each; then the values,
row-major. All numbers have their most significant byte first.
"""

import gzip
import io
import math
import os
import zlib

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.limits import check_read
from bitloom.golden.names import shown

from .file import foreign_reason, naming, read_file

GZIP = b"\x1f\x8b"
"""First bytes of data that gzip has compressed."""
MAGIC = b"\0\0"
DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4"}
"""Integer types by the byte that stands for them; floats are not read."""
MOST_AXES = 4


def parse_idx(data: bytes) -> Array:
    """Read an array of integers.

    Parameters
    ----------
    data : bytes
        A whole IDX file, which may be compressed by gzip. No more of it is unpacked than its header announces.

    Returns
    -------
    array
        Row-major, in the machine's byte order.

    Raises
    ------
    ValueError
        If the data are damaged, hold no integers, more or less than the axes need, or need more memory than
        `bitloom.golden.limits` allow. One line.
    """
    if not data.startswith(GZIP):
        return _parse(io.BytesIO(data), len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return _parse(stream, len(data))
    except (OSError, EOFError, zlib.error) as e:
        raise ValueError(f"must be whole, unchanged gzip data, got: {foreign_reason(e)}") from None


def read_idx(path: str | os.PathLike[str]) -> Array:
    """Read an IDX file, plain or compressed by gzip.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        As `parse_idx`, with the path in front.
    """
    data = read_file(path)
    with naming(os.fspath(path)):
        return parse_idx(data)


def _parse(stream: "io.BytesIO | gzip.GzipFile", size: int) -> Array:
    """The array in a stream, made from a file of ``size`` bytes."""
    head = stream.read(4)
    if len(head) < 4 or not head.startswith(MAGIC):
        raise ValueError(f"must be IDX data, two zero bytes and then two others, got {shown(head)}")
    if head[2] not in DTYPES:
        raise ValueError(f"IDX data must be integers, type 8, 9, 11 or 12, got type {head[2]}")
    if not 1 <= head[3] <= MOST_AXES:
        raise ValueError(f"IDX data must have 1..{MOST_AXES} axes, got {head[3]}")
    dtype = np.dtype(DTYPES[head[2]])
    native = dtype.newbyteorder("=")
    sizes = stream.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise ValueError(f"the IDX header must have {4 * head[3]} bytes for {head[3]} axes, got {len(sizes)}")
    shape = tuple(int(length) for length in np.frombuffer(sizes, ">u4"))
    if 0 in shape:
        raise ValueError(f"IDX axes must be >= 1, got shape {shape}")
    needed = dtype.itemsize * math.prod(shape)
    check_read("its values", 2 * needed, size)  # twice: unpacked in pieces, then joined; or in either byte order
    values = stream.read(needed + 1)  # one more than there should be: so the end is looked at, with its checksum
    if len(values) != needed:
        got = f"{len(values):,}" if len(values) < needed else "more"
        raise ValueError(f"an IDX array of {native} and shape {shape} needs {needed:,} bytes, got {got}")
    return np.frombuffer(values, dtype).astype(native, copy=False).reshape(shape)
