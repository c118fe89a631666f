"""Requantisation by a TFLite kernel's own rule: its multipliers, and its biases, which have no bits behind the point.

If a map holds values less their zero point, nothing is added after the rounding, and the layer has the file's
integers. A line that is fitted to the same steps (requantise_fit.py) needs some bits of the bias behind the point."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Encoding
from bitloom.golden.layers.requantise import MAX_SHIFT
from bitloom.golden.layers.rounding import FIRST_SHIFT

from .boundaries import Staircase
from .links import Line
from .requantise_fit import Factors, Fitted, fits
from .tflite_rules import ONE, KernelRule, Multiplier
from .weights import Weights, weight_encoding, weight_limit


def kernel_factors(rule: KernelRule, line: Line, stairs: Sequence[Staircase], sums: Encoding) -> Fitted | None:
    """The factors of a `Requantise` layer that equals staircases, for a map whose integer of level 0 is the rule's low.

    Its rounding is "twice" for a rule with two roundings, else "once".

    Parameters
    ----------
    rule : KernelRule
        Rule by which the staircases were made.
    line : Line
        From the sums of integers to the rule.
    stairs : sequence of Staircase
        One a channel; steps that no sum reaches may be left out.
    sums : Encoding
        Of the sums.

    Returns
    -------
    Fitted or None
        All exact; None where the layer can't have them.
    """
    out = []
    for channel, (multiplier, stair) in enumerate(zip(rule.multipliers, stairs)):
        if stair.is_flat:  # one value, of weights of 0: half of the bias
            out.append(Factors(2 * (rule.low + stair.lowest), ONE // 2, 31, exact=True))
            continue
        slope = line.multiply[channel] * rule.count
        bias = Fraction(line.add[channel]) * rule.count
        shift = 31 - multiplier.shift
        least = FIRST_SHIFT if rule.roundings == 2 else 0
        if slope != 1 or bias.denominator != 1 or not least <= shift <= MAX_SHIFT:
            return None
        first = _first_sums(rule, multiplier, len(stair.limits))
        if any(limit != first[level - 1] - bias for level, limit in stair.steps):
            return None
        out.append(Factors(int(bias), multiplier.multiplier, shift, exact=True))
    return Fitted(tuple(out), 0, half_even=False) if all(fits(factors, 0, sums) for factors in out) else None


def _first_sums(rule: KernelRule, multiplier: Multiplier, levels: int) -> list[int]:
    """The first sum, with its bias, of which a `Requantise` layer makes each value above the rule's low."""
    values = range(rule.low + 1, rule.low + 1 + levels)
    if rule.roundings == 2:
        return multiplier.first_sums(values, 2)
    once = Fitted((Factors(0, multiplier.multiplier, 31 - multiplier.shift, exact=True),), 0, half_even=False)
    return [once.first_sum(0, value) for value in values]


def undivided(weights: Weights, sums: Line, rule: KernelRule) -> tuple[Weights, Line]:
    """Weights as the file has them, not divided by what an output's have in common, and what their sums are worth.

    The rule is for the sums of the undivided weights. If undivided weights are wider, and a line has all steps of the
    rule, the weights stay divided.
    """
    times = np.array([int(scale) if scale.denominator == 1 else 1 for scale in weights.scale], np.int64)
    values = weights.values * times.reshape(-1, 1, 1, 1)
    line = Line(multiply=sums.multiply / np.array([Fraction(int(t)) for t in times], object), add=sums.add)
    encoding = weight_encoding(values, weights.groups)
    divided = replace(weights, values=values, scale=weights.scale / times, encoding=encoding)
    lineless = rule.needs_sums and not weight_limit(values)
    return (divided, line) if lineless or divided.encoding == weights.encoding else (weights, sums)
