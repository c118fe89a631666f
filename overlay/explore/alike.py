"""Layers that are the same to an NPU, though other layers of their network are for other engines, or have their maps in
another order: NPUs for such layers alone are worked out once.

Examples: where the first layer of a binary network may have an integer NPU, all others are alike for either engine;
dense layers are alike in either map order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.schedule import StageTables

from .layer_demand import LayerDemand

NOT_COMPARED: Mapping[type, tuple[str, ...]] = {LayerDemand: ("network", "cache"), StageTables: ("map_order",)}
"""Fields that are not compared: of a layer's network only what an NPU for the layer depends on is; the order of maps is
in the tables of a schedule, and its name is asked for by counters alone."""


def alike(layers: Sequence[LayerDemand], others: Sequence[LayerDemand]) -> frozenset[int]:
    """Numbers of the layers that are the same in both sequences, to NPUs all of which have counters, or none of which;
    no layers where maps wait in a skip store, as what an NPU keeps there depends on other layers, too."""
    if len(layers) != len(others) or any(layer.taker is not None for layer in (*layers, *others)):
        return frozenset()
    return frozenset(i for i, pair in enumerate(zip(layers, others)) if _same(*pair) and pair[0].reads is not None)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays and layers in them included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, LayerDemand) and not _same(_of_network(one), _of_network(other)):
        return False
    if is_dataclass(one) and not isinstance(one, type):
        left_out = NOT_COMPARED.get(type(one), ())
        names = [item.name for item in fields(one) if item.name not in left_out]
        return all(_same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _of_network(layer: LayerDemand) -> tuple[Any, ...]:
    """Facts of the layer's network on which an NPU for the layer depends."""
    ways = layer.network.ways
    sources = (name for name in (layer.lowered.reads, layer.lowered.joins) if name and name != INPUT)
    skipped = tuple(ways[name].skip_reader for name in sources if name in ways)
    return layer.bits, layer.planes, layer.weight_bits, ways.get(layer.name), skipped
