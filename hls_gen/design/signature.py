"""Signature of parameters: 32 bits that tell what was loaded, in what order.

    signature <- x * signature + word, for each 32-bit word, in the field of 2^32 elements

The loader keeps it of all LOAD packets since the last reset (hls_gen/rtl/loader/order.py), and every frame says
which one it is for (headers.py). Of a packet it takes word 3 of the header, which stands for the other three, and the
payload. A packet that is lost, doubled, moved, cut or changed gives another signature, but for one case in 2^32. In
hardware it is a shift register with four taps, since x is a generator of the field (a signature register, as in
built-in self-test).
"""

import numpy as np
from numpy.typing import NDArray

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
    power = step(1)
    while len(part) > 1:  # neighbours become one; leading words that are 0 change nothing here
        if len(part) % 2:
            part = np.concatenate([np.zeros(1, np.uint32), part])
        part = _times(part[::2], power) ^ part[1::2]
        power = int(_times(np.array([power], np.uint32), power)[0])
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


def _times(values: NDArray[np.uint32], factor: int) -> NDArray[np.uint32]:
    """Each value times ``factor``, in the field."""
    total = np.zeros_like(values)
    for bit in range(BITS):
        total ^= (values >> np.uint32(bit) & np.uint32(1)) * np.uint32(factor)
        factor = step(factor)
    return total
