"""Where each bit of a tuple lies in the words of the hardware.

A layout is a (words, width) integer array: entry [w, l] is the logical lane in lane l of word w, or UNUSED. Gearboxes
only regroup lanes, so a layout goes through them as data does; unused lanes are feature bit 0, weight bit 1, which adds
nothing.
"""

import numpy as np
from numpy.typing import NDArray

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.gearbox import gear

Ints = NDArray[np.int64]
Layout = Ints

UNUSED = -1


def chunks(lanes: Array, width: int) -> Layout:
    """``lanes`` in their order, ``width`` to a word."""
    words = -(-len(lanes) // width)
    flat = np.full(words * width, UNUSED, np.int64)
    flat[: len(lanes)] = lanes
    return flat.reshape(words, width)


def result_layout(kernels: int, levels: int, kgp: int, ol: int) -> Layout:
    """Steps in which the results unit gives a tuple: (steps, ol) of kernel * levels + level.

    Kernel group after kernel group; of a group ol kernels at a time; of those, level after level.
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
    """``layout`` after a gearbox to words of ``width`` (hls_gen/rtl/primitives/gearbox.py); it ends with the tuple."""
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
    """Words of an integer input: (layout of channel * (planes + 1) + plane, code of each word's kernel rows).

    planes : bit planes without the constant one, which has number ``planes``.
    groups : the NPU's plane groups, then planes == groups, a word has all planes of kfp // (groups + 1) channels, and
        its code is 1; or 0: plane after plane, code = shift, for the negative plane -1 - shift.
    """
    channel = np.arange(channels) * (planes + 1)
    if not groups:
        parts = [chunks(channel + p, kfp) for p in range(planes + 1)]
        codes = [*range(planes - 1), -planes, 0]
        return np.concatenate(parts), np.repeat(codes, [len(p) for p in parts])
    each = kfp // (groups + 1)
    together = chunks(channel, each)  # (words, channels of a word)
    out = np.full((len(together), kfp), UNUSED, np.int64)
    order = [0, planes, *range(1, planes)]  # group 0: plane 0 and the constant one
    for place, plane in enumerate(order):
        out[:, place * each : (place + 1) * each] = np.where(together == UNUSED, UNUSED, together + plane)
    return out, np.ones(len(out), np.int64)


def to_stream(words: Layout, stream_bits: int) -> Layout:
    """Input or result words in stream words: (stream words, stream_bits); a frame begins at a stream word."""
    return regroup(words, stream_bits)
