"""A ring of NPUs that takes about so many cycles a frame: the layers go round it, each NPU computing several (spec D2).

For each NPU the cheapest folding is taken that keeps to the interval (one_npu.py), first without knowing the next
NPU's words, then with them. NPUs of a ring also wait for each other: how long a frame takes then, and how large the
spill store must be, the flow model tells.
"""

from collections.abc import Sequence
from itertools import pairwise

from .npu_depths import Own
from .one_npu import NpuChoices, Price, Segment

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


def cheapest_ring(choices: NpuChoices, mapping: Sequence[int], interval: int, price: Price) -> list[Segment] | None:
    """The NPUs of a ring, each as cheap as can be if it takes at most ``interval`` cycles a frame.

    Parameters
    ----------
    choices
        What an NPU may be.
    mapping
        NPU of each layer.
    interval
        Cycles a frame, without those in which NPUs wait for each other.
    price
        What counts.

    Returns
    -------
    list or None
        The NPUs in their order; None if one of them can't be so fast.
    """
    count = max(mapping) + 1
    owns = [tuple(i for i, n in enumerate(mapping) if n == npu) for npu in range(count)]
    made: list[Segment | None] = [None] * count
    for _ in range(PASSES):
        for n in reversed(range(count)):
            after = made[(n + 1) % count]
            made[n] = _cheapest(choices, owns[n], interval, after, price)
            if made[n] is None:
                return None
    return [one for one in made if one]


def _cheapest(choices: NpuChoices, own: Own, interval: int, after: Segment | None, price: Price) -> Segment | None:
    """The cheapest NPU for these layers in front of ``after``."""
    best: tuple[float, Segment] | None = None
    for bare in choices.bare(own):
        if not own[0] and not choices.enters(bare, interval):
            continue
        for cost, npu in choices.priced(own, bare, interval, after.npu if after else None, price):
            if best is None or cost < best[0]:
                best = cost, Segment(npu, own)
    return best[1] if best else None
