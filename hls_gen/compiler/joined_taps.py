"""Joined taps: the first layer as the array sees it behind a window former (hls_gen/design/formed_windows.py).

    kernel K x L over C channels  -->  kernel 1 x 1 over K * L * C channels, of a map with a position for each window

It is an exact rewriting where a tap beside the map, which the former puts in as 0, adds 0: on the integer engine, and
on the binary one where the input are integers, whose planes of 0 add nothing. A bit has no value that adds nothing, so
layers of bits are rewritten only where all taps lie on the map.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.npu import Npu

from .layout import Ints
from .lowering import Lowered
from .schedule import Schedule


def joined_taps(lowered: Lowered, npu: Npu) -> Lowered | None:
    """The lowered layers as they are behind a window former.

    Parameters
    ----------
    lowered
        The network's lowered layers.
    npu
        The NPU that frames enter.

    Returns
    -------
    Lowered or None
        With the taps of the first layer joined; None where the NPU has no former, or can't feed the layer by it.
    """
    return lowered.behind_former if lowered.parts[0].behind_former(npu) else None


def formed_windows(lowered: Lowered, orders: Schedule, npu: Npu) -> FormedWindows | None:
    """The windows that a former makes of a frame.

    Parameters
    ----------
    lowered
        With joined taps.
    orders
        Their schedule.
    npu
        The NPU, whose former's capacities count where they are not 0.

    Returns
    -------
    FormedWindows or None
        None where windows are wanted in another order than row after row, or the former can't make them.
    """
    size = orders.tables[0].stage
    source = lowered.source
    window = lowered.joined
    assert window is not None
    wanted = _prefix(orders.input_order, size.width)
    if wanted is None:
        return None
    first = lowered.layers[0]
    channels = first.weight.shape[2] // window.taps if first.binary else source.channels
    formed = FormedWindows(
        height=source.height,
        width=source.width,
        channels=channels,
        window=window,
        rows=wanted[0],
        columns=wanted[1],
        column_lanes=npu.former_sizes.column if npu.former_sizes else 0,
        word_lanes=npu.array.plane_lanes,
    ).upright
    if not npu.former_sizes:
        formed = replace(formed, column_lanes=formed.window.kernel[0] * channels)
    if not formed.countable or channels > npu.array.plane_lanes or _column(formed) > formed.column_lanes:
        return None
    if npu.former_sizes and any(need > npu.value(name) for name, need in formed.needs().items()):
        return None
    if formed.pads and first.binary and not lowered.input_bits:
        return None
    return formed


def _column(formed: FormedWindows) -> int:
    """Lanes that a column of taps has."""
    return formed.window.kernel[0] * formed.channels


def _prefix(order: Ints, width: int) -> tuple[int, int] | None:
    """(rows, columns) where an order of positions of a map ``width`` wide is its first ones, row after row."""
    columns = int((order < width).sum())
    rows = len(order) // max(columns, 1)
    grid = np.arange(rows)[:, None] * width + np.arange(columns)
    return (rows, columns) if np.array_equal(order, grid.ravel()) else None


def pays(formed: FormedWindows, beats: Sequence[int]) -> bool:
    """Whether a layer takes fewer cycles with joined taps.

    Parameters
    ----------
    formed
        Its windows.
    beats
        Of the layer with joined taps, and as it is.
    """
    return max(formed.cycles, beats[0]) < beats[1]
