"""Topologies: how NPUs are joined to a chain, by their inlets and outlets. Frames come to the first NPU alone: a window
former stands there, and no other NPU keeps one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from .capacities import FORMER
from .folding import Folding

F = TypeVar("F", bound=Folding)


def pipeline(npus: Sequence[F]) -> tuple[F, ...]:
    """A chain in which every NPU computes one layer: none leads back to itself, and the last one to the host."""
    last = len(npus) - 1
    return tuple(
        _joined(n, inlets=("ring" if k else "host",), outlets=("ring" if k < last else "host",))
        for k, n in enumerate(npus)
    )


def cascade(npus: Sequence[F]) -> tuple[F, ...]:
    """A chain in which every NPU computes a run of layers (spec B16) and any may compute the last one."""
    last = len(npus) - 1
    return tuple(
        _joined(
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
        _joined(n, inlets=("ring",) if k else ("host", "ring"), outlets=("ring", "host")) for k, n in enumerate(npus)
    )


def _joined(npu: F, inlets: tuple[str, ...], outlets: tuple[str, ...]) -> F:
    """The NPU with these inlets and outlets."""
    former = npu.window_former and "host" in inlets
    sizes: dict[str, Any] = {} if former else {name: 0 for name in FORMER if hasattr(npu, name)}
    if hasattr(npu, "skips_onward") and "ring" not in outlets:
        sizes["skips_onward"] = 0
    return replace(npu, inlets=inlets, outlets=outlets, window_former=former, **sizes)
