"""Requantisation: an accumulator becomes a feature of a few bits by bias, multiply, shift, rounding and clipping (B11).

Per channel, with integers alone, f being `Requantise.fraction`, 0 where nothing is said:

    t = x * 2^f + bias                  |t| < 2^(31 + f)
    p = t * multiplier                  |p| < 2^62
    y = p / 2^shift                     to the nearest integer, halves away from zero; with "even" to the even one
    result = clip(y, low, high)         low, high of the output encoding, or limits within it; with ReLU low is 0

So the scale is multiplier * 2^f / 2^shift, and the bias counts in parts 1 / 2^f of an accumulator's step.

With rounding "twice", as TFLite's kernels do it, shift is 31 or more, and y is rounded in two steps:

    h = p / 2^31                        to the nearest integer, halves upwards
    y = h / 2^(shift - 31)              to the nearest integer, halves away from zero

Rounding is odd and never falls, and 0 rounds to 0. So max(., 0) is the same at t, at p, before and after rounding, and
a symmetric network stays symmetric. Halves away from zero, in two's complement with an arithmetic shift right (>>),
which rounds down:  y = (p + 2^(shift - 1) - [p < 0]) >> shift  for shift >= 1, and y = p for shift 0. With rounding
"even"  y = (p + 2^(shift - 1) - [bit ``shift`` of p is 0]) >> shift, which is odd and never falls either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array, Encoding, signed
from bitloom.golden.integers import plain
from bitloom.golden.layer import Map

from .roles import Activation, FeatureLayer
from .rounding import FIRST_SHIFT, PRODUCT_BITS, ROUNDINGS, rounded

SUM_BITS = 32
"""Without a fraction |x + bias| < 2^31: it fits 32 bits, and so does its negative."""
MAX_FRACTION = 16
"""Bits of the bias behind the point, at most."""
MULTIPLIER_BITS = 31
"""multiplier is 1 .. 2^31 - 1."""
MAX_SHIFT = 61


@dataclass(frozen=True, kw_only=True)
class Requantise(Activation, FeatureLayer):
    """Each value for itself is biased, scaled by multiplier / 2^shift of its channel, rounded, and clipped.

    Arrays, each (channels,): ``bias``, integers that fit 32 + fraction bits signed, with
    |x * 2^fraction + bias| < 2^(31 + fraction) for every x of the map that is read; ``multiplier``, 1 .. 2^31 - 1, with
    which the product stays within 2^62; ``shift``, 0 .. 61. Multipliers of 16 bits at most, as `scale_to_multiplier`
    gives them by default, make the smallest hardware.
    """

    kind: ClassVar[str] = "requantise"
    encoding: Encoding
    """Of the output, which results are clipped to: signed 2 to 9 bits or unsigned 1 to 8 bits. (9 bits hold an 8-bit
    value less any zero point.)"""
    relu: bool = False
    """Whether negative results become 0. With an unsigned encoding they do so anyway."""
    clip: tuple[int, int] | None = field(default=None, metadata={"written_if_set": True})
    """(low, high) that results are clipped to, both of the encoding and low <= high; by default, None, the encoding's
    own ends. With ReLU a low below 0 counts as 0, and high must be 0 or more."""
    fraction: int = field(default=0, metadata={"written_if_set": True})
    """Bits of the bias behind the point, 0 to 16, by default 0: x is multiplied by 2^fraction before the bias is added,
    and the shift takes that back. For offsets that are no integer number of accumulator steps."""
    rounding: str = field(default="once", metadata={"written_if_set": True})
    """"once", by default, halves away from zero; "even", halves to the even integer, as ONNX's QuantizeLinear rounds;
    or "twice", with shifts from 31 on; see the module's text."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.relu, bool):
            raise ValueError(f"{self.name}: relu must be True or False, got {self.relu!r}")
        if self.clip is not None and self.relu and self.clip[1] < 0:
            raise ValueError(f"{self.name}: clip must end at 0 or above with relu, got {self.clip!r}")
        if type(self.fraction) is not int or not 0 <= self.fraction <= MAX_FRACTION:
            raise ValueError(f"{self.name}: fraction must be 0..{MAX_FRACTION}, got {self.fraction!r}")
        if self.rounding not in ROUNDINGS:
            raise ValueError(f"{self.name}: rounding must be one of {', '.join(ROUNDINGS)}, got {self.rounding!r}")

    @property
    def low(self) -> int:
        """Smallest result."""
        return max(super().low, 0) if self.relu else super().low

    def output(self, source: Map) -> Map:
        return replace(source, encoding=self.encoding)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {what: (source.channels,) for what in ("bias", "multiplier", "shift")}

    @property
    def array_ranges(self) -> dict[str, tuple[int, int]]:
        least = FIRST_SHIFT if self.rounding == "twice" else 0
        return {"multiplier": (1, (1 << MULTIPLIER_BITS) - 1), "shift": (least, MAX_SHIFT)}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        super().check_arrays(arrays, source)
        signed(SUM_BITS + self.fraction).check(f"{self.name}.bias", arrays["bias"])
        unit = f"x * 2^{self.fraction}" if self.fraction else "x"
        each = f"for every x of the map, {source.encoding}"
        most = SUM_BITS - 1 + self.fraction
        low = source.encoding.low << self.fraction
        high = source.encoding.high << self.fraction
        for channel, (bias, multiplier) in enumerate(zip(arrays["bias"].tolist(), arrays["multiplier"].tolist())):
            largest = max(abs(low + bias), abs(high + bias))
            if largest >= 1 << most:
                rule = f"|{unit} + bias| must be < 2^{most} {each}"
                raise ValueError(f"{self.name}.bias: {rule}, got {bias} in channel {channel}")
            if largest * multiplier >= 1 << PRODUCT_BITS - 1:
                rule = f"|{unit} + bias| * multiplier must be < 2^{PRODUCT_BITS - 1} {each}"
                raise ValueError(f"{self.name}.multiplier: {rule}, got {multiplier} in channel {channel}")

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        bias, multiplier, shift = (arrays[what].astype(np.int64) for what in ("bias", "multiplier", "shift"))  # (C,)
        product = ((x << self.fraction) + bias) * multiplier  # (N, H, W, C)
        y: Array = np.clip(rounded(product, shift, self.rounding), self.low, self.high)
        return y


def scale_to_multiplier(scale: float, bits: int = 16) -> tuple[int, int]:
    """Find the multiplier and the shift whose multiplier / 2^shift is nearest to a real scale.

    Computed exactly. The relative error is at most 2^-bits; for a scale below 2^(bits - 62), where the shift ends at
    61, the absolute error is at most 2^-62. Of two that are equally near it is the larger.

    Parameters
    ----------
    scale : float
        2^-61 .. 2^bits - 1.
    bits : int
        Width of the multiplier at most, 1 to 31.

    Returns
    -------
    tuple of int
        Multiplier and shift in lowest terms: the multiplier is odd or the shift is 0.

    Raises
    ------
    ValueError
        If the scale is out of range or not a number, or bits are out of range.
    """
    bits = plain(bits)
    if type(bits) is not int or not 1 <= bits <= MULTIPLIER_BITS:
        raise ValueError(f"bits: must be 1..{MULTIPLIER_BITS}, got {bits!r}")
    largest = (1 << bits) - 1
    if not 2.0**-MAX_SHIFT <= scale <= largest:  # not for NaN
        raise ValueError(f"scale: must be 2^-{MAX_SHIFT} .. {largest}, got {scale}")
    exact = Fraction(scale)
    shift = MAX_SHIFT
    while exact * 2**shift >= largest + 1:
        shift -= 1
    multiplier = int(exact * 2**shift + Fraction(1, 2))  # may be 2^bits, which is even
    while shift and multiplier % 2 == 0:
        multiplier = multiplier // 2
        shift = shift - 1
    return multiplier, shift
