"""Placement of weights that come down the stream: which layers stay in the kernel memory, and where the others lie.

Rules and costs of a placement: streamed_weights.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from bitloom.hls_gen.design.headers import MOST_AHEAD

from .streamed_weights import (
    Placement,
    StreamBlocked,
    WeightLayer,
    WeightStream,
    check_placement,
    estimated_cycles,
    share_rows,
)


def place(network: str, layers: Sequence[WeightLayer], depth: int, stream: WeightStream) -> Placement:
    """Find a placement: layers are made resident one after another, each time the one that saves most cycles.

    Parameters
    ----------
    network
        The network's name, for messages.
    layers
        All layers, in their order.
    depth
        Rows of the kernel memory.
    stream
        The stream.

    Returns
    -------
    Placement
        The best one that was found.

    Raises
    ------
    ValueError
        A layer is larger than the memory.
    """
    largest = max(layers, key=lambda layer: layer.rows)
    if largest.rows > depth:
        raise ValueError(f"{network}: kernel_rows must be >= {largest.rows} for {largest.name}, got {depth}")
    if sum(layer.rows for layer in layers) <= depth:
        ends = list(accumulate(layer.rows for layer in layers))
        return Placement(base=(0, *ends[:-1]))
    resident: frozenset[int] = frozenset()
    best = _best(layers, _placed(layers, resident, depth), stream, 2)
    while True:  # the layer that is best made resident, then the next
        more = []
        for i in sorted(set(range(len(layers))) - resident):
            if _fits(layers, resident | {i}, depth):
                more.append((*_best(layers, _placed(layers, resident | {i}, depth), stream, 2), i))
        if not more:
            break
        candidate = min(more, key=lambda entry: entry[0])
        best = candidate[:2]
        resident = resident | {candidate[2]}
    _, placement = _best(layers, best[1], stream, len(layers))
    check_placement(network, layers, placement, depth, stream)
    return placement


def _fits(layers: Sequence[WeightLayer], resident: frozenset[int], depth: int) -> bool:
    """Whether each of the other layers fits into the rows that the ``resident`` ones leave."""
    room = depth - sum(layers[i].rows for i in resident)
    return all(layer.rows <= room for i, layer in enumerate(layers) if i not in resident) and room >= 0


def _placed(layers: Sequence[WeightLayer], resident: frozenset[int], depth: int) -> Placement:
    """Put resident layers at the end of the memory, and the others in turn at both ends of the rest."""
    base = [0] * len(layers)
    room = depth
    for i in sorted(resident):
        room -= layers[i].rows
        base[i] = room
    streamed = [i for i in range(len(layers)) if i not in resident]
    first = _first_after_a_pair(layers, streamed)
    for s in range(len(streamed)):
        i = streamed[(first + s) % len(streamed)]
        base[i] = room - layers[i].rows if s % 2 else 0
    ahead = []
    for s, i in enumerate(streamed):
        free = 0
        while free < min(len(streamed) - 1, MOST_AHEAD) and not share_rows(layers, base, i, streamed[s - 1 - free]):
            free += 1
        ahead.append(free)
    return Placement(base=tuple(base), streamed=tuple(streamed), ahead=tuple(ahead))


def _first_after_a_pair(layers: Sequence[WeightLayer], streamed: Sequence[int]) -> int:
    """Which streamed layer the turns begin with.

    An odd number of them closes its circle with two neighbours at the same end; best where the beats of resident layers
    between the two hide the most of the second one's rows.
    """
    count = len(streamed)
    if count % 2 == 0:
        return 0

    def gain(s: int) -> int:
        before = streamed[s - 1]
        layer = streamed[s]
        between = range(before + 1, layer if layer > before else layer + len(layers))
        return sum(layers[i % len(layers)].beats for i in between) - layers[layer].rows

    return max(range(count), key=gain)


def _best(
    layers: Sequence[WeightLayer], placement: Placement, stream: WeightStream, most: int
) -> tuple[tuple[int, int], Placement]:
    """Find after how many packets of weights, ``most`` at the most, the frame costs least.

    Returns (cycles a frame, rows that are streamed), and the placement with the frame there.
    """
    times = []
    for before in range(min(most, len(placement.streamed)) + 1):
        candidate = replace(placement, before=before)
        try:
            times.append((estimated_cycles(layers, candidate, stream), before))
        except StreamBlocked:
            if times:
                break
    time, before = min(times)
    return (time, sum(layers[i].rows for i in placement.streamed)), replace(placement, before=before)
