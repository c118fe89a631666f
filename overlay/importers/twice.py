"""Requantisation by TFLite's own rule, where no line has all steps of a staircase."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from bitloom.golden.layers.requantise import MAX_SHIFT

from .boundaries import Ends, Line, Staircase, joined
from .requantise_fit import Factors, Fitted
from .tflite_rules import ONE, TwiceRounded
from .weights import Weights, weight_encoding


def twice_rounded(
    rule: TwiceRounded, chain: Sequence[Line | Ends], stairs: Sequence[Staircase], low: int
) -> Fitted | None:
    """The factors of a `Requantise` layer with rounding "twice" that equals staircases.

    Parameters
    ----------
    rule : TwiceRounded
        What the staircases were made of.
    chain : sequence of Line and Ends
        From the sums of integers to the rule.
    stairs : sequence of Staircase
        One a channel; steps that no sum reaches may be left out.
    low : int
        The layer's integer of level 0.

    Returns
    -------
    Fitted or None
        All exact; None where the layer can't have them.
    """
    links = joined(chain)
    if low != rule.low or len(links) != 1 or not isinstance(links[0], Line):
        return None
    out = []
    for channel, (multiplier, stair) in enumerate(zip(rule.multipliers, stairs)):
        if all(limit is None for limit in stair.limits):  # one value, of weights of 0: half of the bias
            out.append(Factors(2 * (low + stair.lowest), ONE // 2, 31, exact=True))
            continue
        slope, bias = links[0].multiply[channel] * rule.count, Fraction(links[0].add[channel]) * rule.count
        shift = 31 - multiplier.shift
        if slope != 1 or bias.denominator != 1 or not 31 <= shift <= MAX_SHIFT:
            return None
        first = multiplier.first_sums(range(low + 1, low + 1 + len(stair.limits)), 2)
        if any(limit is not None and limit != begin - bias for limit, begin in zip(stair.limits, first)):
            return None
        out.append(Factors(int(bias), multiplier.multiplier, shift, exact=True))
    return Fitted(tuple(out), 0, half_even=False)


def undivided(weights: Weights, chain: Sequence[Line | Ends]) -> tuple[Weights, list[Line | Ends]]:
    """Weights as the file has them, not divided by what an output's have in common, and the chain on their sums.

    The rule is for the file's own sums.
    """
    first = chain[0]
    assert isinstance(first, Line)
    times = np.array([int(scale) if scale.denominator == 1 else 1 for scale in weights.scale], np.int64)
    values = weights.values * times.reshape(-1, 1, 1, 1)
    line = Line(multiply=first.multiply / np.array([Fraction(int(t)) for t in times], object), add=first.add)
    made = replace(weights, values=values, scale=weights.scale / times, encoding=weight_encoding(values))
    return made, [line, *chain[1:]]
