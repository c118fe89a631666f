"""Where each bit of a tuple lies in the words of the hardware.

A layout is a (words, width) integer array: entry [w, l] is the logical lane in lane l of word w, or UNUSED. Gearboxes
only regroup lanes (hls_gen/design/gearbox.py), so a layout goes through them as data does; unused lanes are feature bit
0, weight bit 1, which adds nothing.
"""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.golden.window import Window
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.gearbox import regroup
from bitloom.hls_gen.design.lanes import UNUSED, plane_lanes, plane_order, weight_of_lanes
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.pool_unit import Reduction
from bitloom.hls_gen.design.split_window import SplitWindow

WordLayout = Ints


def lanes_in_words(lanes: Array, width: int) -> WordLayout:
    """Put lanes into words, in their order.

    Parameters
    ----------
    lanes
        (n,) logical lanes.
    width
        Lanes of a word.

    Returns
    -------
    ndarray
        (ceil(n / width), width) layout.
    """
    words = -(-len(lanes) // width)
    flat = np.full(words * width, UNUSED, np.int64)
    flat[: len(lanes)] = lanes
    return flat.reshape(words, width)


def taps_side_by_side(layout: WordLayout, places: Iterable[int], channels: int) -> WordLayout:
    """The words that a line former makes of a map's words, for lines of a kernel.

    Parameters
    ----------
    layout
        (words, lanes) of a position.
    places
        Tap in each place of a word that leaves, or UNUSED (`BeatTaps.places`).
    channels
        Lanes of a position.
    """
    taps = [np.where((layout == UNUSED) | (tap == UNUSED), UNUSED, layout + tap * channels) for tap in places]
    return np.concatenate(taps, axis=1)


def words_side_by_side(layout: WordLayout, taps: int) -> WordLayout:
    """The words that a line former makes of a tuple's words, so many at a time (`FormedLines.gathered`)."""
    lines = FormedLines.gathered(1, len(layout), taps)
    layout = np.append(layout, np.full_like(layout[:1], UNUSED), axis=0)  # the last one: beside the tuple
    return layout[lines.columns()].reshape(lines.windows, -1)


@lru_cache(maxsize=1024)
def result_layout(kernels: int, levels: int, kgp: int, ol: int) -> WordLayout:
    """Lay out the steps in which the results unit gives a tuple. The layout is kept, and read-only.

    Kernel group comes after kernel group; of a group ol kernels at a time; of these, level after level.

    Parameters
    ----------
    kernels
        Kernels of the layer.
    levels
        Levels, or thresholds, of each kernel.
    kgp
        Kernels of a group.
    ol
        Lanes of a step.

    Returns
    -------
    ndarray
        (steps, ol) layout of the logical lanes kernel * levels + level.
    """
    group = np.arange(0, kernels, kgp)[:, None, None]
    unit = np.arange(0, kgp, ol)[:, None]
    in_group = unit + np.arange(ol)  # (units, lanes)
    kernel = np.where((in_group < kgp) & (group + in_group < kernels), group + in_group, UNUSED)
    kernel = kernel.reshape(-1, 1, ol)[(group + unit < kernels).ravel()]
    steps = np.where(kernel == UNUSED, UNUSED, kernel * levels + np.arange(levels)[:, None])
    steps = steps.reshape(-1, ol)
    steps.flags.writeable = False
    return steps


def result_steps(kernels: int, levels: int, kgp: int, ol: int) -> int:
    """Steps of `result_layout`, which has the parameters: counted without the layout, for a search."""
    groups, rest = divmod(kernels, kgp)
    return levels * (groups * -(-kgp // ol) + -(-rest // ol))


def split_pool(npu: Npu, kernels: int, levels: int, window: Window, reduction: Reduction) -> SplitWindow:
    """How the line former in front of an NPU's pool unit splits the window of a pool behind so many kernels and
    levels."""
    unit = present(npu.pool_unit)
    lanes = _pooled_lanes(kernels, levels, npu.array.kgp, npu.results.ol, unit.pfp)
    return unit.split(window, reduction, lanes)


@lru_cache(maxsize=4096)
def _pooled_lanes(kernels: int, levels: int, kgp: int, ol: int, pfp: int) -> int:
    """Lanes of the words that a pool unit takes, the first ones, in which all values of a tuple are."""
    used = (regroup(result_layout(kernels, levels, kgp, ol), pfp) != UNUSED).any(axis=0)
    return int(np.flatnonzero(used)[-1]) + 1


def shared_words(values: Ints, kfp: int, lane_step: int) -> WordLayout:
    """Put values of several lanes each into words whose lanes share weights (lanes.weight_of_lanes).

    Parameters
    ----------
    values
        (n, lanes_per_weight): logical lanes of each value, or UNUSED.
    kfp
        Lanes of a word.
    lane_step
        How far apart the lanes of a value lie.

    Returns
    -------
    ndarray
        (words, kfp) layout; lanes behind the last whole block stay unused.
    """
    count, several = values.shape
    lane = np.arange(kfp // (several * lane_step) * several * lane_step)
    each = len(lane) // several
    words = -(-count // each)
    padded = np.full((words * each, several), UNUSED, np.int64)
    padded[:count] = values
    out = np.full((words, kfp), UNUSED, np.int64)
    weight = np.array(weight_of_lanes(len(lane), several, lane_step))
    out[:, lane] = padded.reshape(words, each, several)[:, weight, lane // lane_step % several]
    return out


def plane_words(channels: int, planes: int, kfp: int, lanes_per_weight: int, lane_step: int) -> tuple[WordLayout, Ints]:
    """Lay out an integer input whose planes follow one another, for an NPU whose lanes share weights.

    A channel has the first of the lanes that share its weight. The others stay unused, but in the constant plane, where
    they are like the first: with features 0 in all planes and 1 in the constant one, they add nothing in all, since the
    coefficients of the planes add up to -1. Parameters and result are those of ``plane_layout`` with 0 groups.
    """
    channel = np.arange(channels)[:, None] * (planes + 1)
    first = np.arange(lanes_per_weight) == 0
    parts = [shared_words(np.where(first, channel + p, UNUSED), kfp, lane_step) for p in range(planes)]
    parts.append(shared_words(np.repeat(channel + planes, lanes_per_weight, axis=1), kfp, lane_step))
    return np.concatenate(parts), np.repeat(_plane_codes(planes), len(parts[0]))


def _plane_codes(planes: int) -> list[int]:
    """Code of the kernel rows of each plane and of the constant one, where they follow one another."""
    return [*range(planes - 1), -planes, 0]


def plane_layout(channels: int, planes: int, kfp: int, groups: int) -> tuple[WordLayout, Ints]:
    """Lay out an integer input of an engine that reads bits: its bit planes, in words.

    Parameters
    ----------
    channels
        Channels of the input.
    planes
        Bit planes of a channel, without the constant one, which has number ``planes``.
    kfp
        Lanes of a word.
    groups
        Plane groups of the NPU. 0: there are none, so that plane comes after plane. Else it is ``planes``, and a word
        has all planes of kfp // (groups + 1) channels.

    Returns
    -------
    tuple of ndarray
        (words, kfp) layout of the logical lanes channel * (planes + 1) + plane, and (words,) code of each word's kernel
        rows: with plane groups 1, without them the plane's shift, or -1 - shift for the negative plane.
    """
    if not groups:
        channel = np.arange(channels) * (planes + 1)
        parts = [lanes_in_words(channel + p, kfp) for p in range(planes + 1)]
        return np.concatenate(parts), np.repeat(_plane_codes(planes), [len(p) for p in parts])
    out = planes_side_by_side(lanes_in_words(np.arange(channels), plane_lanes(kfp, groups)), planes, kfp)
    return out, np.ones(len(out), np.int64)


def planes_side_by_side(channels: WordLayout, planes: int, kfp: int) -> WordLayout:
    """Lay out the bit planes of channels in lane groups.

    Parameters
    ----------
    channels
        (words, channels of a word) layout of channels.
    planes
        Bit planes of a channel, without the constant one, which has number ``planes``.
    kfp
        Lanes of a word.

    Returns
    -------
    ndarray
        (words, kfp) layout of the logical lanes channel * (planes + 1) + plane.
    """
    each = channels.shape[1]
    out = np.full((len(channels), kfp), UNUSED, np.int64)
    for place, plane in enumerate(plane_order(planes)):
        lanes = np.where(channels == UNUSED, UNUSED, channels * (planes + 1) + plane)
        out[:, place * each : (place + 1) * each] = lanes
    return out
