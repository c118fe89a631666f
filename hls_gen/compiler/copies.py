"""Copies of maps: how a graph of layers is cut between NPUs, wherever the cut lies (docs/decisions/0024).

    NPU 0                                NPU 1
    conv_1 --+--> ring -----------------> conv_1@1 (identity kernel) --> skip store --+
             `--> skip store --> conv_2 --> ring ---------------------> conv_3 -------+--> addition

Words between neighbours come in the order in which maps are made, and each map has one reader there. Where an NPU needs
a map in another way, to add it, to read it twice or beside another map, to read it after a later map, or to hand it on,
a further workload reads it as it comes: a copy, a 1 x 1 convolution whose kernels are unit vectors. Then that NPU
itself makes the map. Only integers of which the signs go on have no copies: they wait where they are made or on the
next NPU (docs/decisions/0022).

Workloads are no network that could be rewritten by rules (golden/rewrite.py): a copy is exact by its weights, and where
it must stand follows from the NPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.window import Window
from bitloom.hls_gen.design.copy_names import copy_name
from bitloom.hls_gen.design.npu import Npu

from .engine_rules import BINARY_ENGINE
from .input_maps import is_input
from .taps import Taps
from .tuple_parts import WeightedLanes
from .ways import outlet_between
from .workloads import Workload, Workloads


def with_copies(
    workloads: Workloads, mapping: Sequence[int], npus: Sequence[Npu], *, early: bool = False
) -> tuple[Workloads, list[int]]:
    """Add the copies that workloads on several NPUs need.

    Parameters
    ----------
    workloads
        The workloads in the order in which they are computed.
    mapping
        NPU of each of them.
    npus
        Foldings of the NPUs, in their order.
    early
        Whether an NPU hands maps on that others need before it computes its next workload, not only when they need
        them: then these maps come to the next NPU before that workload's map.

    Returns
    -------
    sequence of Workload
        The workloads and their copies, each behind the workloads whose maps it reads and adds. These are on the same
        NPU; or on the NPU before it, and then nobody else reads the map.
    list of int
        NPU of each of them.

    Raises
    ------
    ValueError
        A map can't get to who needs it. One line: layer, rule and value.
    """
    copier = _Copier(workloads, mapping, npus, early)
    for workload, n in zip(workloads, mapping):
        copier.take(workload, n)
    copier.take_outputs()
    return copier.workloads, copier.mapping


class _Copier:
    """Workloads in the order of computing, with copies between them.

    Attributes
    ----------
    workloads, mapping
        Results of `with_copies`, as far as workloads were taken.
    """

    def __init__(self, workloads: Workloads, mapping: Sequence[int], npus: Sequence[Npu], early: bool):
        self.workloads: list[Workload] = []
        self.mapping: list[int] = []
        self._npus = npus
        self._early = early
        self._makers = {workload.name: workload for workload in workloads}
        """Map -> the workload that first makes it."""
        self._on = {workload.name: n for workload, n in zip(workloads, mapping)}
        self._needs: dict[str, list[tuple[str, str]]] = {workload.name: [] for workload in workloads}
        """By map: (workload that needs it, whether it "reads", "joins" or "adds"); outputs "leave" for ""."""
        for workload in workloads:
            for how, name in maps_needed(workload).items():
                if not is_input(name):
                    self._needs[name].append((workload.name, "joins" if workload.joins and how == "reads" else how))
        self._on[""] = mapping[-1]  # all outputs leave from there
        for workload in workloads:
            if workload.output is not None:
                self._needs[workload.name].append(("", "leaves"))
        self._held: dict[tuple[str, int], str] = {}
        """(map, NPU) -> the workload that makes it there, or its copy."""
        self._coming: dict[int, list[str]] = {n: [] for n in range(len(npus))}
        """By NPU: maps that its neighbour has made for it, in their order, which it has not read yet."""

    def take(self, workload: Workload, n: int) -> None:
        """Append the next workload, behind the copies that it needs on its NPU ``n``."""
        needed = {how: name for how, name in maps_needed(workload).items() if not is_input(name)}
        missing = [name for name in dict.fromkeys(needed.values()) if (name, n) not in self._held]
        coming = {name: self._held[name, self._npu_before(n)] for name in self._fetched(workload.name, missing, n)}
        names = {how: coming.get(name) or self._held[name, n] for how, name in needed.items()}
        self._append(renamed(workload, names), workload.name, n)

    def take_outputs(self) -> None:
        """Let all outputs be made on the NPU from which they leave."""
        n = self._on[""]
        for name, workload in self._makers.items():
            if workload.output is not None and (name, n) not in self._held:
                self._fetched("", [name], n)

    def _fetched(self, reader: str, wanted: list[str], n: int) -> list[str]:
        """Let the maps that a workload on NPU ``n`` wants come from the neighbour, with all maps that come before them.
        All are copied there but the maps that are returned: the workload reads these as they come."""
        before = self._npu_before(n)
        direct = list[str]()
        left = set(wanted)
        for name in wanted:
            outlet_between(self._npus, name, before, n)
            if (name, before) not in self._held:
                self._fetched("", [name], before)
        if self._early:
            left |= {name for name in self._coming[n] if self._goes_on(name, (n + 1) % len(self._npus))}
        while left:
            name = self._coming[n].pop(0)
            left.discard(name)
            if not left and self._beyond(name, n) == [(reader, "reads")]:
                direct.append(name)
            else:
                self._append(self._copied(name, n), name, n)
        return direct

    def _copied(self, name: str, n: int) -> Workload:
        """The copy on NPU ``n`` of a map that comes from the neighbour. ValueError where that has another engine."""
        workload = self._makers[name]
        engine = self._npus[n].engine
        if workload.raw:
            raise ValueError(f"{name}: sums that leave must be computed by NPU {n}, as they are not copied")
        bits = workload.values is None
        if bits != (engine == "binary"):
            what, wanted = ("bits", "binary") if bits else ("integers", "integer")
            raise ValueError(
                f"{name}: engine of NPU {n} must be {wanted} to add a map of {what}, to read it twice or to hand it "
                f"on, got {engine}"
            )
        return copy_of(workload, self._held[name, self._npu_before(n)], copy_name(name, n))

    def _append(self, workload: Workload, name: str, n: int) -> None:
        """Append the workload that makes the map ``name`` on NPU ``n``."""
        output = self._makers[name].output if n == self._on[""] else None
        self.workloads.append(workload if workload.output == output else replace(workload, output=output))
        self.mapping.append(n)
        self._held[name, n] = workload.name
        after = (n + 1) % len(self._npus)
        if self._goes_on(name, after):
            self._coming[after].append(name)

    def _goes_on(self, name: str, after: int) -> bool:
        """Whether a map has to get to an NPU from the NPU before it."""
        return after != self._on[name] and bool(self._beyond(name, after))

    def _beyond(self, name: str, n: int) -> list[tuple[str, str]]:
        """Who needs a map on NPU ``n`` or further on its way round."""
        count = len(self._npus)
        here = self._on[name]
        least = (n - here) % count
        return [need for need in self._needs[name] if (self._on[need[0]] - here) % count >= least]

    def _npu_before(self, n: int) -> int:
        """Number of the NPU before."""
        return (n - 1) % len(self._npus)


def maps_needed(workload: Workload) -> dict[str, str]:
    """The maps that a workload "reads", "joins" and "adds", and that may be copied for it: no integers of which the
    signs go on."""
    names = {"reads": workload.reads, "joins": workload.joins, "adds": None if workload.binary else workload.adds}
    return {how: name for how, name in names.items() if name is not None}


def renamed(workload: Workload, names: Mapping[str, str]) -> Workload:
    """The workload with other names for some of its `maps_needed`."""
    return replace(workload, **names)  # type: ignore[arg-type]


def copy_of(workload: Workload, reads: str, name: str) -> Workload:
    """The workload ``name`` that copies the map of ``workload``, which it reads as the map of workload ``reads``. Its
    kernels are unit vectors."""
    height, width = workload.map_size
    channels = workload.out_channels * workload.levels
    bits = workload.values is None
    identity = WeightedLanes(np.eye(channels, dtype=bool), same=bits, even=bits)
    return Workload(
        name=name,
        engine=BINARY_ENGINE if bits else workload.engine,
        reads=reads,
        height=height,
        width=width,
        window=Taps(Window(kernel=(1, 1))),
        lanes=channels,
        visits=2 if bits else 1,
        out_channels=channels,
        values=workload.values,
        weighted_lanes=identity if channels > 1 else None,
    )
