"""Lines of a pool's kernel: a layer whose pool unit takes the taps of a line together, behind a line former
(hls_gen/rtl/pool_unit/line_former.py).

    pool K x L of a map H x W  -->  line former 1 x L of the map, then pool K x 1 of a map with a position for each
                                    window of a line

It is exact where a tap beside the map has a value that changes nothing: 0 in a sum, the lowest value in a maximum. An
average divides by the number of its valid taps, which the sequencer counts one by one: averages are left as they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.formed_lines import FormedLines, fits_line
from bitloom.hls_gen.design.npu import Npu

from .formed_taps import tables_of
from .lowered_layers import LoweredLayer, Pooling
from .lowering import Lowered, line_name
from .schedule import StageTables

Lines = Mapping[str, FormedLines]
"""What line formers make, by the name of the layer."""


def pool_lines(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> tuple[Lowered, Lines]:
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
    names = frozenset(
        layer.name for layer, n in zip(lowered.layers, lowered.mapping, strict=True) if _may_form(layer, npus[n])
    )
    while names:
        behind = lowered.with_pool_lines(names)
        tables = tables_of(behind.schedule(map_order))
        each = {layer.name: _formed(layer, tables[line_name(layer)]) for layer in behind.layers if layer.name in names}
        formed = {name: lines for name, lines in each.items() if lines is not None}
        if formed.keys() == names:
            return behind, formed
        names = frozenset(formed)
    return lowered, {}


def _may_form(layer: LoweredLayer, npu: Npu) -> bool:
    """Whether a layer has a pool whose lines may be formed."""
    average = isinstance(layer.pool, Pooling) and layer.pool.average
    if layer.pool is None or average:
        return False
    return npu.pool_unit is not None and fits_line(layer.pool.window, npu.pool_unit.line_taps)


def _formed(layer: LoweredLayer, tables: StageTables) -> FormedLines | None:
    """What the line former makes for a layer; ``tables`` are those of the line former's stage. None where positions or
    windows are wanted in another order than line after line, or not the first ones of each line."""
    window = tables.stage.window.window
    positions = _line(tables.input_order, tables.stage.width)
    windows = _line(tables.output_order, tables.stage.output_size[1])
    if positions is None or windows is None:
        return None
    formed = FormedLines(
        lines=len(tables.output_order) // windows,
        positions=positions,
        taps=window.kernel[1],
        stride=window.stride[1],
        lead=window.padding[1],
        windows=windows,
        lowest=not layer.adds_in_pool,
    )
    return formed if formed.countable else None


def _line(order: Ints, width: int) -> int | None:
    """Positions of a line where an order of positions of a map ``width`` wide is the first ones of some lines, one line
    after another."""
    count = len(np.unique(order % width))
    lines = np.unique(order // width)
    whole = np.add.outer(lines * width, np.arange(count)).ravel()
    return count if np.array_equal(order, whole) else None
