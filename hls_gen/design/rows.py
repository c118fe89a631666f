"""Rows of memories, packed into 32-bit words; word 0 has the least significant bits."""

from collections.abc import Mapping, Sequence

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.memories.memory import Memory

from .headers import Words


def pack_rows(width: int, values: Array | Sequence[int]) -> Words:
    """Pack rows of a memory into words.

    Parameters
    ----------
    width
        Bits of a row.
    values
        (n, width) array of 0 and 1, column 0 the least significant bit; or n integers of any size, each in
        -2^(width - 1)..2^width - 1 (a negative one becomes two's complement).

    Returns
    -------
    ndarray
        (n, ceil(width / 32)) uint32, word 0 the least significant.

    Raises
    ------
    ValueError
        A value doesn't fit.
    """
    words = -(-width // 32)
    if isinstance(values, np.ndarray) and values.ndim == 2:
        if values.shape[1] != width or ((values != 0) & (values != 1)).any():
            raise ValueError(f"rows: bits must be 0 or 1 of shape (n, {width}), got shape {values.shape}")
        padded = np.zeros((len(values), 32 * words), np.uint8)
        padded[:, :width] = values
        return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)
    data = bytearray()
    for value in values:
        number = int(value)
        if not -(1 << (width - 1)) <= number < 1 << width:
            raise ValueError(f"rows: a value must fit {width} bits, got {number}")
        data += (number & ((1 << width) - 1)).to_bytes(4 * words, "little")
    return np.frombuffer(bytes(data), "<u4").reshape(-1, words).astype(np.uint32)


def pack_fields(memory: Memory, values: Mapping[str, Array | Sequence[int]]) -> Words:
    """Pack rows of a memory, given by field.

    Parameters
    ----------
    memory
        The memory.
    values
        Name of a field -> n integers, each in -2^(w - 1)..2^w - 1 where the field has w bits. Fields that are not named
        are 0.

    Returns
    -------
    ndarray
        (n, memory.words) uint32.

    Raises
    ------
    KeyError
        The memory has no such field.
    ValueError
        A value doesn't fit, or fields have different numbers of rows.
    """
    counts = {name: len(column) for name, column in values.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"memory {memory.name}: all fields must have the same number of rows, got {counts}")
    rows = [0] * next(iter(counts.values()))
    for name, column in values.items():
        target = memory.field(name)
        for i, value in enumerate(column):
            number = int(value)
            if not -(1 << (target.width - 1)) <= number < 1 << target.width:
                raise ValueError(f"memory {memory.name}: {name} must fit {target.width} bits, got {number} in row {i}")
            rows[i] |= target.at(number)
    return pack_rows(memory.width, rows)
