"""Stores: memories in which maps wait for the next layer, for a second reader, or for an addition."""

from dataclasses import dataclass
from typing import ClassVar

from .parts import NpuPart, capacity
from .widths import ADD_BIAS_BITS, ADD_FACTOR_BITS, SKIP_BITS


@dataclass(frozen=True, kw_only=True)
class SkipStore(NpuPart):
    """The store of what waits for an addition, or for a second reader, with the addition behind it. All is sized."""

    words: int = capacity(least=2, name="skip_words")
    """Words, >= 2."""
    factor_bits: int = capacity(ADD_FACTOR_BITS, least=2, most=ADD_FACTOR_BITS, name="add_factor_bits")
    bias_bits: int = capacity(ADD_BIAS_BITS, least=2, most=ADD_BIAS_BITS, name="add_bias_bits")
    """factor_bits, bias_bits: width of an addition's factors, 2..25, and of its bias, 2..40, in two's complement."""


@dataclass(frozen=True, kw_only=True)
class MapSkipStore(SkipStore):
    """The skip store of an integer NPU: words of maps, of kfp / line_taps features."""

    engine: ClassVar[str] = "integer"

    joined_words: int = capacity(0, least=2, or_zero=True)
    """Words of a tuple that a layer takes of either of two maps which it reads side by side, at most, >= 2; 0: layers
    read one map."""
    multiplies: int = capacity(0, least=0, most=1, rare=True, name="map_products")
    """Whether layers may multiply two maps, too, 0 or 1."""


@dataclass(frozen=True, kw_only=True)
class StepSkipStore(SkipStore):
    """The skip store of a binary NPU: steps of ol integers, to which sums are requantised, and of which signs go on."""

    engine: ClassVar[str] = "binary"
    multiplies: ClassVar[int] = 0  # the width of a field of `ADDITION` (results.py) is read of both kinds

    bits: int = capacity(least=2, most=SKIP_BITS, name="skip_bits")
    """Bits of the integers, 2..9."""
    onward: int = capacity(0, least=0, most=1, name="skips_onward")
    """Whether the integers wait in the skip store of the NPU after, not in this one, 0 or 1."""


@dataclass(frozen=True, kw_only=True)
class Stores(NpuPart):
    """The stores of an NPU."""

    map_words: int = capacity(256, least=2, where="loops_maps")
    """Words of maps in the map store of outlet "loop", >= 2. Sized."""
    skip: MapSkipStore | StepSkipStore | None = None
    """The skip store, where networks add maps or read one twice; None: there is none, and no addition. Sized."""
