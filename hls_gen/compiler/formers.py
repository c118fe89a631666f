"""Formers: what the compiler asks of window formers and of line formers alike: in front of which layers they can stand
together, and in which order a map comes to one. Whether a layer takes fewer cycles behind one, says layer_cycles.py.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.formed_lines import MapLines

from .lowered_layers import LoweredLayer
from .lowering import Lowered
from .schedule import StageTables

Tables = Mapping[str, StageTables]
"""The tables of a schedule, by the name of their stage."""
T = TypeVar("T")


def settled(
    lowered: Lowered,
    names: frozenset[str],
    behind_formers: Callable[[frozenset[str]], Lowered],
    formed_of: Callable[[LoweredLayer, Tables], T | None],
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
        Gives what a former makes for one of these layers, by the tables of their schedule; None where no former can.
    map_order
        Order of the maps.

    Returns
    -------
    Lowered and dict
        The layers, and what each former makes, by the name of its layer.
    """
    while names:
        behind = behind_formers(names)
        tables = behind.schedule(map_order).by_stage
        each = {layer.name: formed_of(layer, tables) for layer in behind.layers if layer.name in names}
        formed = {name: windows for name, windows in each.items() if windows is not None}
        if formed.keys() == names:
            return behind, formed
        names = frozenset(formed)
    return lowered, {}


def lines_of(order: Ints, width: int) -> MapLines | None:
    """The lines of a map ``width`` wide, where an order of positions is the first ones of some lines, one line after
    another."""
    lines = MapLines(np.unique(order // width), len(np.unique(order % width)))
    whole = np.add.outer(lines.numbers * width, np.arange(lines.positions)).ravel()
    return lines if np.array_equal(order, whole) else None
