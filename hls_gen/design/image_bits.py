"""Bits of images, as frames carry them, and values of results."""

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array, Encoding, signed
from bitloom.golden.packing import from_bits, to_bits


def stored_bits(encoding: Encoding, values: Array) -> Array:
    """Take values apart into bits as ``bitloom.golden.packing.to_bits`` does, about 10 times as fast.

    Parameters
    ----------
    encoding
        How the values are stored.
    values
        (n, size) legal values.

    Returns
    -------
    ndarray
        (n, size * encoding.bits) uint8 of 0 and 1, low bits first.
    """
    n, size = values.shape
    if encoding == BIPOLAR:
        return np.asarray((values > 0).view(np.uint8))
    if encoding.kind == "bipolar":
        return to_bits(values, encoding).reshape(n, -1)
    container = next(size for size in (1, 2, 4, 8) if 8 * size >= encoding.bits)
    codes = values.astype(f"<i{container}" if encoding.low < 0 else f"<u{container}")
    codes = np.ascontiguousarray(codes).view(np.uint8)
    if encoding.bits == 8 * container:
        return np.unpackbits(codes, axis=1, bitorder="little")
    codes = codes.reshape(n, size, container)
    return np.unpackbits(codes, axis=2, count=encoding.bits, bitorder="little").reshape(n, -1)


def read_results(words: Array, index: Array, kind: str) -> Array:
    """Values in the result words of frames.

    Parameters
    ----------
    words
        (n, result words) uint32.
    index, kind
        ``result_index`` and ``output_kind`` of the program.

    Returns
    -------
    ndarray
        (n, outputs) int64.
    """
    if kind == "raw":
        return np.take(words, index[:, 0], axis=1).view(np.int32).astype(np.int64)
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), axis=1, bitorder="little")
    chosen = np.take(bits, index, axis=1)  # (n, outputs, k)
    if kind == "bits":
        return np.asarray(2 * chosen.sum(axis=2, dtype=np.int64) - chosen.shape[2])
    return from_bits(chosen, signed(chosen.shape[2]))
