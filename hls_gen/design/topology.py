"""Topologies: how NPUs are connected, by their inlets and outlets. Frames come to the first NPU alone. An NPU
keeps its window former where one has a place behind the new inlets."""

from collections.abc import Sequence
from typing import Any

from .former import has_place
from .npu import Npu


def pipeline(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """A chain in which every NPU computes one layer: none leads back to itself, and the last one to the host."""
    last = len(npus) - 1
    return tuple(
        _connected(n, inlets=("ring" if k else "host",), outlets=("ring" if k < last else "host",))
        for k, n in enumerate(npus)
    )


def cascade(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """A chain in which every NPU computes a run of layers (spec B16) and any may compute the last one."""
    last = len(npus) - 1
    return tuple(
        _connected(
            n,
            inlets=("ring" if k else "host", "loop"),
            outlets=("ring", "loop", "host") if k < last else ("loop", "host"),
        )
        for k, n in enumerate(npus)
    )


def ring(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """A closed chain: NPU i computes layers i, i + N, i + 2 N, ... (spec D2), and any of them may be the last."""
    if len(npus) == 1:
        return cascade(npus)
    return tuple(
        _connected(n, inlets=("ring",) if k else ("host", "ring"), outlets=("ring", "host")) for k, n in enumerate(npus)
    )


def looped(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """The NPUs of a ring, each of which may also compute several layers in turn."""
    return tuple(_connected(n, inlets=(*n.ports.inlets, "loop"), outlets=("ring", "loop", "host")) for n in npus)


def _connected(npu: Npu, inlets: tuple[str, ...], outlets: tuple[str, ...]) -> Npu:
    """The NPU with these inlets and outlets."""
    lost: dict[str, Any] = {} if has_place(inlets, npu.array.line_taps) else {"window_former": False}
    if "ring" not in outlets:
        lost["skips_onward"] = 0
    return npu.changed(inlets=inlets, outlets=outlets, **lost)
