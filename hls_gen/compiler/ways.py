"""Ways: how each map gets from the NPU that makes it to whoever needs it (docs/decisions/0014).

    one reader               --> map store, next NPU or host
    a reader and an addition --> map store + skip store (a fork)
    two readers              --> map store + skip store (a fork)
    an addition alone        --> skip store
    a reader on the next NPU, and a reader or an addition on its own
                             --> next NPU + skip store (a fork)
    two maps, one reader     --> one map store, the other one skip store (a concatenation)

Of a binary layer the bits go to the map store, and the integers to the skip store where they are added, that of the
next NPU if a layer there adds them (hls_gen/compiler/kept_ways.py).

Which reader takes a map from which store says hls_gen/compiler/store_choice.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.design.copies import is_copy
from bitloom.hls_gen.design.folding import Folding

from .copies import Parts
from .kept_ways import check_kept, kept_on
from .map_way import MapWay
from .outlet_ways import way
from .store_choice import chosen

__all__ = ["MapWay", "needs_skip_store", "ways"]


def needs_skip_store(parts: Parts) -> bool:
    """Whether a map waits in a skip store: where one is added or has several readers, or two are concatenated."""
    reads = [p.reads for p in parts]
    return any(p.adds or p.joins for p in parts) or len(set(reads)) < len(reads)


def ways(network: str, npus: Sequence[Folding], parts: Parts, mapping: Sequence[int]) -> dict[str, MapWay]:
    """Find the way of each map.

    Parameters
    ----------
    network
        Name of the network, for messages.
    npus
        Foldings of the NPUs, in their order.
    parts
        The parts as they are computed.
    mapping
        NPU of each of them.

    Returns
    -------
    dict of str to MapWay
        By the name of the part that makes the map.

    Raises
    ------
    ValueError
        A map finds no way. One line: layer, rule and value.
    """
    on = {p.name: n for p, n in zip(parts, mapping)}
    if sum(p.reads == INPUT for p in parts) > 1:
        names = " and ".join(p.name for p in parts if p.reads == INPUT)
        raise ValueError(f"{network}: one conv or dense layer must read the input, got {names}")
    its = {p.name: _way(p.name, npus, on, parts) for p in parts}
    check_kept(network, npus, its, on)
    try:
        return chosen(network, {name: _options(one, parts) for name, one in its.items()}, parts, on)
    except ValueError:
        more = {name: [*_options(one, parts), *_beside(one, npus[on[name]])] for name, one in its.items()}
        return chosen(network, more, parts, on)


def _options(late: MapWay, parts: Parts) -> list[MapWay]:
    """The ways that a map may take, the best one first. Of two readers the first one best takes it from the skip store,
    since it then leaves that store before what comes next."""
    if late.skip_reader and late.target == "loop":
        return [replace(late, reader=late.skip_reader, skip_reader=late.reader), late]
    if late.adder is None and any(p.name == late.reader and p.joins for p in parts):
        return [late, MapWay("skip", skip_reader=late.reader)]
    return [late]


def _beside(late: MapWay, npu: Folding) -> list[MapWay]:
    """Further ways of a map, taken where the stores are not in order else: its one reader takes it from the skip
    store."""
    if npu.engine == "integer" and late.target == "loop" and not late.forks:
        return [MapWay("skip", skip_reader=late.reader)]
    return []


def _way(name: str, npus: Sequence[Folding], on: Mapping[str, int], parts: Parts) -> MapWay:
    """The way of a map, whose second reader takes it from the skip store."""
    readers = [p.name for p in parts if name in (p.reads, p.joins)]
    adders = [p.name for p in parts if p.adds == name]
    needed = [*readers, *adders]
    if len(readers) > 1 and any(p.name == name and p.binary for p in parts):
        raise ValueError(f"{name}: one layer must read a map of bits, got {' and '.join(readers)}")
    if len(needed) > 2 or len(adders) > 1:
        raise ValueError(
            f"{name}: two layers at most must need a map, one of them to add it at most, got {' and '.join(needed)}"
        )
    if not readers:
        return MapWay("skip", adder=adders[0]) if adders else MapWay("host")
    onward = [other for other in readers if on[other] != on[name]]
    first = (onward or readers)[0]
    others = [other for other in readers if other != first]
    here, there = npus[on[name]], npus[on[first]]
    if not onward and len(needed) == 1 and "loop" not in here.outlets and is_copy(name):
        return MapWay("skip", skip_reader=first)
    target = way(npus, name, on[name], on[first])
    if adders and here.engine == "binary":
        return MapWay(target, first, True, adder=adders[0], skip_npu=kept_on(npus, name, on, adders[0]))
    if len(needed) > 1 and (here.kfp, here.engine) != (there.kfp, there.engine):
        raise ValueError(
            f"{name}: NPU {on[first]} must have words as NPU {on[name]} has them, where the map is kept for "
            f"{(others or adders)[0]} as well, kfp = {here.kfp} and engine {here.engine}, got kfp = {there.kfp} and "
            f"engine {there.engine}"
        )
    return MapWay(target, first, len(needed) > 1, others[0] if others else None, adders[0] if adders else None)
