"""Ways: how each map gets from the NPU that makes it to whoever needs it (docs/decisions/0014).

    one reader               --> map store, next NPU or host
    a reader and an addition --> map store + skip store (a fork)
    two readers              --> map store + skip store (a fork)
    an addition alone        --> skip store
    a reader on the next NPU, and a reader or an addition on its own
                             --> next NPU + skip store (a fork)
    two maps, one reader     --> one map store, the other one skip store (a concatenation)

Both stores are FIFOs, so maps must be wanted in the order in which they are made; and of two maps that a layer reads
side by side, one comes from each store.

Of a binary layer the bits go to the map store, and the integers to the skip store where they are added, that of the
next NPU if a layer there adds them (docs/decisions/0022):

    NPU 0: conv_1 --signs--> ring -----------> NPU 1: conv_2 --> addition
                `--integers--> skip store of NPU 1 ----------------^

Whose store they wait in is hardware: it is the same for all maps that an NPU keeps, and one NPU fills a store.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.npu import Npu

from .workloads import Workloads


@dataclass(frozen=True)
class MapWay:
    """The way of a map."""

    target: str
    """The outlet by which it leaves: "loop", "ring", "host", or "skip" where it is needed from the skip store alone."""
    reader: str | None = None
    """The layer that reads it behind that outlet."""
    forks: bool = False
    """Whether it goes to the skip store as well."""
    skip_reader: str | None = None
    """The layer that reads it from the skip store."""
    adder: str | None = None
    """The layer that adds it from the skip store."""
    skip_npu: int | None = None
    """NPU of that skip store, where it is not the one that makes the map."""

    @property
    def skips(self) -> bool:
        """Whether it goes to the skip store."""
        return self.forks or self.target == "skip"

    def skip_store_npu(self, maker: int) -> int:
        """NPU of the skip store, for a map that NPU ``maker`` makes."""
        return maker if self.skip_npu is None else self.skip_npu


def outlet_between(npus: Sequence[Npu], name: str, here: int, there: int) -> str:
    """Find the outlet by which a map gets from an NPU to its reader.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    name
        The layer that makes the map, for messages.
    here, there
        Numbers of the NPU that makes the map and of the one that reads it.

    Returns
    -------
    str
        "loop" or "ring".

    Raises
    ------
    ValueError
        No outlet leads there.
    """
    outlets = npus[here].ports.outlets
    if here == there and "loop" in outlets:
        return "loop"
    if len(npus) > 1 and there == (here + 1) % len(npus) and "ring" in outlets:
        return "ring"
    raise ValueError(f"{name}: NPU {here} must have an outlet to NPU {there}, got {', '.join(outlets)}")


def kept_on(npus: Sequence[Npu], name: str, on: Mapping[str, int], adder: str) -> int | None:
    """Find the skip store in which integers wait.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    name
        The layer that makes the integers.
    on
        NPU of each layer.
    adder
        The layer that adds them.

    Returns
    -------
    int or None
        The NPU after; None for the NPU that makes them.

    Raises
    ------
    ValueError
        The NPU of the adder is neither, or has other steps.
    """
    here = on[name]
    there = on[adder]
    if there == here:
        return None
    outlet_between(npus, name, here, there)
    steps = [(npus[n].engine, npus[n].array.kgp, npus[n].results.ol) for n in (here, there)]
    if steps[0] != steps[1]:
        raise ValueError(
            f"{name}: NPU {there} must have steps as NPU {here} has them, where {adder} adds the integers, "
            f"{_steps(steps[0])}, got {_steps(steps[1])}"
        )
    return there


def _steps(of: tuple[str, int, int]) -> str:
    """Engine, kgp and ol of an NPU in words."""
    return "engine {}, kgp = {}, ol = {}".format(*of)


def check_kept(network: str, ways: Mapping[str, MapWay], on: Mapping[str, int], binary: Collection[str]) -> None:
    """Raise ValueError unless the integers that a binary NPU keeps wait in one skip store, which nobody else fills;
    ``binary`` are the layers of binary NPUs."""
    fills: dict[int, tuple[str, int]] = {}  # NPU -> one of its maps, and the store that it waits in
    filled: dict[int, tuple[str, int]] = {}  # store -> one of its maps, and the NPU that makes it
    for name, map_way in ways.items():
        maker = on[name]
        if name not in binary or map_way.adder is None:
            continue
        store = map_way.skip_store_npu(maker)
        other, before = fills.setdefault(maker, (name, store))
        if before != store:
            raise ValueError(
                f"{network}: the integers that NPU {maker} keeps must wait in one skip store, got those of {other} in "
                f"NPU {before} and those of {name} in NPU {store}"
            )
        other, before = filled.setdefault(store, (name, maker))
        if before != maker:
            raise ValueError(
                f"{network}: the integers in the skip store of NPU {store} must come from one NPU, got those of "
                f"{other} from NPU {before} and those of {name} from NPU {maker}"
            )


def onward(ways: Mapping[str, MapWay], on: Mapping[str, int], binary: Collection[str]) -> dict[int, int]:
    """By number of a binary NPU that keeps integers: 1 where they wait in the skip store of the next NPU, 0 where they
    wait in its own; ``binary`` are the layers of binary NPUs."""
    kept = {on[name]: map_way for name, map_way in ways.items() if map_way.adder and name in binary}
    return {n: int(map_way.skip_store_npu(n) != n) for n, map_way in kept.items()}


def with_equal_steps(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """The NPUs, with integers of one width where an NPU keeps them in the skip store of the next one."""
    bits = [npu.value("skip_bits") for npu in npus]
    for _ in npus:  # once round a ring
        for n, npu in enumerate(npus):
            if npu.skips_onward:
                after = (n + 1) % len(npus)
                bits[n] = bits[after] = max(bits[n], bits[after])
    return tuple(
        npu if npu.value("skip_bits") == most else npu.changed(skip_bits=most) for npu, most in zip(npus, bits)
    )


@dataclass(frozen=True)
class _WaysState:
    """The stores as the ways of the maps so far leave them, for the maps that follow."""

    last: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Number of the layer that takes the last map of each store, by its outlet, "loop" or "skip", and the NPU that
    fills it."""
    awaited: Mapping[str, str] = field(default_factory=dict)
    """Layer that reads two maps, of which one is still to come -> the store that this one must come from."""

    @property
    def key(self) -> tuple[object, ...]:
        """States with the same key go on alike."""
        return tuple(sorted(self.last.items())), tuple(sorted(self.awaited.items()))


def chosen(
    network: str, options: Mapping[str, Sequence[MapWay]], workloads: Workloads, on: Mapping[str, int]
) -> dict[str, MapWay]:
    """Choose the way of each map.

    Parameters
    ----------
    network
        Name of the network, for messages.
    options
        The ways that each map may take, the best one first.
    workloads
        The workloads as they are computed.
    on
        NPU of each of them, by name.

    Returns
    -------
    dict of str to MapWay
        By the name of the workload that makes the map. Of the choices with which all stores stay in order the
        first one: earlier maps have better ways.

    Raises
    ------
    ValueError
        There is none. One line: two maps.
    """
    number = {workload.name: i for i, workload in enumerate(workloads)}
    joining = {workload.name for workload in workloads if workload.joins}
    paths: dict[tuple[object, ...], tuple[_WaysState, tuple[MapWay, ...]]] = {(): (_WaysState(), ())}
    for workload in workloads:
        following: dict[tuple[object, ...], tuple[_WaysState, tuple[MapWay, ...]]] = {}
        for (state, taken), option in product(paths.values(), options[workload.name]):
            after = _state_after(state, option, on[workload.name], number, joining)
            if after is not None:
                following.setdefault(after.key, (after, (*taken, option)))
        if not following:
            _refuse(network, options, workloads, on)
        paths = following
    best = next(iter(paths.values()))[1]
    return dict(zip(number, best))


def _takers(map_way: MapWay) -> Iterator[tuple[str, str]]:
    """(store, the layer that takes the map from it) for the stores that a map goes to."""
    if map_way.target == "loop" and map_way.reader:
        yield "loop", map_way.reader
    skipped = map_way.skip_reader or map_way.adder
    if map_way.skips and skipped:
        yield "skip", skipped


def _state_after(
    state: _WaysState, option: MapWay, npu: int, number: Mapping[str, int], joining: set[str]
) -> _WaysState | None:
    """The state behind a map that takes this way; None if it can't."""
    last = dict(state.last)
    awaited = dict(state.awaited)
    for store, taker in _takers(option):
        if number[taker] <= last.get((store, npu), -1):
            return None
        last[store, npu] = number[taker]
        if taker in joining and taker != option.adder:
            if awaited.pop(taker, store) != store:
                return None
            if taker not in state.awaited:
                awaited[taker] = "skip" if store == "loop" else "loop"
    return _WaysState(last, awaited)


def _refuse(network: str, options: Mapping[str, Sequence[MapWay]], workloads: Workloads, on: Mapping[str, int]) -> None:
    """Raise ValueError that names two maps which hinder each other, if each map takes the last of its ways."""
    number = {workload.name: i for i, workload in enumerate(workloads)}
    ways = {name: last for name, (*_, last) in options.items()}
    for store, npu in product(("loop", "skip"), sorted(set(on.values()))):
        taken = [
            (name, number[taker])
            for name, map_way in ways.items()
            if on[name] == npu
            for taken_from, taker in _takers(map_way)
            if taken_from == store
        ]
        pair = next(((a, b) for (a, first), (b, second) in pairwise(taken) if second <= first), None)
        if pair:
            kind = "map" if store == "loop" else "skip"
            raise ValueError(
                f"{network}: the {kind} store must hand maps on in the order in which they come, got {pair[1]} wanted "
                f"before all of {pair[0]}"
            )
    both = next(f"{workload.reads} and {workload.joins} of {workload.name}" for workload in workloads if workload.joins)
    raise ValueError(f"{network}: of two maps that are concatenated one must come from each store in order, got {both}")


def ways(network: str, npus: Sequence[Npu], workloads: Workloads, mapping: Sequence[int]) -> dict[str, MapWay]:
    """Find the way of each map.

    Parameters
    ----------
    network
        Name of the network, for messages.
    npus
        Foldings of the NPUs, in their order.
    workloads
        The workloads as they are computed.
    mapping
        NPU of each of them.

    Returns
    -------
    dict of str to MapWay
        By the name of the workload that makes the map.

    Raises
    ------
    ValueError
        A map finds no way. One line: layer, rule and value.
    """
    on = {workload.name: n for workload, n in zip(workloads, mapping)}
    if sum(workload.reads == INPUT for workload in workloads) > 1:
        names = " and ".join(workload.name for workload in workloads if workload.reads == INPUT)
        raise ValueError(f"{network}: one conv or dense layer must read the input, got {names}")
    usual = {workload.name: _way(workload.name, npus, on, workloads) for workload in workloads}
    check_kept(network, usual, on, {workload.name for workload in workloads if workload.binary})
    try:
        return chosen(network, {name: _options(map_way, workloads) for name, map_way in usual.items()}, workloads, on)
    except ValueError:
        more = {
            name: [*_options(map_way, workloads), *_beside(name, map_way, workloads)] for name, map_way in usual.items()
        }
        return chosen(network, more, workloads, on)


def _options(usual: MapWay, workloads: Workloads) -> list[MapWay]:
    """The ways that a map may take, the best one first. Of two readers the first one best takes the map from the skip
    store, since the map then leaves that store before the next map comes."""
    if usual.skip_reader and usual.target == "loop":
        return [replace(usual, reader=usual.skip_reader, skip_reader=usual.reader), usual]
    if usual.adder is None and any(workload.name == usual.reader and workload.joins for workload in workloads):
        return [usual, MapWay("skip", skip_reader=usual.reader)]
    return [usual]


def _beside(name: str, usual: MapWay, workloads: Workloads) -> list[MapWay]:
    """Further ways of a map, tried where the usual ways leave the stores in no order: its one reader takes it from the
    skip store."""
    binary = any(workload.name == name and workload.binary for workload in workloads)
    if not binary and usual.target == "loop" and not usual.forks:
        return [MapWay("skip", skip_reader=usual.reader)]
    return []


def _way(name: str, npus: Sequence[Npu], on: Mapping[str, int], workloads: Workloads) -> MapWay:
    """The way of a map, whose second reader takes it from the skip store."""
    readers = [workload.name for workload in workloads if name in (workload.reads, workload.joins)]
    adders = [workload.name for workload in workloads if workload.adds == name]
    needed = [*readers, *adders]
    binary = any(workload.name == name and workload.binary for workload in workloads)
    if len(readers) > 1 and binary:
        raise ValueError(f"{name}: one layer must read a map of bits, got {' and '.join(readers)}")
    if len(needed) > 2 or len(adders) > 1:
        raise ValueError(
            f"{name}: two layers at most must need a map, one of them to add it at most, got {' and '.join(needed)}"
        )
    if not readers:
        return MapWay("skip", adder=adders[0]) if adders else MapWay("host")
    elsewhere = [other for other in readers if on[other] != on[name]]
    first = (elsewhere or readers)[0]
    others = [other for other in readers if other != first]
    here = npus[on[name]]
    there = npus[on[first]]
    if not elsewhere and len(needed) == 1 and "loop" not in here.ports.outlets and is_copy(name):
        return MapWay("skip", skip_reader=first)
    target = outlet_between(npus, name, on[name], on[first])
    if adders and binary:
        return MapWay(target, first, True, adder=adders[0], skip_npu=kept_on(npus, name, on, adders[0]))
    if len(needed) > 1 and (here.array.map_lanes, here.engine) != (there.array.map_lanes, there.engine):
        lanes = "kfp / line_taps" if here.array_forms_lines or there.array_forms_lines else "kfp"
        raise ValueError(
            f"{name}: NPU {on[first]} must have words as NPU {on[name]} has them, where the map is kept for "
            f"{(others or adders)[0]} as well, {lanes} = {here.array.map_lanes} and engine {here.engine}, got "
            f"{lanes} = {there.array.map_lanes} and engine {there.engine}"
        )
    return MapWay(target, first, len(needed) > 1, others[0] if others else None, adders[0] if adders else None)
