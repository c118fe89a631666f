"""Lines of a kernel: a layer whose array, or whose pool unit, takes the taps of a line together, behind a line former
(hls_gen/rtl/sequencer/line_former.py).

    kernel K x L of a map H x W  -->  line former 1 x L of the map, then kernel K x 1 of a map with a position for each
                                      window of a line

It is exact where a tap beside the map has a value that changes nothing: 0 in a sum, the lowest value in a maximum. An
average divides by the number of its valid taps, which the sequencer counts one by one: averages are left as they are.
A bit has no value that adds nothing, so layers of bits are rewritten only where no line reaches beside the map.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.npu import Npu

from .formers import Tables, lines_of, settled
from .input_maps import is_input
from .layer_cycles import ReadTuple, pays
from .layout import split_pool
from .lowered_layers import LoweredLayer
from .lowering import Lowered, array_former_name, pool_former_name
from .schedule import StageTables

Lines = Mapping[str, FormedLines]
"""Lines that line formers make, by the name of the layer. How many words a position has is left to planning."""


def form_array_lines(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Lines]:
    """Form the lines of kernels, wherever the array can take them, and that takes fewer beats than to take the words of
    each tap side by side; parameters and results as of `form_pool_lines`."""
    names = set()
    plain = lowered.schedule(map_order).by_stage if any(npu.array_forms_lines for npu in npus) else {}
    for layer, workload, n in zip(lowered.layers, lowered.workloads, lowered.mapping, strict=True):
        npu = npus[n]
        if is_input(layer.reads) or layer.former_taps or not workload.with_lines:
            continue
        if workload.with_lines.split != npu.array.beat.split(workload.window.window):
            continue
        read = ReadTuple(channels=(layer.map_channels,))
        apart = len(plain[layer.name].index) * read.words(npu)
        behind = workload.with_lines.workload
        tuples = (behind.window.positions(behind.height, behind.width) >= 0).sum()
        if pays(int(tuples) * read.map_words(npu), apart):
            names.add(layer.name)
    return settled(lowered, frozenset(names), lowered.with_lines, _array_lines, map_order)


def _array_lines(layer: LoweredLayer, tables: Tables) -> FormedLines | None:
    """The lines that the line former in front of the array makes of a layer's map. A bit beside the map would add
    something."""
    formed = _formed(tables[array_former_name(layer)])
    return None if formed and formed.pads and layer.binary else formed


def form_pool_lines(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Lines]:
    """Form the lines of pools, wherever the pool unit can take them.

    Parameters
    ----------
    lowered
        The network's lowered layers.
    npus
        The NPUs.
    map_order
        Order of the maps.

    Returns
    -------
    Lowered and dict
        The layers, and what line formers make. Layers whose lines can't be formed are as they were.
    """
    splits = {}
    for layer, n in zip(lowered.layers, lowered.mapping, strict=True):
        if layer.pool is None or npus[n].pool_unit is None:
            continue
        split = split_pool(npus[n], layer.out_channels, layer.levels, layer.pool.window, layer.reduction)
        if split.tuple_taps > 1:
            splits[layer.name] = split

    def behind(names: frozenset[str]) -> Lowered:
        return lowered.with_split_pools({name: splits[name] for name in names})

    return settled(lowered, frozenset(splits), behind, _pool_lines, map_order)


def _pool_lines(layer: LoweredLayer, tables: Tables) -> FormedLines | None:
    """The lines that the line former in front of the pool unit makes of a layer's results."""
    formed = _formed(tables[pool_former_name(layer)])
    return formed and replace(formed, flags=layer.reduction.line_flags)


def _formed(tables: StageTables) -> FormedLines | None:
    """Lines that a line former makes by the tables of its stage. None where positions or windows are wanted in another
    order than line after line, or not the first ones of each line; and where the former can't make these windows of
    these positions."""
    stage = tables.stage
    coming = lines_of(tables.input_order, stage.width)
    wanted = lines_of(tables.output_order, stage.output_size[1])
    return FormedLines.of(stage.window.window, coming, wanted) if coming and wanted else None
