"""Bit order and packing: the one definition.

* Bit 1 means +1, bit 0 means -1 (spec A).
* Element 0 of a row is the least significant bit of word 0; element i is bit i % n of word i // n (n bits a word).
* The last axis varies fastest: in a map (..., H, W, C) and in a kernel (O, rows, columns, C) that is the channel
  (spec A4). A value of several bits takes neighbouring elements, its least significant (or first
  thermometer) bit first.

Words are numbers; the code that writes them to a file or a stream decides the order of their bytes.
"""

from typing import Any

import numpy as np

from .encoding import Array, Encoding
from .integers import plain


def word_count(elements: int, word_bits: int) -> int:
    """Number of words of ``word_bits`` bits that hold a row of ``elements`` bits."""
    return -(-elements // word_bits)


def pack(bits: Array, word_bits: int = 64, filler: int = 0) -> Array:
    """Pack the last axis into words.

    Parameters
    ----------
    bits : (..., n) of 0 and 1
    word_bits : int
        32 or 64.
    filler : int
        0 or 1: the unused bits of the last word.

    Returns
    -------
    (..., word_count(n, word_bits)) uint32 or uint64

    Raises
    ------
    ValueError
        If bits or filler are something else than 0 and 1, or word_bits than 32 and 64.
    """
    dtype = _word_dtype(word_bits)
    bits = np.asarray(bits)
    if bits.ndim < 1:
        raise ValueError("pack: bits must have an axis, got a scalar")
    _check_bits("pack", bits)
    if filler not in (0, 1):
        raise ValueError(f"pack: filler must be 0 or 1, got {filler!r}")
    words = word_count(bits.shape[-1], word_bits)
    full = np.full((*bits.shape[:-1], words * word_bits), filler, np.uint8)
    full[..., : bits.shape[-1]] = bits
    octets = np.packbits(full, axis=-1, bitorder="little")  # (..., words * bytes)
    return octets.view(dtype).astype(dtype.newbyteorder("="))


def unpack(words: Array, elements: int) -> Array:
    """Take words apart: the inverse of `pack`.

    Parameters
    ----------
    words : (..., w) uint32 or uint64
    elements : int
        Bits of a row; what is above them in the last word is dropped.

    Returns
    -------
    (..., elements) uint8 of 0 and 1

    Raises
    ------
    ValueError
        If the dtype is another one, or w is not the number of words that ``elements`` bits need.
    """
    if words.dtype not in (np.uint32, np.uint64):
        raise ValueError(f"unpack: words must be uint32 or uint64, got {words.dtype}")
    word_bits = 8 * words.dtype.itemsize
    if words.ndim < 1 or words.shape[-1] != word_count(elements, word_bits):
        raise ValueError(
            f"unpack: {elements} elements need {word_count(elements, word_bits)} words of {word_bits} bits, "
            f"got shape {words.shape}"
        )
    octets = np.ascontiguousarray(words.astype(_word_dtype(word_bits))).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=elements, bitorder="little")


def to_bits(values: Array, encoding: Encoding) -> Array:
    """The stored bits of values.

    Bipolar values are stored as a thermometer: the first (value + k) / 2 of the k bits are 1. All others are stored in
    two's complement, least significant bit first.

    Parameters
    ----------
    values : (...) integers
    encoding : Encoding
        Of the values.

    Returns
    -------
    (..., encoding.bits) uint8 of 0 and 1

    Raises
    ------
    ValueError
        If a value is not of the encoding.
    """
    encoding.check("to_bits", values)
    if encoding.kind == "bipolar":
        limits = 2 * np.arange(encoding.bits, dtype=np.int8) - encoding.bits  # bit i is 1 above limit i
        return np.asarray(values.astype(np.int8)[..., None] > limits).view(np.uint8)
    octets = next(n for n in (1, 2, 4, 8) if 8 * n >= encoding.bits)
    codes = values.astype(f"<u{octets}")[..., None]  # (..., 1); a negative value wraps to its two's complement
    return np.unpackbits(np.ascontiguousarray(codes).view(np.uint8), axis=-1, count=encoding.bits, bitorder="little")


def from_bits(bits: Array, encoding: Encoding) -> Array:
    """The values of stored bits: the inverse of `to_bits`.

    Parameters
    ----------
    bits : (..., encoding.bits) of 0 and 1
        Bits of a bipolar value may be in any order, as k comparators give them: the value is their sum as +-1.
    encoding : Encoding
        Of the values.

    Returns
    -------
    (...) int64

    Raises
    ------
    ValueError
        If the last axis has another length, or bits stand for no value of the encoding: ternary has no -2.
    """
    if bits.shape[-1:] != (encoding.bits,):
        raise ValueError(f"from_bits: {encoding} needs {encoding.bits} bits on the last axis, got shape {bits.shape}")
    _check_bits("from_bits", bits)
    if encoding.kind == "bipolar":
        values: Array = 2 * bits.sum(axis=-1, dtype=np.int64) - encoding.bits
    else:
        weights = np.left_shift(np.int64(1), np.arange(encoding.bits))
        if encoding.kind != "unsigned":
            weights[-1] = -weights[-1]
        values = bits.astype(np.int64) @ weights
    encoding.check("from_bits", values)
    return values


def _check_bits(name: str, bits: Array) -> None:
    """Raise ValueError, naming ``name``, unless all elements are 0 or 1."""
    if bits.dtype == bool:
        return
    bad = ~((bits == 0) | (bits == 1))
    if bad.any():
        raise ValueError(f"{name}: bits must be 0 or 1, got {bits[bad].flat[0]}")


def _word_dtype(word_bits: int) -> "np.dtype[Any]":
    """Little-endian dtype of a word."""
    if type(plain(word_bits)) is not int or word_bits not in (32, 64):
        raise ValueError(f"pack: word_bits must be 32 or 64, got {word_bits!r}")
    return np.dtype(f"<u{word_bits // 8}")
