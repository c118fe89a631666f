"""Ways: how each map gets from the NPU that makes it to whoever needs it (docs/decisions/0014).

    one reader               --> map store, next NPU or host
    a reader and an addition --> map store + skip store (a fork)
    two readers              --> map store + skip store (a fork)
    an addition alone        --> skip store

Both stores are FIFOs, so maps must be wanted in the order in which they are made. Of two readers the first one takes
the map from the skip store, if the order allows it, since the map then leaves that store before what comes next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.design.folding import Folding

from .lowered_layers import BinaryLayer, IntegerLayer
from .mapping import way

Lowered = Sequence[BinaryLayer | IntegerLayer]


@dataclass(frozen=True)
class MapWay:
    """The way of a map.

    Attributes
    ----------
    target : str
        The outlet by which it leaves: "loop", "ring", "host", or "skip" where an addition alone needs it.
    reader : str or None
        The layer that reads it behind that outlet.
    forks : bool
        Whether it goes to the skip store as well.
    skip_reader : str or None
        The layer that reads it from the skip store.
    adder : str or None
        The layer that adds it from the skip store.
    """

    target: str
    reader: str | None = None
    forks: bool = False
    skip_reader: str | None = None
    adder: str | None = None

    @property
    def skips(self) -> bool:
        """Whether it goes to the skip store."""
        return self.forks or self.target == "skip"


def needs_skip_store(layers: Lowered) -> bool:
    """Whether a map waits in a skip store: where one is added or has several readers."""
    reads = [p.reads for p in layers]
    return any(p.adds for p in layers) or len(set(reads)) < len(reads)


def ways(network: str, npus: Sequence[Folding], layers: Lowered, mapping: Sequence[int]) -> dict[str, MapWay]:
    """Find the way of each map.

    Parameters
    ----------
    network
        Name of the network, for messages.
    npus
        Foldings of the NPUs, in their order.
    layers
        The lowered layers as they are computed.
    mapping
        NPU of each of them.

    Returns
    -------
    dict of str to MapWay
        By the name of the lowered layer that makes the map.

    Raises
    ------
    ValueError
        A map finds no way. One line: layer, rule and value.
    """
    on = {p.name: n for p, n in zip(layers, mapping)}
    if sum(p.reads == INPUT for p in layers) > 1:
        names = " and ".join(p.name for p in layers if p.reads == INPUT)
        raise ValueError(f"{network}: one conv or dense layer must read the input, got {names}")
    found: dict[str, MapWay] = {}
    for p in layers:
        found[p.name] = _way(p.name, npus, on, layers)
    _choose_forks(found, layers, on)
    for store, n in product(("map", "skip"), range(len(npus))):
        pair = _crossing(_taken(found, layers, on, store, n))
        if pair:
            raise ValueError(
                f"{network}: the {store} store must hand maps on in the order in which they come, got {pair[1]} wanted "
                f"before all of {pair[0]}"
            )
    return found


def _choose_forks(found: dict[str, MapWay], layers: Lowered, on: Mapping[str, int]) -> None:
    """Let the first of two readers take the map from the skip store, wherever both stores stay in order then."""
    forked = [name for name, one in found.items() if one.skip_reader]
    decided = {name: one for name, one in found.items() if name not in forked}
    for name in forked:
        late = found[name]
        early = replace(late, reader=late.skip_reader, skip_reader=late.reader)
        tried = {one: {**decided, name: early}[one] for one in found if one in decided or one == name}
        crossing = any(_crossing(_taken(tried, layers, on, store, on[name])) for store in ("map", "skip"))
        decided[name] = found[name] = late if crossing else early


def _taken(
    found: Mapping[str, MapWay], layers: Lowered, on: Mapping[str, int], store: str, npu: int
) -> list[tuple[str, int]]:
    """(map, number of the layer that takes it) for the maps that come into the store "map" or "skip" of an NPU."""
    number = {p.name: i for i, p in enumerate(layers)}
    taker = {
        name: one.reader if store == "map" else (one.skip_reader or one.adder)
        for name, one in found.items()
        if on[name] == npu and (one.target == "loop" if store == "map" else one.skips)
    }
    return [(name, number[other]) for name, other in taker.items() if other]


def _crossing(taken: Sequence[tuple[str, int]]) -> tuple[str, str] | None:
    """Two maps of which the second is wanted before all of the first has been taken; None where there are none."""
    return next(((a, b) for (a, first), (b, second) in pairwise(taken) if second <= first), None)


def _way(name: str, npus: Sequence[Folding], on: Mapping[str, int], layers: Lowered) -> MapWay:
    """The way of a map, whose second reader takes it from the skip store."""
    readers = [p.name for p in layers if p.reads == name]
    adders = [p.name for p in layers if p.adds == name]
    needed = [*readers, *adders]
    if len(needed) > 1 or adders:
        if len(needed) > 2 or len(adders) > 1:
            raise ValueError(
                f"{name}: two layers at most must need a map, one of them to add it at most, got {' and '.join(needed)}"
            )
        elsewhere = next((other for other in needed if on[other] != on[name]), None)
        if elsewhere is not None:
            raise ValueError(
                f"{name}: a map that is added or has several readers must stay on its NPU, {on[name]}, got {elsewhere} "
                f"on NPU {on[elsewhere]}"
            )
    if not readers:
        return MapWay("skip", adder=adders[0]) if adders else MapWay("host")
    target = way(npus, name, on[name], on[readers[0]])
    skip_reader = readers[1] if len(readers) > 1 else None
    return MapWay(target, readers[0], len(needed) > 1, skip_reader, adders[0] if adders else None)
