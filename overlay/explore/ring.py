"""NPUs with a given mapping that take about so many cycles a frame: a ring, round which layers go, each NPU computing
several (spec D2), or a chain with copies of maps (cuts.py).

For each NPU the cheapest folding is taken that keeps to the interval (one_npu.py), first without knowing the next
NPU's words, then with them. NPUs of a ring also wait for each other: how long a frame takes then, and how large the
spill store must be, the flow model tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .npu_memories import Indices
from .one_npu import Behind, MappedNpu, NpuChoices, fills_steps, splits
from .price import Price

MOST_RING = 4
"""NPUs of the largest ring that is tried: with more of them a chain has less to wait for."""
PASSES = 2
"""Times that the foldings are chosen, the second time with what is known of the next NPU."""


def rings(networks: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """Mappings of rings that are worth a try: the NPU of each layer.

    Layer i goes to NPU i mod N, for each N with which all layers of an NPU are of one engine and some map goes back to
    NPU 0; where the engine changes along a network, also one NPU for each engine. Several networks go round rings of
    as many NPUs.

    Parameters
    ----------
    networks
        The engine of each layer, network after network.
    """
    first, *others = [_rings(engines) for engines in networks]
    mappings = list[tuple[int, ...]]()
    for mapping in first:
        alike = [next((ring for ring in other if max(ring) == max(mapping)), None) for other in others]
        if all(alike):
            mappings.append(sum((ring for ring in alike if ring), mapping))
    return mappings


def _rings(engines: Sequence[str]) -> list[tuple[int, ...]]:
    """The mappings of one network on rings, as `rings` says."""
    count = len(engines)
    mappings = [tuple(i % n for i in range(count)) for n in range(2, min(MOST_RING, count - 1) + 1)]
    first = engines[0]
    mappings.append(tuple(int(engine != first) for engine in engines))
    return [m for m in dict.fromkeys(mappings) if _closed(m) and _even(m, engines)]


def _closed(mapping: Sequence[int]) -> bool:
    """Whether a map goes back from the last NPU to NPU 0, and all NPUs have a layer."""
    last = max(mapping)
    return last > 0 and any(a == last and b == 0 for a, b in pairwise(mapping))


def _even(mapping: Sequence[int], engines: Sequence[str]) -> bool:
    """Whether no NPU has layers of two engines."""
    return len(set(zip(mapping, engines))) == max(mapping) + 1


def cheapest_ring(
    choices: NpuChoices, mapping: Sequence[int], interval: int, price: Price, *, closed: bool = True
) -> list[MappedNpu] | None:
    """The NPUs of a ring, or of a chain that is cut so, each as cheap as can be if it takes at most ``interval`` cycles
    a frame.

    Parameters
    ----------
    choices
        Choices for an NPU.
    mapping
        NPU of each of the network's own layers.
    interval
        Cycles a frame, without those in which NPUs wait for each other.
    price
        Prices that count.
    closed
        Whether it is a ring.

    Returns
    -------
    list or None
        The NPUs in their order; None if one of them can't be so fast.
    """
    indices_by_npu = [choices.indices_on(n, mapping) for n in range(max(mapping) + 1)]
    ring = _RingNpus(choices, indices_by_npu, interval, price, closed, [None] * len(indices_by_npu))
    groups = _groups(choices, indices_by_npu)
    for _ in range(PASSES):
        if not all(ring.choose(group) for group in reversed(groups)):
            return None
    return [mapped_npu for mapped_npu in ring.mapped_npus if mapped_npu]


def _groups(choices: NpuChoices, indices_by_npu: Sequence[Indices]) -> list[list[int]]:
    """The NPUs, those together that must be alike. Where a map of integers goes to the next NPU that is also kept, one
    gearbox makes the words of both; where a binary NPU keeps integers for the next one, their steps are alike."""
    groups = [[n] for n in range(len(indices_by_npu))]
    for n, indices in enumerate(indices_by_npu):
        layers = [choices.layers[i] for i in indices if choices.layers[i].taker is not None]
        onward = {layer.taker if layer.signs else layer.reader for layer in layers}
        for k in (k for k, other in enumerate(indices_by_npu) if k != n and onward & {*other}):
            first, second = (next(group for group in groups if m in group) for m in sorted((n, k)))
            if first is not second:
                first += second
                groups.remove(second)
    return [sorted(group) for group in groups]


@dataclass
class _RingNpus:
    """NPUs in the making, each as cheap as can be in front of the next one."""

    choices: NpuChoices
    indices_by_npu: Sequence[Indices]
    interval: int
    price: Price
    closed: bool
    mapped_npus: list[MappedNpu | None]

    def choose(self, group: Sequence[int]) -> bool:
        """Choose these NPUs alike, as cheap as they are together; whether there are any."""
        below = float("inf")
        chosen: list[MappedNpu] = []
        for alike in self._alike(group):
            tried = self._together(group, alike, below)
            if tried:
                below, chosen = tried
        for n, mapped_npu in zip(group, chosen):
            self.mapped_npus[n] = mapped_npu
        return bool(chosen)

    def _together(
        self, group: Sequence[int], alike: dict[str, int], below: float
    ) -> tuple[float, list[MappedNpu]] | None:
        """The cheapest NPUs with these values, and their price; None where they cost ``below`` or more."""
        mapped_npus = list[MappedNpu]()
        cost = 0.0
        for n in group:
            left = len(group) - len(mapped_npus)
            cheapest = self._cheapest(n, group, alike) if cost + left * min(self.price.npu, 0) < below else None
            if not cheapest:
                return None
            cost += cheapest[0]
            mapped_npus.append(cheapest[1])
        return (cost, mapped_npus) if cost < below else None

    def _alike(self, group: Sequence[int]) -> list[dict[str, int]]:
        """Values that NPUs may have in common: KFP and the taps of a beat, or on binary ones KGP and OL."""
        if len(group) == 1:
            return [{}]
        bares = [self.choices.bare(self.indices_by_npu[n]) for n in group]
        layers = [self.choices.layers[i] for n in group for i in self.indices_by_npu[n]]
        if layers[0].engine == "integer":
            shapes = ({(npu.array.kfp, npu.array.line_taps) for npu in npus} for npus in bares)
            return [dict(zip(("kfp", "line_taps"), shape)) for shape in sorted(set.intersection(*shapes))]
        kernels = {layer.kernels for layer in layers if layer.signs}
        sizes = ({"kgp": kgp, "ol": ol} for kgp in splits(max(kernels))[1:] for ol in splits(kgp))
        return [size for size in sizes if all(fills_steps(bares[0][0].unchecked(**size), count) for count in kernels)]

    def _cheapest(self, n: int, group: Sequence[int], alike: dict[str, int]) -> tuple[float, MappedNpu] | None:
        """The cheapest NPU ``n`` with these values, and its price."""
        indices = self.indices_by_npu[n]
        after = (n + 1) % len(self.indices_by_npu)
        reader = self.mapped_npus[after] if self.closed or after else None
        npu = reader and (reader.npu.unchecked(**alike) if after in group else reader.npu)
        behind = [Behind(0, self.choices.in_front_of(npu, indices))]
        choices = self.choices.asked(indices)
        best: tuple[float, MappedNpu] | None = None
        kfp, line_taps = alike.get("kfp"), alike.get("line_taps")
        for bare in self.choices.bare(indices):
            if kfp not in (None, bare.array.kfp) or line_taps not in (None, bare.array.line_taps):
                continue
            if not indices[0] and not self.choices.enters(bare, self.interval):
                continue
            foldings = choices.foldings(indices, bare.unchecked(**alike), self.interval)
            below = best[0] if best else float("inf")
            cheapest = choices.cheapest(indices, foldings, behind, self.price, below)
            if cheapest:
                best = cheapest[0], self.choices.mapped_npu(cheapest[1], indices)
        return best
