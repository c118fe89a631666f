"""Affine layer: each channel times a factor, plus an offset; perhaps ReLU.

It is for what lies behind a last layer's raw sums, a bias (spec B11) or batch normalisation. Sums leave the hardware as
they are; the host computes this layer, exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import MOST_BITS, Array, Encoding, signed, signed_bits
from bitloom.golden.layer import Map, OneInput

from .batch_norm import BatchNorm


@dataclass(frozen=True, kw_only=True)
class Affine(OneInput):
    """Each value is multiplied by the factor of its channel, and the channel's offset is added.

    Arrays, each (channels,): ``multiplier`` and ``bias``, integers of any sign.
    """

    kind: ClassVar[str] = "affine"
    encoding: Encoding
    """Of the output, signed 2 to MOST_BITS bits; every value of the map that is read must give one of its values. Maps
    reach to both sides of 0, or to 0, so that products and offsets fit 64 bits too."""
    relu: bool = False
    """Whether negative results become 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.encoding, Encoding) or self.encoding.kind != "signed" or self.encoding.bits < 2:
            raise ValueError(f"{self.name}: encoding must be signed 2..{MOST_BITS} bit, got {self.encoding}")
        if not isinstance(self.relu, bool):
            raise ValueError(f"{self.name}: relu must be True or False, got {self.relu!r}")

    def output(self, source: Map) -> Map:
        return replace(source, encoding=self.encoding)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {what: (source.channels,) for what in ("bias", "multiplier")}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        super().check_arrays(arrays, source)
        for channel, pair in enumerate(zip(arrays["multiplier"].tolist(), arrays["bias"].tolist())):
            multiplier, bias = pair
            products = [x * multiplier for x in (source.encoding.low, source.encoding.high)]
            least = min(products) + bias
            largest = max(products) + bias
            rule = f"x * multiplier + bias must be {self.encoding} for every x of the map, {source.encoding}"
            if least < self.encoding.low or largest > self.encoding.high:
                raise ValueError(f"{self.name}: {rule}, got {least}..{largest} in channel {channel}")

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        multiplier, bias = (arrays[what].astype(np.int64) for what in ("multiplier", "bias"))  # (C,)
        y: Array = x * multiplier + bias  # (N, H, W, C)
        return np.maximum(y, 0) if self.relu else y


def affine(norm: BatchNorm, source: Encoding, *, bits: int = MOST_BITS) -> tuple[Encoding, dict[str, Array], int]:
    """Batch normalisation behind raw sums as an `Affine` layer.

    Factors and offsets, computed in float64, are brought to integers by one power of 2 for all channels, the largest
    with which every result fits. So results are those of the normalisation times this power, to within half a step for
    each sum's factor and offset: with sums of 16 bits a factor has about 45 bits.

    Parameters
    ----------
    norm : BatchNorm
    source : Encoding
        Of the sums.
    bits : int
        Of results at most, 2 to MOST_BITS.

    Returns
    -------
    Encoding
        Of the layer's output.
    dict of str to array
        The layer's ``multiplier`` and ``bias``, (C,) int64.
    int
        The exponent: a result counts 2^-exponent.

    Raises
    ------
    ValueError
        If bits are out of range, or no power of 2 from 2^-62 on makes results fit.
    """
    if not 2 <= bits <= MOST_BITS:
        raise ValueError(f"{norm.name}: bits must be 2..{MOST_BITS}, got {bits}")
    deviation = np.sqrt(norm.var + np.float64(norm.eps))
    factors = norm.scale * norm.gamma / deviation
    offsets = (norm.bias - norm.mean) * norm.gamma / deviation + norm.beta
    pairs = [(Fraction(factor), Fraction(offset)) for factor, offset in zip(factors.tolist(), offsets.tolist())]
    for exponent in range(MOST_BITS, -MOST_BITS - 1, -1):
        rounded = [[_rounded(value, exponent) for value in pair] for pair in pairs]
        ends = [x * factor + offset for factor, offset in rounded for x in (source.low, source.high)]
        ends += [x * factor for factor, _ in rounded for x in (source.low, source.high)] + [o for _, o in rounded]
        needed = max(2, signed_bits(min(ends), max(ends)))
        if needed <= bits:
            arrays = {key: np.array(values, np.int64) for key, values in zip(("multiplier", "bias"), zip(*rounded))}
            return signed(needed), arrays, exponent
    raise ValueError(f"{norm.name}: results must fit {bits} bits, got {needed} bits at 2^-{MOST_BITS}")


def _rounded(value: Fraction, exponent: int) -> int:
    """``value`` * 2^exponent, to the nearest integer."""
    return round(value * Fraction(2) ** exponent)
