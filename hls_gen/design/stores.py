"""Stores: memories in which maps wait for the next layer, for a second reader, or for an addition."""

from dataclasses import dataclass

from .parts import NpuPart, capacity
from .widths import ADD_BIAS_BITS, ADD_FACTOR_BITS, SKIP_BITS


@dataclass(frozen=True, kw_only=True)
class SkipStore(NpuPart):
    """The store of maps that are added or read a second time, with the addition behind it. All is sized."""

    words: int = capacity(least=2, name="skip_words")
    """Words of maps, of kfp / line_taps features, >= 2. In a binary NPU words are steps of ol integers."""
    joined_words: int = capacity(0, least=2, or_zero=True, where="forks_maps")
    """Words of a tuple that a layer takes of either of two maps which it reads side by side, at most, >= 2; 0: layers
    read one map. Of an integer NPU alone."""
    bits: int = capacity(0, least=2, most=SKIP_BITS, or_zero=True, name="skip_bits", where="keeps_steps")
    """Bits of the integers that a binary NPU requantises sums to and adds, 2..9, and of which it makes signs; 0 in an
    integer NPU."""
    onward: int = capacity(0, least=0, most=1, name="skips_onward", where="keeps_steps")
    """Whether the integers that a binary NPU keeps wait in the skip store of the NPU after, not in this one, 0 or 1."""
    factor_bits: int = capacity(ADD_FACTOR_BITS, least=2, most=ADD_FACTOR_BITS, name="add_factor_bits")
    bias_bits: int = capacity(ADD_BIAS_BITS, least=2, most=ADD_BIAS_BITS, name="add_bias_bits")
    """factor_bits, bias_bits: width of an addition's factors, 2..25, and of its bias, 2..40, in two's complement."""
    multiplies: int = capacity(0, least=0, most=1, rare=True, name="map_products", where="forks_maps")
    """Whether layers may multiply two maps, too, 0 or 1. Of an integer NPU alone."""


@dataclass(frozen=True, kw_only=True)
class Stores(NpuPart):
    """The stores of an NPU."""

    map_words: int = capacity(256, least=2, where="loops_maps")
    """Words of maps in the map store of outlet "loop", >= 2. Sized."""
    skip: SkipStore | None = None
    """The skip store, where networks add maps or read one twice; None: there is none, and no addition. Sized."""
