"""Formed taps: a layer as the array sees it behind a window former (hls_gen/design/formed_windows.py).

    kernel K x L over C channels  -->  kernel 1 x 1 over K * L * C channels, of a map with a position for each window

It is an exact rewriting where a tap beside the map, which the former puts in as 0, adds 0: on the integer engine, and
on the binary one where the input are integers, whose planes of 0 add nothing. A bit has no value that adds nothing, so
layers of bits are rewritten only where all taps lie on the map.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu

from .input_maps import is_input
from .lowered_layers import LoweredLayer
from .lowering import Lowered, former_name
from .planned_layer import map_layout
from .schedule import Schedule, StageTables

Formed = Mapping[str, FormedWindows]
"""What window formers make, by the name of the layer behind each."""
Tables = Mapping[str, StageTables]
"""The tables of a schedule, by the name of their stage."""
T = TypeVar("T")


def formed_taps(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Formed]:
    """Form the taps of the layers that a window former can feed.

    Parameters
    ----------
    lowered
        The network's lowered layers.
    npus
        The NPUs, whose formers' capacities count where they are not 0.
    map_order
        Order of the maps.

    Returns
    -------
    Lowered and dict
        The layers, and what formers make. Layers that a former can't feed are as they were.
    """
    names = frozenset(_candidates(lowered, npus))

    def windows(behind: Lowered, layer: LoweredLayer, tables: Tables) -> FormedWindows | None:
        return _windows_of(behind, layer, tables, npus)

    return settled(lowered, names, lowered.with_formed_taps, windows, map_order)


def settled(
    lowered: Lowered,
    names: frozenset[str],
    behind_formers: Callable[[frozenset[str]], Lowered],
    formed_of: Callable[[Lowered, LoweredLayer, Tables], T | None],
    map_order: str,
) -> tuple[Lowered, dict[str, T]]:
    """Put formers in front of as many layers as can be: without one of them maps may be wanted in another order.

    Parameters
    ----------
    lowered
        The layers without formers.
    names
        Names of the layers that may have one.
    behind_formers
        Gives the layers, those of some names behind formers.
    formed_of
        Gives what a former makes for a layer of these, whose schedule has these tables; None where no former can.
    map_order
        Order of the maps.

    Returns
    -------
    Lowered and dict
        The layers, and what each former makes, by the name of its layer.
    """
    while names:
        behind = behind_formers(names)
        tables = tables_of(behind.schedule(map_order))
        each = {layer.name: formed_of(behind, layer, tables) for layer in behind.layers if layer.name in names}
        formed = {name: windows for name, windows in each.items() if windows is not None}
        if formed.keys() == names:
            return behind, formed
        names = frozenset(formed)
    return lowered, {}


def tables_of(orders: Schedule) -> Tables:
    """The tables of a schedule, by the name of their stage."""
    return {table.stage.name: table for table in orders.tables}


def _candidates(lowered: Lowered, npus: Sequence[Npu]) -> list[str]:
    """Names of the layers in front of which a window former stands: the first one, and each one that its NPU computes
    alone of a map that comes from the NPU before."""
    names = []
    for part, n in zip(lowered.parts, lowered.mapping, strict=True):
        inlets = npus[n].ports.inlets
        alone = inlets == ("ring",) and lowered.mapping.count(n) == 1
        here = "host" in inlets if is_input(part.reads) else alone
        if here and part.behind_former(npus[n]) is not None:
            names.append(part.name)
    return names


def _windows_of(lowered: Lowered, layer: LoweredLayer, tables: Tables, npus: Sequence[Npu]) -> FormedWindows | None:
    """The windows that a former makes in front of a layer.

    Parameters
    ----------
    lowered
        With formed taps.
    layer
        One of its layers.
    tables
        Of their schedule, by stage.
    npus
        The NPUs, whose formers' capacities count where they are not 0.

    Returns
    -------
    FormedWindows or None
        None where windows or positions are wanted in another order than row after row, or the former can't make them.
    """
    npu = next(npus[n] for other, n in zip(lowered.layers, lowered.mapping) if other is layer)
    taps = layer.formed_taps
    assert taps is not None
    wanted = _first_rows(tables[layer.name].input_order, tables[layer.name].stage.width)
    if wanted is None:
        return None
    formed = FormedWindows(
        height=taps.height,
        width=taps.width,
        channels=layer.map_channels,
        window=taps.split.window,
        rows=wanted[0],
        columns=wanted[1],
        column_lanes=npu.former_sizes.column if npu.former_sizes else 0,
        word_lanes=npu.array.plane_lanes,
        packed=is_input(layer.reads),
    )
    if not _comes_in_order(formed, lowered, layer, tables, npus):
        return None
    if formed.pads and layer.binary and not (is_input(layer.reads) and lowered.input_bits):
        return None
    groups = -(-layer.out_channels // npu.array.kgp)
    ways = (_fitted(windows, npu) for windows in _together(formed.upright, binary=layer.binary))
    return min(
        (windows for windows in ways if windows is not None),
        key=lambda windows: max(windows.cycles, windows.rows * windows.columns * windows.words * groups),
        default=None,
    )


def _together(formed: FormedWindows, *, binary: bool) -> list[FormedWindows]:
    """The windows, with all numbers of rows of the map that a position may have side by side, the fewest first. The
    host packs words so; of bits a lane without a tap is none that adds nothing."""
    (kh, _), (sy, _) = formed.window.kernel, formed.window.stride
    most = sy if formed.packed and not binary else 1
    return [replace(formed, together=rows) for rows in range(1, min(most, kh) + 1) if sy % rows == 0]


def _fitted(formed: FormedWindows, npu: Npu) -> FormedWindows | None:
    """The windows as the NPU's former makes them, or, where it has no sizes yet, as one of their own would; None where
    it can't."""
    sizes = npu.former_sizes
    if sizes is None:
        formed = replace(formed, column_lanes=formed.tap_lanes)
    ahead = bool(sizes.ahead) if sizes else formed.words > 1 and formed.stride[1] > 1
    formed = replace(formed, ahead=ahead)
    channels = formed.position_channels
    if not formed.countable or channels > npu.array.plane_lanes or formed.tap_lanes > formed.column_lanes:
        return None
    if sizes and (channels % sizes.granule or any(need > npu.value(key) for key, need in formed.needs().items())):
        return None
    return formed


def _comes_in_order(
    formed: FormedWindows,
    lowered: Lowered,
    layer: LoweredLayer,
    tables: Tables,
    npus: Sequence[Npu],
) -> bool:
    """Whether a map comes as the former needs it: row after row, a position a word, whose lanes are the first ones.

    The host sends frames as the former wants them.
    """
    if is_input(layer.reads):
        return True
    rows, columns = formed.sent
    order = np.arange(rows)[:, None] * formed.width + np.arange(columns)
    if not np.array_equal(tables[former_name(layer)].input_order, order.ravel()):
        return False
    maker, n = next((m, n) for m, n in zip(lowered.layers, lowered.mapping) if m.name == layer.reads)
    words = map_layout(maker, npus[n], npus[(n + 1) % len(npus)].array.kfp)
    return len(words) == 1 and not (words[0, : formed.channels] == UNUSED).any()


def _first_rows(order: Ints, width: int) -> tuple[int, int] | None:
    """(rows, columns) where an order of positions of a map ``width`` wide is its first ones, row after row."""
    columns = int((order < width).sum())
    rows = len(order) // max(columns, 1)
    grid = np.arange(rows)[:, None] * width + np.arange(columns)
    return (rows, columns) if np.array_equal(order, grid.ravel()) else None


def pays(beats: int, apart: int, former_cycles: int = 0) -> bool:
    """Whether a layer takes fewer cycles with the taps of a window, or of a line of its kernel, side by side.

    Parameters
    ----------
    beats
        Beats of the layer with taps side by side.
    apart
        Beats of the layer tap by tap.
    former_cycles
        Cycles that a former takes for the map meanwhile.
    """
    return max(beats, former_cycles) < apart
