"""Copies of maps: how a graph of layers is cut between NPUs, wherever the cut lies (docs/decisions/0024).

    NPU 0                                NPU 1
    conv_1 --+--> ring -----------------> conv_1@1 (identity kernel) --> skip store --+
             `--> skip store --> conv_2 --> ring ---------------------> conv_3 -------+--> addition

Words between neighbours come in the order in which maps are made, and each map has one reader there. Where an NPU needs
a map in another way, to add it, to read it twice or beside another map, to read it after a later map, or to hand it on,
a further part reads it as it comes: a copy, a 1 x 1 convolution whose kernels are unit vectors. Then that NPU itself
makes the map. Only integers of which the signs go on have no copies: they wait where they are made or on the next NPU
(docs/decisions/0022).

Parts are no network that could be rewritten by rules (golden/rewrite.py): a copy is exact by its weights, and where it
must stand follows from the NPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.window import Window
from bitloom.hls_gen.design.copy_names import copy_name
from bitloom.hls_gen.design.npu import Npu

from .engine_rules import BINARY_ENGINE
from .input_maps import is_input
from .parts import Part, Parts
from .taps import Taps
from .tuple_parts import WeightedLanes
from .ways import outlet_between


def with_copies(
    parts: Parts, mapping: Sequence[int], npus: Sequence[Npu], *, early: bool = False
) -> tuple[Parts, list[int]]:
    """Add the copies that parts on several NPUs need.

    Parameters
    ----------
    parts
        The parts in the order in which they are computed.
    mapping
        NPU of each of them.
    npus
        Foldings of the NPUs, in their order.
    early
        Whether an NPU hands maps on that others need before it computes its next part, not only when they need them:
        then these maps come to the next NPU before that part's map.

    Returns
    -------
    sequence of Part
        The parts and their copies, each behind the parts whose maps it reads and adds. These are on the same NPU; or on
        the NPU before it, and then nobody else reads the map.
    list of int
        NPU of each of them.

    Raises
    ------
    ValueError
        A map can't get to who needs it. One line: layer, rule and value.
    """
    copier = _Copier(parts, mapping, npus, early)
    for part, n in zip(parts, mapping):
        copier.take(part, n)
    copier.take_outputs()
    return copier.parts, copier.mapping


class _Copier:
    """Parts in the order of computing, with copies between them.

    Attributes
    ----------
    parts, mapping
        What `with_copies` returns, as far as parts were taken.
    """

    def __init__(self, parts: Parts, mapping: Sequence[int], npus: Sequence[Npu], early: bool):
        self.parts: list[Part] = []
        self.mapping: list[int] = []
        self._npus = npus
        self._early = early
        self._makers = {part.name: part for part in parts}
        """Map -> the part that first makes it."""
        self._on = {part.name: n for part, n in zip(parts, mapping)}
        self._needs: dict[str, list[tuple[str, str]]] = {part.name: [] for part in parts}
        """By map: (part that needs it, whether it "reads", "joins" or "adds"); outputs "leave" for ""."""
        for part in parts:
            for how, name in needs(part).items():
                if not is_input(name):
                    self._needs[name].append((part.name, "joins" if part.joins and how == "reads" else how))
        self._on[""] = mapping[-1]  # all outputs leave from there
        for part in parts:
            if part.output is not None:
                self._needs[part.name].append(("", "leaves"))
        self._held: dict[tuple[str, int], str] = {}
        """(map, NPU) -> the part that makes it there, or its copy."""
        self._coming: dict[int, list[str]] = {n: [] for n in range(len(npus))}
        """By NPU: maps that its neighbour has made for it, in their order, which it has not read yet."""

    def take(self, part: Part, n: int) -> None:
        """Append the next part, behind the copies that it needs on its NPU ``n``."""
        needed = {how: name for how, name in needs(part).items() if not is_input(name)}
        missing = [name for name in dict.fromkeys(needed.values()) if (name, n) not in self._held]
        coming = {name: self._held[name, self._before(n)] for name in self._fetched(part.name, missing, n)}
        names = {how: coming.get(name) or self._held[name, n] for how, name in needed.items()}
        self._append(renamed(part, names), part.name, n)

    def take_outputs(self) -> None:
        """Let all outputs be made on the NPU from which they leave."""
        n = self._on[""]
        for name, part in self._makers.items():
            if part.output is not None and (name, n) not in self._held:
                self._fetched("", [name], n)

    def _fetched(self, reader: str, wanted: list[str], n: int) -> list[str]:
        """Let the maps that a part on NPU ``n`` wants come from the neighbour, with all maps that come before them. All
        are copied there but the maps that are returned: the part reads these as they come."""
        before = self._before(n)
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

    def _copied(self, name: str, n: int) -> Part:
        """The copy on NPU ``n`` of a map that comes from the neighbour. ValueError where that has another engine."""
        part = self._makers[name]
        engine = self._npus[n].engine
        if part.raw:
            raise ValueError(f"{name}: sums that leave must be computed by NPU {n}, as they are not copied")
        bits = part.values is None
        if bits != (engine == "binary"):
            what, wanted = ("bits", "binary") if bits else ("integers", "integer")
            raise ValueError(
                f"{name}: engine of NPU {n} must be {wanted} to add a map of {what}, to read it twice or to hand it "
                f"on, got {engine}"
            )
        return copy_of(part, self._held[name, self._before(n)], copy_name(name, n))

    def _append(self, part: Part, name: str, n: int) -> None:
        """Append the part that makes the map ``name`` on NPU ``n``."""
        output = self._makers[name].output if n == self._on[""] else None
        self.parts.append(part if part.output == output else replace(part, output=output))
        self.mapping.append(n)
        self._held[name, n] = part.name
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

    def _before(self, n: int) -> int:
        """Number of the NPU before."""
        return (n - 1) % len(self._npus)


def needs(part: Part) -> dict[str, str]:
    """The maps that a part "reads", "joins" and "adds", and that may be copied for it: no integers of which the signs
    go on."""
    names = {"reads": part.reads, "joins": part.joins, "adds": None if part.binary else part.adds}
    return {how: name for how, name in names.items() if name is not None}


def renamed(part: Part, names: Mapping[str, str]) -> Part:
    """The part with other names for some of the maps that it ``needs``."""
    return replace(part, **names)  # type: ignore[arg-type]


def copy_of(part: Part, reads: str, name: str) -> Part:
    """The part ``name`` that copies the map of ``part``, which it reads as the map of part ``reads``. Its kernels are
    unit vectors."""
    height, width = part.map_size
    channels = part.out_channels * part.levels
    bits = part.values is None
    identity = WeightedLanes(np.eye(channels, dtype=bool), same=bits, even=bits)
    return Part(
        name=name,
        engine=BINARY_ENGINE if bits else part.engine,
        reads=reads,
        height=height,
        width=width,
        window=Taps(Window(kernel=(1, 1))),
        lanes=channels,
        visits=2 if bits else 1,
        out_channels=channels,
        values=part.values,
        weighted=identity if channels > 1 else None,
    )
