"""NPUs with a given mapping that take about so many cycles a frame: a ring, round which layers go, each NPU computing
several (spec D2), or a chain with copies of maps (cuts.py).

For each NPU the cheapest folding is taken that keeps to the interval (one_npu.py), first without knowing the next
NPU's words, then with them. NPUs of a ring also wait for each other: how long a frame takes then, and how large the
spill store must be, the flow model tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .npu_depths import Own
from .one_npu import NpuChoices, Segment
from .price import Price

MOST_RING = 4
"""NPUs of the largest ring that is tried: with more of them a chain has less to wait for."""
PASSES = 2
"""Times that the foldings are chosen, the second time with what is known of the next NPU."""


def rings(engines: Sequence[str]) -> list[tuple[int, ...]]:
    """Mappings of rings that are worth a try: the NPU of each layer.

    Layer i goes to NPU i mod N, for each N with which all layers of an NPU are of one engine and some map goes back to
    NPU 0; where the engine changes along the network, also one NPU for each engine.

    Parameters
    ----------
    engines
        The engine of each layer.
    """
    count = len(engines)
    found = [tuple(i % n for i in range(count)) for n in range(2, min(MOST_RING, count - 1) + 1)]
    first = engines[0]
    found.append(tuple(int(engine != first) for engine in engines))
    return [m for m in dict.fromkeys(found) if _closed(m) and _even(m, engines)]


def _closed(mapping: Sequence[int]) -> bool:
    """Whether a map goes back from the last NPU to NPU 0, and all NPUs have a layer."""
    last = max(mapping)
    return last > 0 and any(a == last and b == 0 for a, b in pairwise(mapping))


def _even(mapping: Sequence[int], engines: Sequence[str]) -> bool:
    """Whether no NPU has layers of two engines."""
    return len(set(zip(mapping, engines))) == max(mapping) + 1


def cheapest_ring(
    choices: NpuChoices, mapping: Sequence[int], interval: int, price: Price, *, closed: bool = True
) -> list[Segment] | None:
    """The NPUs of a ring, or of a chain that is cut so, each as cheap as can be if it takes at most ``interval`` cycles
    a frame.

    Parameters
    ----------
    choices
        What an NPU may be.
    mapping
        NPU of each of the network's own layers.
    interval
        Cycles a frame, without those in which NPUs wait for each other.
    price
        What counts.
    closed
        Whether it is a ring.

    Returns
    -------
    list or None
        The NPUs in their order; None if one of them can't be so fast.
    """
    owns = [choices.own(n, mapping) for n in range(max(mapping) + 1)]
    alike = _alike(choices, owns)
    widths: list[int | None] = [None]
    if alike:
        each = [{bare.kfp for bare in choices.bare(owns[n])} for n in alike]
        widths = sorted(set.intersection(*each))
    tried = [_passes(choices, owns, interval, price, _Joined(closed, alike, width)) for width in widths]
    best = min((found for found in tried if found), key=lambda found: found[0], default=None)
    return best[1] if best else None


@dataclass(frozen=True)
class _Joined:
    """How the NPUs are joined: whether in a ring, and which of them have words of which KFP, any with None."""

    closed: bool
    alike: Sequence[int]
    kfp: int | None


def _alike(choices: NpuChoices, owns: Sequence[Own]) -> list[int]:
    """NPUs whose words must be alike: a map goes from one to the next that is also kept, and one gearbox makes both.
    Of bits signs go on, and integers are kept."""
    found = set[int]()
    for n, own in enumerate(owns):
        mine = [choices.layers[i] for i in own]
        onward = [layer.reader for layer in mine if layer.taker is not None and layer.engine == "integer"]
        after = [k for k, other in enumerate(owns) for i in onward if k != n and i in other]
        found |= {n, *after} if after else set()
    return sorted(found)


def _passes(
    choices: NpuChoices, owns: Sequence[Own], interval: int, price: Price, joined: _Joined
) -> tuple[float, list[Segment]] | None:
    """Price and NPUs; None if one of them can't be so fast."""
    made: list[Segment | None] = [None] * len(owns)
    costs = [0.0] * len(owns)
    for _ in range(PASSES):
        for n in reversed(range(len(owns))):
            after = made[(n + 1) % len(owns)] if joined.closed or n + 1 < len(owns) else None
            kfp = joined.kfp if n in joined.alike else None
            found = _cheapest(choices, owns[n], interval, after, (price, kfp))
            if found is None:
                return None
            costs[n], made[n] = found
    return sum(costs), [one for one in made if one]


def _cheapest(
    choices: NpuChoices, own: Own, interval: int, after: Segment | None, by: tuple[Price, int | None]
) -> tuple[float, Segment] | None:
    """The cheapest NPU for these layers in front of ``after``, with its price: ``by`` that price and KFP."""
    best: tuple[float, Segment] | None = None
    for bare in choices.bare(own):
        if by[1] not in (None, bare.kfp) or (not own[0] and not choices.enters(bare, interval)):
            continue
        for cost, npu in choices.priced(own, bare, interval, after.npu if after else None, by[0]):
            if best is None or cost < best[0]:
                best = cost, Segment(npu, own)
    return best
