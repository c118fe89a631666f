"""A chain of NPUs, each with a run of the network's layers, that takes at most so many cycles a frame and costs the
least.

The search goes from the network's end to its beginning. For each run of layers and each KFP it takes the cheapest NPU
that keeps to the interval (one_npu.py); then the runs and KFPs that together cost the least. An NPU with one layer
leads to the next NPU, one with several also leads back to itself: a pipeline, a cascade, or anything between.
"""

from bisect import bisect_left
from dataclasses import dataclass

from bitloom.hls_gen.design.design import MOST_NPUS

from .npu_memories import Indices
from .one_npu import Behind, MappedNpu, NpuChoices, SizedFolding
from .price import Price

KEPT, EVEN = 8, 8
"""KFPs of a run that are looked at together with those of the run before it, the cheapest; and as many that are
multiples of EVEN, into which results of several lanes go without a gap."""
Tail = tuple[float, tuple[MappedNpu, ...]]
"""Price and NPUs of a chain's end."""
Head = tuple[float, SizedFolding, Indices, tuple[MappedNpu, ...]]
"""Price of a chain's end; its first NPU, the NPU's layers, and the NPUs behind it."""


@dataclass
class Chain:
    """The search for one network."""

    choices: NpuChoices
    """The foldings that an NPU may have."""
    most_npus: int = MOST_NPUS
    """NPUs at most."""

    def cheapest(self, interval: int, price: Price) -> list[MappedNpu] | None:
        """The cheapest chain that takes at most ``interval`` cycles a frame.

        Returns
        -------
        list or None
            The NPUs in the network's order; None if no chain is fast enough.
        """
        count = len(self.choices.layers)
        after: dict[int, dict[int, Tail]] = {count: {0: (0.0, ())}}
        for i, ends in self._on_ways(interval).items():
            here: dict[int, Head] = {}
            for j in ends:
                self._extend(here, tuple(range(i, j + 1)), interval, price, list(after[j + 1].values()))
            ranked = sorted(here.items(), key=lambda item: item[1][0])
            kept = ranked[:KEPT] + [item for item in ranked[KEPT:] if item[0] % EVEN == 0][:KEPT]
            after[i] = {
                kfp: (cost, (self.choices.mapped_npu(sized, indices), *behind))
                for kfp, (cost, sized, indices, behind) in kept
            }
        return list(min(after[0].values(), key=lambda tail: tail[0])[1]) if after.get(0) else None

    def _on_ways(self, interval: int) -> dict[int, list[int]]:
        """First layers of runs, the last one first, and for each of them the last layers of its runs: of those that
        keep to the interval and lie on a way of such runs from the first layer to the last one."""
        count = len(self.choices.layers)
        ends = [j for j in range(count) if self._ends(j)] if self.most_npus > 1 else [count - 1]
        runs: dict[int, list[int]] = {count: []}
        for i in sorted({0, *(j + 1 for j in ends[:-1])}, reverse=True):
            on = (j for j in ends[bisect_left(ends, i) :] if j + 1 in runs)
            if keeping := [j for j in on if self._keeps(tuple(range(i, j + 1)), interval)]:
                runs[i] = keeping
        reached = {0}
        for i in sorted(runs):
            reached |= {j + 1 for j in runs[i] if i in reached}
        return {i: lasts for i, lasts in runs.items() if lasts and i in reached}

    def _keeps(self, indices: Indices, interval: int) -> bool:
        """Whether an NPU for layers ``indices`` keeps to the interval."""
        return any(foldings.before(None) for _, foldings in self.choices.asked(indices).by_kfp(indices, interval))

    def _ends(self, last: int) -> bool:
        """Whether a run may end with that layer: of all maps until there, its own alone is needed behind it, and by the
        next layer alone."""
        numbered = enumerate(self.choices.layers[: last + 1])
        needed = [
            (i, n, n == layer.reader) for i, layer in numbered for n in (layer.reader, layer.taker) if n is not None
        ]
        return [need for need in needed if need[1] > last] in ([(last, last + 1, True)], [])

    def _extend(self, here: dict[int, Head], indices: Indices, interval: int, price: Price, tails: list[Tail]) -> None:
        """For each KFP of an NPU for layers ``indices``, the cheapest one in front of one of these tails, where it is
        cheaper than what is ``here``, comes there."""
        choices = self.choices.asked(indices)
        behind = [Behind(cost, choices.in_front_of(npus[0].npu if npus else None, indices)) for cost, npus in tails]
        for bare, foldings in choices.by_kfp(indices, interval):
            kfp = bare.array.kfp
            below = here[kfp][0] if kfp in here else float("inf")
            cheapest = choices.cheapest(indices, foldings, behind, price, below)
            if cheapest:
                cost, sized, n = cheapest
                _, npus = tails[n]
                if len(npus) < self.most_npus:
                    here[kfp] = cost, sized, indices, npus
