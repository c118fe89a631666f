"""Where each bit of a tuple lies in the words of the hardware.

A layout is a (words, width) integer array: entry [w, l] is the logical lane in lane l of word w, or UNUSED. Gearboxes
only regroup lanes, so a layout goes through them as data does; unused lanes are feature bit 0, weight bit 1, which adds
nothing.
"""

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.lanes import plane_lanes

Ints = NDArray[np.int64]
Layout = Ints

UNUSED = -1


def chunks(lanes: Array, width: int) -> Layout:
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


def result_layout(kernels: int, levels: int, kgp: int, ol: int) -> Layout:
    """Lay out the steps in which the results unit gives a tuple.

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
    steps = []
    for group in range(0, kernels, kgp):
        in_group = min(kgp, kernels - group)
        for unit in range(0, in_group, ol):
            lane = np.arange(ol)
            inside = unit + lane < in_group
            for level in range(levels):
                steps.append(np.where(inside, (group + unit + lane) * levels + level, UNUSED))
    return np.array(steps, np.int64)


def regroup(layout: Layout, width: int) -> Layout:
    """Send a layout through a gearbox (hls_gen/rtl/primitives/gearbox.py), which begins a word with each tuple.

    Parameters
    ----------
    layout
        (words, lanes) of a tuple, as it comes.
    width
        Lanes of a word behind the gearbox.

    Returns
    -------
    ndarray
        (words, width) layout of the tuple behind the gearbox.
    """
    count, have = layout.shape
    together, pieces = gear(have, width)
    if have <= width:
        words = -(-count // together)
        padded = np.full((words * together, have), UNUSED, np.int64)
        padded[:count] = layout
        out = np.full((words, width), UNUSED, np.int64)
        out[:, : together * have] = padded.reshape(words, together * have)
        return out
    wide = np.full((count, pieces * width), UNUSED, np.int64)
    wide[:, :have] = layout
    return wide.reshape(count * pieces, width)


def plane_layout(channels: int, planes: int, kfp: int, groups: int) -> tuple[Layout, Ints]:
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
    channel = np.arange(channels) * (planes + 1)
    if not groups:
        parts = [chunks(channel + p, kfp) for p in range(planes + 1)]
        codes = [*range(planes - 1), -planes, 0]
        return np.concatenate(parts), np.repeat(codes, [len(p) for p in parts])
    each = plane_lanes(kfp, groups)
    together = chunks(channel, each)  # (words, channels of a word)
    out = np.full((len(together), kfp), UNUSED, np.int64)
    order = [0, planes, *range(1, planes)]  # group 0: plane 0 and the constant one
    for place, plane in enumerate(order):
        out[:, place * each : (place + 1) * each] = np.where(together == UNUSED, UNUSED, together + plane)
    return out, np.ones(len(out), np.int64)


def to_stream(words: Layout, stream_bits: int) -> Layout:
    """Put input or result words into stream words; a frame begins with a stream word.

    Parameters
    ----------
    words
        (words, width) layout of a frame.
    stream_bits
        Width of the stream.

    Returns
    -------
    ndarray
        (stream words, stream_bits) layout.
    """
    return regroup(words, stream_bits)
