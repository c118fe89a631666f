"""Stores: memories in which maps wait for the next layer, for a second reader, or for an addition."""

from dataclasses import dataclass

from .parts import Part
from .rules import check_least, require
from .widths import ADD_BIAS_BITS, ADD_FACTOR_BITS, SKIP_BITS


@dataclass(frozen=True, kw_only=True)
class SkipStore(Part):
    """The store of maps that are added or read a second time, with the addition behind it. All is sized.

    Attributes
    ----------
    words
        Words of kfp features, >= 2. In a binary NPU words are steps of ol integers.
    joined_words
        Words of a tuple that a layer takes of either of two maps which it reads side by side, at most, >= 2; 0: layers
        read one map. Of an integer NPU alone.
    bits
        Bits of the integers that a binary NPU requantises sums to and adds, 2..9, and of which it makes signs; 0 in an
        integer NPU.
    onward
        Whether the integers that a binary NPU keeps wait in the skip store of the NPU after, not in this one, 0 or 1.
    factor_bits, bias_bits
        Width of an addition's factors, 2..25, and of its bias, 2..40, in two's complement.
    """

    words: int
    joined_words: int = 0
    bits: int = 0
    onward: int = 0
    factor_bits: int = ADD_FACTOR_BITS
    bias_bits: int = ADD_BIAS_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, "words", 2, "skip_words")
        check_least(self, "joined_words", 0)
        require(self.joined_words != 1, "joined_words must be 0 or >= 2", self.joined_words)
        for name, most, flat in (("bits", SKIP_BITS, "skip_bits"), ("onward", 1, "skips_onward")):
            check_least(self, name, 0, flat)
            require(getattr(self, name) <= most, f"{flat} must be 0..{most}", getattr(self, name))
        for name, most in (("factor_bits", ADD_FACTOR_BITS), ("bias_bits", ADD_BIAS_BITS)):
            check_least(self, name, 2, f"add_{name}")
            require(getattr(self, name) <= most, f"add_{name} must be 2..{most}", getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class Stores(Part):
    """The stores of an NPU.

    Attributes
    ----------
    map_words
        Words of kfp features in the map store of outlet "loop", >= 2. Sized.
    skip
        The skip store, where networks add maps or read one twice; None: there is none, and no addition. Sized.
    """

    map_words: int = 256
    skip: SkipStore | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, "map_words", 2)
