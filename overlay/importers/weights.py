"""Weights of a section as layers have them: scales of channels go into them, wide ones are cut into parts, and all are
built in lowest terms, with an encoding.

Where channels of a map are multiplied with numbers of their own, such as their scales, the numbers of each sum are
whole multiples of one number, which goes into what the sum is worth:

    3 * (a * 1/2) + 5 * (b * 1/8)    -->    (12 * a + 5 * b) * 1/8

In a depthwise convolution, where a sum has one channel, the weights stay as they are.

A weight of more bits than the integer engine has is the sum of several, which read the same position:

    a b c, weights 200 and -3    -->    a a b b c c, weights 127 73 -3 0 and a stride of 2

A map's positions are repeated as by nearest upsampling, which costs no hardware; a layer takes as many times the beats
as a weight has parts.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding, signed, signed_bits
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.design.widths import WEIGHT_BITS

from .budget import FRACTION_STEPS, take
from .errors import Unsupported
from .links import Line
from .operations import check_weights
from .rationals import same
from .sections import WeightSection

MOST_WEIGHT = (1 << WEIGHT_BITS - 1) - 1
"""The largest weight of the integer engine; the smallest is one further from 0."""
MOST_PARTS = 4
"""Parts of a weight at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A section's weights as they are built."""

    values: Array
    """(outputs, rows, columns, channels / groups) int64: divided by the greatest common divisor of each output."""
    groups: int
    """Groups that channels and outputs are cut into."""
    scale: Array
    """(outputs,) array of Fraction: what an integer weight is worth."""
    encoding: Encoding
    real: Array | None = None
    """Real numbers of which ``values`` are the signs, in the same order."""


def weights_of(section: WeightSection) -> Weights:
    """Weights in lowest terms, and the narrowest encoding that holds them."""
    values, divisor = in_lowest_terms(section.weight)
    scale = section.scale * np.array([Fraction(int(d)) for d in divisor], object)
    encoding = weight_encoding(values, section.groups)
    return Weights(values=values, groups=section.groups, scale=scale, encoding=encoding, real=section.real)


def in_lowest_terms(weight: Array) -> tuple[Array, Array]:
    """Weights divided by the greatest common divisor of each output's, and these divisors; outputs come first."""
    divisor = np.maximum(np.gcd.reduce(weight.reshape(len(weight), -1), axis=1), 1)
    return weight // divisor.reshape(-1, *[1] * (weight.ndim - 1)), divisor


def with_signs(real: Array, signs: Array) -> Array:
    """Real numbers with these signs, +1 for those >= 0: where a number has the other one, its negative, or of 0 the
    largest negative number of single precision."""
    negative = -np.maximum(np.abs(real), np.finfo(np.float32).tiny)
    return np.where((real >= 0) == (signs > 0), real, np.where(signs > 0, -real, negative))


def integer_weights(weights: Weights) -> Weights:
    """Weights with an encoding of the integer engine: where nothing is requantised, their encoding alone says the
    engine."""
    narrow = weights.encoding in (BIPOLAR, TERNARY)
    return replace(weights, encoding=signed(2)) if narrow else weights


def weight_limit(values: Array) -> str:
    """Text on the limit that weights of the integer engine must keep, and on what they are; "" if they keep it."""
    if stored_bits(weight_encoding(values)) <= WEIGHT_BITS:
        return ""
    return f"{WEIGHT_BITS} bits, {-MOST_WEIGHT - 1}..{MOST_WEIGHT}, got {values.min()}..{values.max()}"


def weight_encoding(values: Array, groups: int = 1) -> Encoding:
    """The narrowest encoding of weights: bipolar, ternary, or signed. By groups, a kernel is 0 in the channels of
    other groups than its own."""
    low = int(values.min())
    high = int(values.max())
    if low >= -1 and high <= 1:
        return BIPOLAR if groups == 1 and (values != 0).all() else TERNARY
    return signed(max(2, signed_bits(low, high)))


def with_scales(section: WeightSection) -> WeightSection:
    """The section with what channels of its map are multiplied with in its weights, and in what these are worth.

    Raises
    ------
    Unsupported
        If no weights are such multiples.
    """
    lead = section.lead
    weight, units = _multiples(section)
    alike = weight is section.weight
    return replace(
        section,
        weight=weight,
        real=section.real if alike else None,
        copies=section.copies and alike,
        scale=section.scale * units,
        lead=Line(multiply=np.full(len(lead.multiply), Fraction(1), object), add=lead.add / lead.multiply),
    )


def _multiples(section: WeightSection) -> tuple[Array, Array]:
    """Integer weights that contain the factors of the map's channels (``lead.multiply``), and (outputs,) fractions: the
    real value of 1 in the sum of each output. Example: channels with the factors 1/2 and 1/4 get twice their weights
    and their weights, and 1 in the sum is worth 1/4."""
    multiply = section.lead.multiply
    outputs = len(section.weight)
    one = same(multiply)
    if one is not None:
        return section.weight, np.full(outputs, one, object)
    used = section.weight.any(axis=(1, 2))  # (outputs, channels of a group)
    take(steps=FRACTION_STEPS * used.size)
    divisor = lcm(*(number.denominator for number in multiply))
    wholes = np.array([int(number * divisor) for number in multiply], object)
    by_output = np.repeat(wholes.reshape(section.groups, -1), outputs // section.groups, axis=0)
    common = np.gcd.reduce(np.where(used, by_output, 0), axis=1)
    common = np.where(common == 0, 1, common)  # of weights that are all 0
    first = by_output[np.arange(outputs), used.argmax(axis=1)]
    common = np.where(first < 0, -common, common)
    times = np.where(used, by_output // common[:, None], 1)
    most = int(np.abs(times).max())
    if most > MOST_PARTS * MOST_WEIGHT:
        rule = "scales of channels that weights add up must be small multiples of one number"
        raise Unsupported(f"{rule}, got some {most:,} times as large", "give all channels of the map one scale")
    units = np.array([Fraction(int(number), divisor) for number in common], object)
    if (times == 1).all():
        return section.weight, units
    return section.weight * times.astype(np.int64)[:, None, None, :], units


def in_parts(section: WeightSection) -> WeightSection:
    """The section with weights that fit the integer engine: parts of them, where they don't.

    There are none where positions can't be repeated, or where taps are apart in both directions.
    """
    if not _is_wide(section.weight):
        return section
    parts = _parts(section.weight)
    window = section.window or Window(kernel=(section.weight.shape[1], section.weight.shape[2]))
    axis = 1 if window.dilation[1] == 1 else 0
    if len(parts) > MOST_PARTS or repeats_none(window) or window.dilation[axis] != 1 or section.real is not None:
        return section
    check_weights(section.weight.size * len(parts))
    times = (len(parts), 1) if axis == 0 else (1, len(parts))
    top, left, bottom, right = window.padding
    return replace(
        section,
        weight=np.stack(parts, axis=axis + 2).reshape(
            len(section.weight), window.kernel[0] * times[0], window.kernel[1] * times[1], -1
        ),
        window=replace(
            window,
            kernel=(window.kernel[0] * times[0], window.kernel[1] * times[1]),
            stride=(window.stride[0] * times[0], window.stride[1] * times[1]),
            padding=(top * times[0], left * times[1], bottom * times[0], right * times[1]),
            growth=(window.growth[0] * times[0], window.growth[1] * times[1]),
            repeats=True,
        ),
    )


def repeats_none(window: Window) -> bool:
    """Whether the positions of the map that a window reads can't be repeated: nothing lies between them, or taps beside
    the map read mirrored ones."""
    return (window.growth != (1, 1) and not window.repeats) or window.beside == "mirrored"


def needs_parts(weight: Array) -> bool:
    """Whether some weights don't fit the integer engine once what an output's have in common is taken out; outputs
    come first."""
    return _is_wide(weight) and _is_wide(in_lowest_terms(weight)[0])


def _is_wide(weight: Array) -> bool:
    return bool(weight.size and (weight.max() > MOST_WEIGHT or weight.min() < -MOST_WEIGHT - 1))


def _parts(weight: Array) -> list[Array]:
    """Weights of -127..127 that add up to these."""
    parts = list[Array]()
    while not parts or weight.any():
        parts.append(np.clip(weight, -MOST_WEIGHT, MOST_WEIGHT))
        weight = weight - parts[-1]
        if len(parts) > MOST_PARTS:
            break
    return parts
