"""Roles of layers in a network, of which layers of several kinds may have the same:

    role            gives
    Weighted        sums of products (golden/layers/conv.py)
    Activation      results of sums, such as bits
    FeatureLayer    features: integers of a few bits
    Pool            a value of each window (golden/layers/pool.py)

A layer may have two roles: Requantise makes features of sums, so it is an Activation and a FeatureLayer. A layer that
makes features of features, such as Lookup, whose table has an entry for each feature, is a FeatureLayer alone, as Add
is: a layer before it has made features of sums.

Who asks for one of several kinds asks for the role, so that a new kind answers by itself.
"""

from dataclasses import dataclass

from bitloom.golden.encoding import Encoding
from bitloom.golden.layer import Layer, OneInput

FEATURE_WIDTHS = {"signed": (2, 9), "unsigned": (1, 8)}
"""By kind of encoding, bits of features, at least and at most."""


@dataclass(frozen=True, kw_only=True)
class Activation(OneInput):
    """A layer that makes results of sums, each value for itself: bits or features."""


class FeatureLayer(Layer):
    """A layer whose results are features, which it clips to an encoding, or to limits within the encoding.

    A layer declares these among its fields, in the order that its files have; without a field ``clip`` it has none.
    """

    encoding: Encoding
    """Of the output: signed 2 to 9 bits or unsigned 1 to 8 bits."""
    clip: tuple[int, int] | None = None
    """(low, high) that results are clipped to, both of the encoding and low <= high; None: the encoding's ends."""

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = FEATURE_WIDTHS.get(getattr(self.encoding, "kind", ""), (1, 0))
        if not isinstance(self.encoding, Encoding) or not least <= self.encoding.bits <= most:
            rule = " or ".join(f"{kind} {least}..{most} bit" for kind, (least, most) in FEATURE_WIDTHS.items())
            raise ValueError(f"{self.name}: encoding must be {rule}, got {self.encoding}")
        if self.clip is None:
            return
        pair = isinstance(self.clip, tuple) and len(self.clip) == 2 and all(type(value) is int for value in self.clip)
        if not pair or not self.encoding.low <= self.clip[0] <= self.clip[1] <= self.encoding.high:
            raise ValueError(f"{self.name}: clip must be None or (low, high) within {self.encoding}, got {self.clip!r}")

    @property
    def low(self) -> int:
        """Smallest result."""
        return self.clip[0] if self.clip else self.encoding.low

    @property
    def high(self) -> int:
        """Largest result."""
        return self.clip[1] if self.clip else self.encoding.high
