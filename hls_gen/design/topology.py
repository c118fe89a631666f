"""Topologies: how NPUs are joined to a chain, by their inlets and outlets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from .folding import Folding

F = TypeVar("F", bound=Folding)


def pipeline(npus: Sequence[F]) -> tuple[F, ...]:
    """A chain in which every NPU computes one layer: none leads back to itself, and the last one to the host."""
    last = len(npus) - 1
    return tuple(
        replace(n, inlets=("ring" if k else "host",), outlets=("ring" if k < last else "host",))
        for k, n in enumerate(npus)
    )


def cascade(npus: Sequence[F]) -> tuple[F, ...]:
    """A chain in which every NPU computes a run of layers (spec B16) and any may compute the last one."""
    last = len(npus) - 1
    return tuple(
        replace(
            n,
            inlets=("ring" if k else "host", "loop"),
            outlets=("ring", "loop", "host") if k < last else ("loop", "host"),
        )
        for k, n in enumerate(npus)
    )


def ring(npus: Sequence[F]) -> tuple[F, ...]:
    """A closed chain: NPU i computes layers i, i + N, i + 2 N, ... (spec D2), and any of them may be the last."""
    if len(npus) == 1:
        return cascade(npus)
    return tuple(
        replace(n, inlets=("ring",) if k else ("host", "ring"), outlets=("ring", "host")) for k, n in enumerate(npus)
    )
