"""Copies of maps on the NPU that has them, where its two stores can't hand maps on in the order in which layers need
them (docs/decisions/0014).

    map store:  a, b      the next layer adds c:  copy d to the end of the skip store, then ...
    skip store: d, c      ... c is at its head

Both stores are FIFOs, and a map that is made goes to either of them or to both. What is at the head of one can be
copied (hls_gen/compiler/copies.py), and waits at the end of one or of both anew: so any order can be made, and any
number of readers be served. The copies that take the fewest beats are looked for, workload after workload. So this is a
search, not a rule that applies or doesn't (golden/rewrite.py).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from bitloom.hls_gen.design.copy_names import copied, copy_name, is_copy
from bitloom.hls_gen.design.npu import Npu

from .copies import copy_of, maps_needed, renamed
from .input_maps import is_input
from .workloads import Workload, Workloads

KEPT = 48
"""Most states behind a workload with which the search goes on."""
TRIED = 1500
"""Most states in front of a workload that are looked at, once there is a state behind it."""
MOST = 60000
"""Most states in front of a workload that are looked at in any case."""
STORES = ("loop", "skip")
"""The map store and the skip store."""
PLACES: tuple[tuple[str, ...], ...] = (("loop",), ("skip",), ("loop", "skip"))
"""Stores that a map may go to."""

Queues = tuple[tuple[str, ...], tuple[str, ...]]
"""Maps in the map store and in the skip store, in their order."""


@dataclass(frozen=True)
class _StoreStep:
    """A map is made."""

    name: str
    """The workload that first made it."""
    to: tuple[str, ...]
    """The stores that it goes to."""
    taken: Mapping[str, str]
    """For a copy the store that it reads from, by "copies"; for a workload, by how it needs each map, the map's
    store."""
    before: "_StoreStep | None"
    """The step before this one."""


@dataclass(frozen=True)
class _StoreContents:
    """The maps in the stores at some time, the beats of the copies until then, and the last step."""

    queues: Queues
    beats: int = 0
    last: _StoreStep | None = None

    def after(self, step: _StoreStep, beats: int = 0) -> "_StoreContents":
        """The state behind a step, which takes maps from the heads of stores and puts a map at the ends of some."""
        heads = step.taken.values()
        loop, skip = (
            (*queue[store in heads :], *[step.name] * (store in step.to)) for store, queue in zip(STORES, self.queues)
        )
        return _StoreContents((loop, skip), self.beats + beats, step)


def with_store_copies(workloads: Workloads, mapping: Sequence[int], npus: Sequence[Npu]) -> tuple[Workloads, list[int]]:
    """Add the copies that let each NPU's stores hand maps on in order.

    Parameters
    ----------
    workloads
        The workloads in the order in which they are computed, as `copies.with_copies` leaves them.
    mapping
        NPU of each of them.
    npus
        Foldings of the NPUs, in their order. Binary ones copy nothing.

    Returns
    -------
    sequence of Workload
        The workloads and copies, in whose order both stores hand on the maps that they need.
    list of int
        NPU of each of them.

    Raises
    ------
    ValueError
        No order is found. One line: layer, rule and value.
    """
    # a workload, behind the copies in front of it
    runs: dict[str, Workloads] = {workload.name: [workload] for workload in workloads}
    on = {workload.name: n for workload, n in zip(workloads, mapping)}
    for n, npu in enumerate(npus):
        here = [workload for workload in workloads if on[workload.name] == n]
        if here and not here[0].binary:
            elsewhere = {
                workload.reads
                for workload in workloads
                if not is_input(workload.reads) and on[workload.reads] == n != on[workload.name]
            }
            runs |= _Copies(here, elsewhere, n, npu).with_copies()
    order = [(workload, on[name]) for name, run in runs.items() for workload in run]
    return [workload for workload, _ in order], [n for _, n in order]


class _Copies:
    """The copies of NPU ``n``: the ``workloads`` that it computes, and which of their maps are read ``elsewhere``,
    too."""

    def __init__(self, workloads: Workloads, elsewhere: set[str], n: int, npu: Npu):
        self._workloads = workloads
        self._elsewhere = elsewhere
        self._n = n
        self._by_name = {workload.name: workload for workload in workloads}
        self._stores = {"skip", *({"loop"} & {*npu.ports.outlets})}
        self._beats = {workload.name: _beats(workload, npu) for workload in workloads}
        needed = map(maps_needed, workloads)
        self._needed = [{how: name for how, name in maps.items() if name in self._by_name} for maps in needed]
        """By workload: the maps of this NPU that it needs, by how it needs them."""
        self._left = [
            Counter(name for needed in self._needed[i:] for name in needed.values()) for i in range(len(workloads) + 1)
        ]
        """By workload: how many times each map is needed from there on."""

    def with_copies(self) -> dict[str, Workloads]:
        """By the name of each workload: the copies in front of it, and the workload itself, which needs copies of
        maps."""
        states = [_StoreContents(((), ()))]
        for number, workload in enumerate(self._workloads):
            states = self._behind(number, states)
            if not states:
                needed = " and ".join(self._needed[number].values())
                raise ValueError(
                    f"{workload.name}: the maps that it needs must come to the heads of the stores of NPU "
                    f"{self._n} within {MOST} steps, got others for {needed}"
                )
        return self._runs(states[0])

    def _behind(self, number: int, states: Sequence[_StoreContents]) -> list[_StoreContents]:
        """The best states behind workload ``number``, those with the fewest beats first: from any of the states in
        front of it, with any number of copies."""
        ranks = count()
        seen = set[Queues]()
        best = dict[Queues, _StoreContents]()
        heap = [(state.beats + self._ahead(number, state), next(ranks), state) for state in states]
        while heap and len(best) < KEPT and len(seen) < (TRIED if best else MOST):
            *_, state = heappop(heap)
            if state.queues in seen:
                continue
            seen.add(state.queues)
            for after in self._computed(number, state):
                if after.queues not in best or after.beats < best[after.queues].beats:
                    best[after.queues] = after
            for after in self._copied(number, state):
                if after.queues not in seen:
                    heappush(heap, (after.beats + self._ahead(number, after), next(ranks), after))
        return sorted(best.values(), key=lambda state: state.beats + self._ahead(number + 1, state))

    def _ahead(self, number: int, state: _StoreContents) -> int:
        """Beats that copies take at least until workload ``number`` finds the maps that it needs: copies of all maps in
        front of such a map, and of the map itself where it is added, but isn't in the skip store."""
        if number == len(self._workloads):
            return 0
        most = 0
        for how, name in self._needed[number].items():
            least = []
            for store, queue in zip(STORES, state.queues):
                if name in queue:
                    wrong = how == "adds" and store == "loop"
                    least.append(sum(self._beats[front] for front in queue[: queue.index(name) + wrong]))
            most = max(most, min(least))
        return most

    def _computed(self, number: int, state: _StoreContents) -> Iterator[_StoreContents]:
        """The states behind workload ``number``, which takes the maps that it needs from the heads of the stores."""
        name = self._workloads[number].name
        needed = self._needed[number]
        left = self._left[number + 1]
        places: list[tuple[str, ...]] = [to for to in PLACES if len(to) <= left[name] and self._stores.issuperset(to)]
        if not left[name]:
            places = [()]
        elif name in self._elsewhere:
            places = [("skip",)]
        for taken in _takings(needed, state.queues):
            for to in places:
                after = state.after(_StoreStep(name, to, taken, state.last))
                if all(not left[read] or any(read in queue for queue in after.queues) for read in needed.values()):
                    yield after

    def _copied(self, number: int, state: _StoreContents) -> Iterator[_StoreContents]:
        """The states behind one copy more in front of workload ``number``."""
        for store, queue in zip(STORES, state.queues):
            there = sum(maps.count(queue[0]) for maps in state.queues) if queue else 0
            for to in PLACES if queue else ():
                if self._stores.issuperset(to) and there - 1 + len(to) <= self._left[number][queue[0]]:
                    step = _StoreStep(queue[0], to, {"copies": store}, state.last)
                    yield state.after(step, self._beats[queue[0]])

    def _runs(self, state: _StoreContents) -> dict[str, Workloads]:
        """The workloads of the steps to a state, each behind the copies in front of it."""
        steps = list[_StoreStep]()
        last = state.last
        while last is not None:
            steps.append(last)
            last = last.before
        stores: dict[str, list[str]] = {store: [] for store in STORES}
        runs = dict[str, Workloads]()
        copies = list[Workload]()
        numbers = Counter[str]()
        for step in reversed(steps):
            workload = self._by_name[step.name]
            names = {how: stores[store].pop(0) for how, store in step.taken.items()}
            maker = step.name
            if "copies" in names:
                numbers[step.name] += 1
                maker = copy_name(copied(maker, self._n), self._n, numbers[step.name] + is_copy(maker))
                copies.append(copy_of(workload, names["copies"], maker))
            else:
                runs[maker] = [*copies, renamed(workload, names)]
                copies = []
            for store in step.to:
                stores[store].append(maker)
        return runs


def _takings(needed: Mapping[str, str], queues: Queues) -> Iterator[dict[str, str]]:
    """The ways in which a workload may take the maps that it needs from the heads of the stores: the store of each."""
    heads = {store: queue[0] for store, queue in zip(STORES, queues) if queue}
    for first, second in (STORES, STORES[::-1]):
        stores = {"reads": first, "joins": second, "adds": "skip"}
        taken = {how: stores[how] for how in needed}
        if len({*taken.values()}) == len(taken) and all(heads.get(taken[how]) == name for how, name in needed.items()):
            yield taken
        if "reads" not in needed:
            return


def _beats(workload: Workload, npu: Npu) -> int:
    """Beats of a copy of the map that a workload makes."""
    rows, columns = workload.map_size
    return rows * columns * -(-workload.out_channels // npu.array.kfp) * npu.array.groups(workload.out_channels)
