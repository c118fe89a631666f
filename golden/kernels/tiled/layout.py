"""Layout N(C/B)HWB: channels packed into machine words, B = 32 or 64 bits (spec E6 to E9).

A map is [N, ceil(C/B), H, W] and a layer's weights are [O, ceil(C/B), K, K], both of unsigned B-bit words: channel c is
bit c mod B (bit 0 is the least significant) of word group c div B. Bit 1 is +1, bit 0 is -1. The bits of channels that
do not exist (C not a multiple of B) are 0.

Golden's maps (N, H, W, C) and kernels (O, K, K, C) hold the same values channel last. A layer's output has the layout
of the next layer's input, so only the first map is packed and the last one unpacked.
"""

from typing import Any

import numpy as np

from bitloom.golden import packing
from bitloom.golden.encoding import Array
from bitloom.golden.integers import plain


def pack(values: Array, word_bits: int) -> Array:
    """Pack a map, or kernels (O, K, K, C), into words of channels.

    Parameters
    ----------
    values : (N, H, W, C), of any dtype
        Bits (0 and 1) or bipolar numbers (-1 and +1), not 0 and -1 in one array.
    word_bits : int
        B, 32 or 64.

    Returns
    -------
    (N, ceil(C/B), H, W) uint32 or uint64

    Raises
    ------
    ValueError
        If the shape has not 4 axes, a value is neither, or ``word_bits`` is not 32 or 64.
    """
    values = np.asarray(values)
    check_axes("pack", values)
    if values.dtype != bool:
        bipolar = bool((values == -1).any())
        legal = (values == 1) | (values == (-1 if bipolar else 0))
        if not legal.all():
            raise ValueError(
                f"pack: values must be 0 and 1, or -1 and +1, got {values[~legal].flat[0]}"
                + (" beside -1" if bipolar else "")
            )
    words = packing.pack(values == 1, word_bits)  # (N, H, W, ceil(C/B))
    return np.ascontiguousarray(np.moveaxis(words, -1, 1))


def unpack(words: Array, channels: int) -> Array:
    """Take words apart: the inverse of `pack`. ``2 * unpack(...).astype(int) - 1`` are golden's bipolar numbers.

    Parameters
    ----------
    words : (N, ceil(C/B), H, W) uint32 or uint64
    channels : int
        C.

    Returns
    -------
    (N, H, W, C) uint8 of 0 and 1

    Raises
    ------
    ValueError
        If the second axis is not ceil(channels / B), or a bit of a missing channel is 1.
    """
    _check_words("unpack", words, channels)
    bits = packing.unpack(np.ascontiguousarray(np.moveaxis(words, 1, -1)), channels)
    check_unused("unpack", words, channels)
    return bits


def invert(words: Array, channels: int) -> Array:
    """NOT of the existing channels of (N, ceil(C/B), H, W): from an encoding that stores +1 as 0 to this one, and back.

    ValueError as for `unpack`.
    """
    _check_words("invert", words, channels)
    check_unused("invert", words, channels)
    inverse: Array = words ^ used_bits(channels, word_bits_of("invert", words))[:, None, None]
    return inverse


def used_bits(channels: int, word_bits: int) -> Array:
    """(ceil(C/B),) words in which the bits of the existing channels are 1."""
    return packing.pack(np.ones(channels, bool), word_bits)


def word_dtype(word_bits: int) -> "np.dtype[Any]":
    """The dtype of words of 32 or 64 bits."""
    return np.dtype(np.uint32 if word_bits == 32 else np.uint64)


def word_bits_of(name: str, words: Array) -> int:
    """B of an array of words. ValueError, naming ``name``, unless it is one, of uint32 or uint64."""
    if not isinstance(words, np.ndarray):
        raise ValueError(f"{name}: words must be an array of uint32 or uint64, got {type(words).__name__}")
    if words.dtype not in (np.uint32, np.uint64):
        raise ValueError(f"{name}: words must be uint32 or uint64, got {words.dtype}")
    return 8 * words.dtype.itemsize


def _check_words(name: str, words: Array, channels: int) -> None:
    """ValueError, naming ``name``, unless ``words`` is (N, ceil(C/B), H, W) words for ``channels`` >= 1."""
    word_bits = word_bits_of(name, words)
    check_axes(name, words)
    if type(plain(channels)) is not int or channels < 1:
        raise ValueError(f"{name}: channels must be an integer >= 1, got {channels!r}")
    groups = packing.word_count(channels, word_bits)
    if words.shape[1] != groups:
        raise ValueError(
            f"{name}: {channels} channels need {groups} words of {word_bits} bits, got shape {words.shape}"
        )


def check_axes(name: str, array: Array) -> None:
    """ValueError, naming ``name``, unless the array has 4 axes."""
    if array.ndim != 4:
        raise ValueError(f"{name}: a map or kernel has 4 axes, got shape {array.shape}")


def check_unused(name: str, words: Array, channels: int) -> None:
    """ValueError, naming ``name``, if a bit of a missing channel is 1 in (N, ceil(C/B), H, W)."""
    word_bits = word_bits_of(name, words)
    if channels % word_bits == 0:
        return
    last_used = used_bits(channels, word_bits)[-1]
    if (words[:, -1] & ~last_used).any():
        raise ValueError(f"{name}: bits of channels >= {channels} must be 0")
