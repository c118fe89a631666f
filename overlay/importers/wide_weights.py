"""Weights of more bits than the integer engine has: each is the sum of several, which read the same position.

    a b c, weights 200 and -3    -->    a a b b c c, weights 127 73 -3 0 and a stride of 2

A map's positions are repeated as by nearest upsampling, which costs no hardware; a layer takes as many times the beats
as a weight has parts.
"""

from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .operations import check_weights
from .sections import WeightSection
from .weights import MOST_WEIGHT, in_lowest_terms

MOST_PARTS = 4
"""Parts of a weight at most."""


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


def fitting(section: WeightSection) -> WeightSection:
    """The section itself where its weights fit the integer engine once what an output's have in common is taken out,
    else `in_parts`."""
    return in_parts(section) if needs_parts(section.weight) else section


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
