"""Signature of parameters: 32 bits that tell what was loaded, in what order.

    signature <- x * signature + word, for each 32-bit word, in the field of 2^32 elements

The loader keeps it of all LOAD packets since the last reset (hls_gen/rtl/loader/order.py), and every frame says
which one it is for (headers.py). Of a packet it takes word 3 of the header, which stands for the other three, and the
payload. A packet that is lost, doubled, moved, cut or changed gives another signature, but for one case in 2^32. In
hardware it is a shift register with four taps, since x is a generator of the field (a signature register, as in
built-in self-test).
"""

from functools import lru_cache

import numpy as np

from .headers import HEADER_WORDS, Words
from .manifest import Manifest
from .packets import packets

BITS = 32
"""Width of a signature."""
START = 0xFFFFFFFF
"""Signature of no packets: not 0, of which leading words that are 0 would change nothing."""
TAPS = (22, 2, 1, 0)
"""x^32 is the sum of these powers of x: the polynomial x^32 + x^22 + x^2 + x + 1 is primitive."""
_MASK = (1 << BITS) - 1


def step(value: int) -> int:
    """x * value."""
    return (value << 1 & _MASK) ^ (sum(1 << tap for tap in TAPS) if value >> BITS - 1 else 0)


def signature(words: Words, before: int = START) -> int:
    """The signature after some words.

    Parameters
    ----------
    words
        (n,) uint32, in the order in which they come.
    before
        The signature before them.

    Returns
    -------
    int
        The signature, 32 bits.
    """
    part = np.concatenate([np.array([before], np.uint32), words])
    joined = 0
    while len(part) > 1:  # neighbours become one; leading words that are 0 change nothing here
        if len(part) % 2:
            part = np.concatenate([np.zeros(1, np.uint32), part])
        part = _times(part[::2], _products(joined)) ^ part[1::2]
        joined += 1
    return int(part[0])


def loads_signature(manifest: Manifest, words: Words, before: int = START) -> int:
    """Compute the signature that a device has after LOAD packets (signature.py).

    Parameters
    ----------
    manifest
        Of the design.
    words
        (n,) uint32, packet after packet, as they are sent.
    before
        The signature before them.

    Returns
    -------
    int
        The signature, 32 bits.

    Raises
    ------
    ValueError
        As ``packets``.
    """
    signed = [np.zeros(0, np.uint32)]
    position = 0
    for _, _, rows in packets(manifest, words):
        end = position + HEADER_WORDS + rows.size
        signed.append(words[position + HEADER_WORDS - 1 : end])
        position = end
    return signature(np.concatenate(signed), before)


def _times(values: Words, products: Words) -> Words:
    """Each value times that of which ``products`` are (`_products`), in the field."""
    total: Words = products[0, values & np.uint32(0xFF)]
    for byte in range(1, BITS // 8):
        total ^= products[byte, values >> np.uint32(8 * byte) & np.uint32(0xFF)]
    return total


@lru_cache
def _products(exponent: int) -> Words:
    """Products of x^(2^exponent) with every value of each byte of a word, (4, 256), byte 0 low."""
    if exponent:
        root = _products(exponent - 1)
        factor = int(_times(root[0, 1:2], root)[0])
    else:
        factor = step(1)
    of_bits = []
    for _ in range(BITS):
        of_bits.append(factor)
        factor = step(factor)
    parts = np.array(of_bits, np.uint32).reshape(-1, 8, 1)
    has_bit = np.arange(256, dtype=np.uint32) >> np.arange(8, dtype=np.uint32)[:, None] & np.uint32(1)
    products: Words = np.bitwise_xor.reduce(parts * has_bit, axis=1)
    return products
