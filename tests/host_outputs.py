"""Hosts of networks with one output, the scores, as tests make and change them, and orders of values in host files."""

from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.golden.host.host import Host, HostOutput, OutputPart
from bitloom.golden.host.links import HostLinks


def scores(
    chain: HostLinks, order: np.ndarray, closing: tuple[str, ...] = (), classes: int = 0, apart: int = 1
) -> tuple[HostOutput, ...]:
    """One output of one map: what makes the file's numbers, their places in the map, what the file ends in, and over
    how many scores: by default all."""
    part = OutputPart(first=0, size=order.size, chain=chain)
    return (
        HostOutput(
            name="scores",
            shape=(order.size,),
            parts=(part,),
            order=order,
            closing=closing,
            classes=classes or order.size,
            apart=apart,
        ),
    )


def with_scores(host: Host, **changes: Any) -> Host:
    """The host with another chain, order or closing of its scores."""
    output = host.only
    given = {"chain": output.parts[0].chain, "order": output.order, "closing": output.closing, **changes}
    return replace(host, outputs=scores(**given))


ORDERS_OF_TEN: dict[str, tuple[list[list[int]], list[int]]] = {
    "one behind the other": ([[0, 10, 1]], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "backwards": ([[9, 10, -1]], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
    "two axes": ([[0, 5, 1, 2, 5]], [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]),
    "three axes": ([[0, 2, 4, 2, 2, 2, 1], [9], [8]], [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]),
    "pieces": ([[4, 3, -2], [1, 3, 4], [8], [3, 2, 4], [6]], [4, 2, 0, 1, 5, 9, 8, 3, 7, 6]),
    "twice": ([[0, 5, 1], [4, 5, 1]], []),
    "twice in a piece": ([[0, 2, 1, 5, 1]], []),
    "too few": ([[0, 9, 1]], []),
    "none": ([], []),
    "too many": ([[0, 10, 1], [0]], []),
    "before the first": ([[8, 10, -1]], []),
    "behind the last": ([[1, 10, 1]], []),
    "no step": ([[0, 10]], []),
    "no place": ([[]], []),
    "an axis of one": ([[0, 1, 1, 10, 1]], []),
    "an axis of none": ([[0, 0, 1], [0, 10, 1]], []),
    "axes below none": ([[0, -2, 1, -5, 1]], []),
    "many axes": ([[0, *[1 << 60, 1] * 33]], []),
    "much memory": ([[0, 1 << 20, 1, 1 << 20, 1 << 20]], []),
    "beyond 64 bits": ([[0, 2, 1 << 66, 5, 1]], []),
}
"""Pieces in a host file, and the places that they are, or none where they are no order of ten values."""
