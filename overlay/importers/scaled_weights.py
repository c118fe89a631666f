"""Weights of a map whose channels are multiplied with numbers of their own, such as their scales.

    3 * (a * 1/2) + 5 * (b * 1/8)    -->    (12 * a + 5 * b) * 1/8

Of each sum the numbers of its channels are whole multiples of one number, which goes into what the sum is worth. In a
depthwise convolution, where a sum has one channel, the weights stay as they are.
"""

from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np

from bitloom.golden.encoding import Array

from .budget import FRACTION_STEPS, take
from .errors import Unsupported
from .links import Line
from .rationals import same
from .sections import WeightSection
from .weights import MOST_WEIGHT
from .wide_weights import MOST_PARTS


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
    """The weights as multiples, and (outputs,) fractions: what one of each output's is worth beside what it was."""
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
