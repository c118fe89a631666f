"""Lines of a kernel: a layer whose array, or whose pool unit, takes the taps of a line together, behind a line former
(hls_gen/rtl/sequencer/line_former.py).

    kernel K x L of a map H x W  -->  line former 1 x L of the map, then kernel K x 1 of a map with a position for each
                                      window of a line

It is exact where a tap beside the map has a value that changes nothing: 0 in a sum, the lowest value in a maximum. An
average divides by the number of its valid taps, which the sequencer counts one by one: averages are left as they are.
A bit has no value that adds nothing, so layers of bits are rewritten only where no line reaches beside the map.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.npu import Npu

from .formed_taps import pays, tables_of
from .input_maps import is_input
from .lowered_layers import LoweredLayer
from .lowering import Lowered, former_name, line_name
from .schedule import StageTables

Lines = Mapping[str, FormedLines]
"""What line formers make, by the name of the layer. How many words a position has is left to planning."""


def form_array_lines(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Lines]:
    """Form the lines of kernels, wherever the array can take them, and that takes fewer beats than to take the words of
    each tap side by side; parameters and results as of `form_pool_lines`."""
    names = set()
    plain = tables_of(lowered.schedule(map_order)) if any(npu.array_forms_lines for npu in npus) else {}
    for layer, part, n in zip(lowered.layers, lowered.parts, lowered.mapping, strict=True):
        array = npus[n].array
        if is_input(layer.reads) or layer.formed_taps or not part.with_lines or not npus[n].array_forms_lines:
            continue
        if part.with_lines.split != array.beat.split(part.window.window):
            continue
        words = -(-layer.map_channels // array.map_lanes)
        apart = len(plain[layer.name].index) * -(-words // array.beat.taps)
        behind = part.with_lines.part
        tuples = (behind.window.positions(behind.height, behind.width) >= 0).sum()
        if pays(int(tuples) * words, apart):
            names.add(layer.name)
    return _settled(lowered, frozenset(names), lowered.with_lines, former_name, map_order)


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
        unit = npus[n].pool_unit
        split = unit and layer.pool and unit.split(layer.pool.window, layer.reduction)
        if split and split.tuple_taps > 1:
            splits[layer.name] = split

    def behind(names: frozenset[str]) -> Lowered:
        return lowered.with_split_pools({name: splits[name] for name in names})

    return _settled(lowered, frozenset(splits), behind, line_name, map_order)


def _settled(
    lowered: Lowered,
    names: frozenset[str],
    behind_formers: Callable[[frozenset[str]], Lowered],
    stage: Callable[[LoweredLayer], str],
    map_order: str,
) -> tuple[Lowered, Lines]:
    """The layers with lines formed of as many of ``names`` as can be: without one of them the others may be wanted in
    another order. ``stage``: name of the line former's stage of a layer."""
    while names:
        behind = behind_formers(names)
        tables = tables_of(behind.schedule(map_order))
        each = {layer.name: _formed(layer, tables[stage(layer)]) for layer in behind.layers if layer.name in names}
        formed = {name: lines for name, lines in each.items() if lines is not None}
        if formed.keys() == names:
            return behind, formed
        names = frozenset(formed)
    return lowered, {}


def _formed(layer: LoweredLayer, tables: StageTables) -> FormedLines | None:
    """What the line former makes for a layer, or for its pool; ``tables`` are those of the line former's stage. None
    where positions or windows are wanted in another order than line after line, or not the first ones of each line; and
    where lines come that only another reader of the map wants."""
    window = tables.stage.window.window
    of_pool = tables.stage.name == line_name(layer)
    positions = _line(tables.input_order, tables.stage.width)
    windows = _line(tables.output_order, tables.stage.output_size[1])
    if positions is None or windows is None:
        return None
    formed = FormedLines(
        lines=len(tables.output_order) // windows,
        positions=positions,
        window=window,
        windows=windows,
        flags=layer.reduction.line_flags if of_pool else frozenset(),
    )
    whole = len(tables.input_order) == formed.lines * positions and positions <= formed.steps
    beside = formed.lead > 0 or formed.steps > positions
    if not (whole and formed.countable) or (layer.binary and beside and not of_pool):
        return None
    return formed


def _line(order: Ints, width: int) -> int | None:
    """Positions of a line where an order of positions of a map ``width`` wide is the first ones of some lines, one line
    after another."""
    count = len(np.unique(order % width))
    lines = np.unique(order // width)
    whole = np.add.outer(lines * width, np.arange(count)).ravel()
    return count if np.array_equal(order, whole) else None
