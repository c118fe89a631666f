"""Formed taps: a layer as the array sees it behind a window former (hls_gen/design/formed_windows.py).

    kernel K x L over C channels  -->  kernel 1 x 1 over K * L * C channels, of a map with a position for each window

It is an exact rewriting where a tap beside the map, which the former puts in as 0, adds 0: on the integer engine, and
on the binary one where the input are integers, whose planes of 0 add nothing. A bit has no value that adds nothing, so
layers of bits are rewritten only where all taps lie on the map.
"""

from collections.abc import Mapping, Sequence
from math import gcd

import numpy as np

from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu

from .formers import Tables, lines_of, settled
from .frame_words import input_layout
from .input_maps import is_input
from .layer_cycles import ReadTuple, pays
from .lowered_layers import LoweredLayer
from .lowering import Lowered, array_former_name
from .planned_layer import map_layout
from .window_former import former_windows

Formed = Mapping[str, FormedWindows]
"""Windows that window formers make, by the name of the layer behind each."""


def form_taps(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Formed]:
    """Form the taps of those layers of `formable_taps` that take fewer cycles so; parameters and results as there."""
    with_former, formed = formable_taps(lowered, npus, map_order)
    if not formed:
        return lowered, formed
    plain = lowered.schedule(map_order).by_stage
    behind = with_former.schedule(map_order).by_stage
    paying = {}
    for layer, n in zip(lowered.layers, lowered.mapping):
        if windows := formed.get(layer.name):
            passes = layer.visits * npus[n].array.groups(layer.out_channels)
            beats = len(behind[layer.name].index) * windows.words * passes
            apart = len(plain[layer.name].index) * _tuple_words(lowered, layer, npus[n]) * passes
            if pays(beats, apart, windows.cycles):
                paying[layer.name] = windows
    return lowered.with_formed_taps(frozenset(paying)), paying


def _tuple_words(lowered: Lowered, layer: LoweredLayer, npu: Npu) -> int:
    """Words of a tuple that a layer reads whose taps are not formed."""
    if is_input(layer.reads):
        return len(input_layout(lowered, npu)[0])
    return ReadTuple(channels=(layer.map_channels,)).words(npu)


def formable_taps(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Formed]:
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

    def windows(layer: LoweredLayer, tables: Tables) -> FormedWindows | None:
        return _windows_of(lowered, layer, tables, npus)

    return settled(lowered, names, lowered.with_formed_taps, windows, map_order)


def former_sizes(npu: Npu, formed: Sequence[FormedWindows]) -> dict[str, int]:
    """Sizes of the NPU's window former for all that networks form, by the NPU's parameter. The networks share one
    former, whose columns are as long as the longest, and in which as many lanes stay together as in all of them."""
    needs = [windows.needs() for windows in formed]
    granule = 1 if npu.array.planes else gcd(*(need["former_channels"] for need in needs))
    return {**{name: max(need[name] for need in needs) for name in needs[0]}, "former_granule": granule}


def _candidates(lowered: Lowered, npus: Sequence[Npu]) -> list[str]:
    """Names of the layers in front of which a window former stands: the first one, and each one that its NPU computes
    alone of a map that comes from the NPU before."""
    names = []
    for workload, n in zip(lowered.workloads, lowered.mapping, strict=True):
        inlets = npus[n].ports.inlets
        alone = inlets == ("ring",) and lowered.mapping.count(n) == 1
        here = "host" in inlets if is_input(workload.reads) else alone
        if here and workload.behind_former(npus[n]) is not None:
            names.append(workload.name)
    return names


def _windows_of(lowered: Lowered, layer: LoweredLayer, tables: Tables, npus: Sequence[Npu]) -> FormedWindows | None:
    """The windows that a former makes in front of a layer.

    Parameters
    ----------
    lowered
        The network.
    layer
        One of its layers, with formed taps.
    tables
        Of a schedule with such layers, by stage.
    npus
        The NPUs, whose formers' capacities count where they are not 0.

    Returns
    -------
    FormedWindows or None
        None where windows or positions are wanted in another order than row after row, or the former can't make them.
    """
    wanted = lines_of(tables[layer.name].input_order, tables[layer.name].stage.width)
    if wanted is None or not np.array_equal(wanted.numbers, np.arange(len(wanted.numbers))):
        return None
    placed = zip(lowered.workloads, lowered.mapping)
    workload, n = next((workload, n) for workload, n in placed if workload.name == layer.name)
    formed = former_windows(workload, npus[n], len(wanted.numbers), wanted.positions)
    return formed if formed and _comes_in_order(formed, lowered, layer, tables, npus) else None


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
    if not np.array_equal(tables[array_former_name(layer)].input_order, order.ravel()):
        return False
    maker, n = next((m, n) for m, n in zip(lowered.layers, lowered.mapping) if m.name == layer.reads)
    words = map_layout(maker, npus[n], npus[(n + 1) % len(npus)].array.kfp)
    return len(words) == 1 and not (words[0, : formed.channels] == UNUSED).any()
