"""Keys by which the search finds again what it has worked out: the values that an NPU was chosen with.

The search works out once for all NPUs that are alike how many cycles the array takes for a layer, or which rows a layer
needs. A key has every value of the folding (`flat.CHOSEN`), but for those that are left out by name, with the reason
why the result doesn't depend on them. So a value that is new is in each key until somebody leaves it out.

Example: two NPUs that differ in PFP have the same cycles of the array, and different keys of cycles with the pool unit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import NpuPart
from bitloom.hls_gen.design.reducer import ProductSum

Key = Callable[[Npu], tuple[Any, ...]]
"""Gives an NPU's key."""

REDUCER = "array.reducer."
"""Beginning of the places of values of reducers. A kind of reducer lacks some of them."""
_WIDTHS = "cycles, rows and words are the same, however wide values and weights are"
_PORTS = "words are taken as coming and going in time; by which inlet a map comes, each layer says"
_POOL = "the pool unit works behind the array (LayerDemand.with_others)"
_AREA = "changes what the hardware takes, not when it works or what its memories hold"
_ADDERS = "additions in LUTs have wider factors, by which no layer takes longer or needs more rows"
AREA_ALONE = {"kernel_ram": "auto", "kernels_per_multiplier": 1, "pool_scale_ram": "auto"}
"""Values of which nothing but the area of a design depends, and what they are where it is asked for the rest."""
BESIDE = {
    "feature_bits": _WIDTHS,
    "weight_bits": _WIDTHS,
    "shift_bits": "how many bit planes come one after another, the layer says",
    "inlets": _PORTS,
    "outlets": _PORTS,
    "lut_products": _ADDERS,
    **dict.fromkeys(AREA_ALONE, _AREA),
}
"""Values on which neither cycles nor needs of a layer depend, and why."""
BESIDE_ARRAY = {
    **BESIDE,
    "ol": "the search asks for cycles by OL (LayerDemand.array_cycles_by_ol)",
    **{name: _POOL for name in flat.CHOSEN if name in flat.NAMES["pool_unit"]},
}
"""Values on which the cycles of the array by OL, for a layer as an NPU reads it, don't depend, and why."""
BESIDE_NEEDS = {**BESIDE, "accumulators": "several of them wait for less; no memory is larger or smaller by them"}
"""Values on which the rows, words and widths that a layer needs don't depend, and why."""

_MAP = "the taps of a pool's windows are those of the map; how many cycles a tap takes, the words of a tuple say"
_WORK_PARTS = (*flat.NAMES["pool_unit"], *flat.NAMES["sequencer"])
BESIDE_POOL_WORK = {
    **{name: _MAP for name in flat.CHOSEN if name not in _WORK_PARTS},
    "pfp": _MAP,
    "pool_scale_ram": _AREA,
}
"""Values on which it doesn't depend what a pool unit's sequencer has to do for a layer, and why."""

_WORDS = "gearboxes at outlets know only how wide the words are that leave, and where they go"
BESIDE_OUTLETS = dict.fromkeys(
    ("weight_bits", "kgp", "accumulators", "planes", "shift_bits", "inlets", "window_former"), _WORDS
)
"""Values on which the area of the gearboxes at outlets doesn't depend, and why."""


def key_of(*sizes: str, without: Mapping[str, str]) -> Key:
    """Function that gives the key of an NPU.

    Parameters
    ----------
    sizes
        Names of capacities that the result depends on, too.
    without
        Values of the folding on which it does not depend, and why.
    """
    names = [*(name for name in flat.CHOSEN if name not in without), *sizes]
    places = dict.fromkeys(map(_place, names))
    of_npu = attrgetter(*(place for place in places if not place.startswith(("pool_unit", REDUCER))))
    of_reducer = _of_reducer([place.removeprefix(REDUCER) for place in places if place.startswith(REDUCER)])
    inside = [place.removeprefix("pool_unit.") for place in places if place.startswith("pool_unit.")]
    if not inside:
        return lambda npu: (*of_npu(npu), of_reducer(npu))
    of_unit = attrgetter(*inside)
    return lambda npu: (*of_npu(npu), of_reducer(npu), npu.pool_unit and of_unit(npu.pool_unit))


def _of_reducer(names: Sequence[str]) -> Callable[[Npu], Any]:
    """Function that gives the values of these fields of an NPU's reducer: those that the reducer's kind has, with that
    kind."""
    if not names:
        return lambda npu: None
    of_kind = dict[type[NpuPart], Callable[[Any], Any]]()
    for kind in (*flat.KINDS["array.reducer"], ProductSum):
        own = [item.name for item in fields(kind) if item.name in names]
        of_kind[kind] = attrgetter(*own) if own else lambda reducer: None

    def values(npu: Npu) -> Any:
        reducer = npu.array.reducer
        return type(reducer), of_kind[type(reducer)](reducer)

    return values


def _place(name: str) -> str:
    """Where a key finds a value: in its place; of other parts than the pool unit that an NPU may lack, in the part. Of
    a pool unit's weights, whether there are any: each value of theirs has a name of its own."""
    if name == "depthwise":
        return name
    place = flat.PLACES[name]
    parts = (part for part in flat.SWITCHES if part != "pool_unit")
    return next((part for part in parts if f"{place}.".startswith(f"{part}.")), place)


FOLDING = key_of(without={})
"""The whole folding."""
SHARED_WEIGHTS = ("lanes_per_weight", "lane_step")
"""Sizes that say which lanes share a weight."""
ARRAY_CYCLES = key_of(*SHARED_WEIGHTS, "aheads", without=BESIDE_ARRAY)
"""Key on which the cycles of the array by OL depend, for a layer as an NPU reads it (LayerDemand.seen_by)."""
LAYER_NEEDS = key_of(*SHARED_WEIGHTS, "skip_words", "aheads", "tuple_parts", without=BESIDE_NEEDS)
"""Key on which the needs of a layer depend."""
POOL_WORK = key_of(without=BESIDE_POOL_WORK)
"""Key on which the work of a pool unit's sequencer depends."""
OUTLETS = key_of(without=BESIDE_OUTLETS)
"""Key on which the area of the gearboxes at outlets depends, beside the reader's words and the skip store."""
