"""Which of the map store and the skip store a map's readers take it from.

Both stores are FIFOs, so maps must be wanted in the order in which they are made; and of two maps that a layer reads
side by side, one comes from each store.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from .copies import Parts
from .map_way import MapWay

Store = tuple[str, int]
"""Outlet of a store, "loop" or "skip", and the NPU that fills it."""


@dataclass(frozen=True)
class _State:
    """What counts of the maps so far for those that follow.

    Attributes
    ----------
    last : dict of Store to int
        Number of the layer that takes the last map of each store.
    awaited : dict of str to str
        Layer that reads two maps, of which one is still to come -> the store that this one must come from.
    """

    last: Mapping[Store, int] = field(default_factory=dict)
    awaited: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """States with the same key go on alike."""
        return tuple(sorted(self.last.items())), tuple(sorted(self.awaited.items()))


def chosen(
    network: str, options: Mapping[str, Sequence[MapWay]], parts: Parts, on: Mapping[str, int]
) -> dict[str, MapWay]:
    """Choose the way of each map.

    Parameters
    ----------
    network
        Name of the network, for messages.
    options
        The ways that each map may take, the best one first.
    parts
        The parts as they are computed.
    on
        NPU of each of them, by name.

    Returns
    -------
    dict of str to MapWay
        By the name of the part that makes the map. Of the choices with which all stores stay in order the
        first one: earlier maps have better ways.

    Raises
    ------
    ValueError
        There is none. One line: two maps.
    """
    number = {p.name: i for i, p in enumerate(parts)}
    joining = {p.name for p in parts if p.joins}
    paths: dict[tuple[object, ...], tuple[_State, tuple[MapWay, ...]]] = {(): (_State(), ())}
    for p in parts:
        following: dict[tuple[object, ...], tuple[_State, tuple[MapWay, ...]]] = {}
        for (state, taken), one in product(paths.values(), options[p.name]):
            after = _after(state, one, on[p.name], number, joining)
            if after is not None:
                following.setdefault(after.key, (after, (*taken, one)))
        if not following:
            _refuse(network, options, parts, on)
        paths = following
    found = next(iter(paths.values()))[1]
    return dict(zip(number, found))


def _takers(one: MapWay) -> Iterator[tuple[str, str]]:
    """(store, the layer that takes the map from it) for the stores that a map goes to."""
    if one.target == "loop" and one.reader:
        yield "loop", one.reader
    skipped = one.skip_reader or one.adder
    if one.skips and skipped:
        yield "skip", skipped


def _after(state: _State, one: MapWay, npu: int, number: Mapping[str, int], joining: set[str]) -> _State | None:
    """The state behind a map that takes this way; None if it can't."""
    last, awaited = dict(state.last), dict(state.awaited)
    for store, taker in _takers(one):
        if number[taker] <= last.get((store, npu), -1):
            return None
        last[store, npu] = number[taker]
        if taker in joining and taker != one.adder:
            if awaited.pop(taker, store) != store:
                return None
            if taker not in state.awaited:
                awaited[taker] = "skip" if store == "loop" else "loop"
    return _State(last, awaited)


def _refuse(network: str, options: Mapping[str, Sequence[MapWay]], parts: Parts, on: Mapping[str, int]) -> None:
    """Raise ValueError that names two maps which hinder each other, with the way for each that is there if nothing
    else counts."""
    number = {p.name: i for i, p in enumerate(parts)}
    ways = {name: its[-1] for name, its in options.items()}
    for store, npu in product(("loop", "skip"), sorted(set(on.values()))):
        taken = [(name, number[taker]) for name, one in ways.items() if on[name] == npu
                 for its, taker in _takers(one) if its == store]  # fmt: skip
        pair = next(((a, b) for (a, first), (b, second) in pairwise(taken) if second <= first), None)
        if pair:
            kind = "map" if store == "loop" else "skip"
            raise ValueError(
                f"{network}: the {kind} store must hand maps on in the order in which they come, got {pair[1]} wanted "
                f"before all of {pair[0]}"
            )
    both = next(f"{p.reads} and {p.joins} of {p.name}" for p in parts if p.joins)
    raise ValueError(f"{network}: of two maps that are concatenated one must come from each store in order, got {both}")
