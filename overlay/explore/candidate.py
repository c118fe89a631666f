"""A candidate: foldings, mapping and dataflows for a network; the design that it makes, and its figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.flow import Deadlock, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan, read_choices
from bitloom.hls_gen.compiler.sizing import GEOMETRY, geometry, size_memories
from bitloom.hls_gen.design.npu import Design, Npu, renamed
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.build.choices import CompileChoices

from .estimate import estimate

FRAMES = 4
"""Frames that the flow model is run for."""
CAPACITIES = ("tuple_words", "pool_words")
DEFAULTS = {f.name: f.default for f in fields(Npu)} | dict.fromkeys(CAPACITIES, 2)
"""What an NPU has of which a file says nothing: of capacities the least: size_memories finds what is needed."""


@dataclass(frozen=True)
class Candidate:
    """What size_memories makes a design of.

    npus : foldings; of their memories, only CAPACITIES count, as what they must hold at least.
    mapping : the NPU of each layer.  dataflow : by layer name, output_stationary for those not named.
    """

    network: str
    npus: tuple[Npu, ...]
    mapping: tuple[int, ...]
    stream_bits: int = 64
    map_order: str = "pull"
    dataflow: Mapping[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> CompileChoices:
        """How the network is compiled for the candidate's design."""
        return CompileChoices(map_order=self.map_order, dataflow=dict(self.dataflow), mapping=self.mapping)

    def design(self, model: Model, name: str = "explored") -> Design:
        """The design for ``model``; ValueError where the engine can't compute it."""
        made = size_memories(name, [model], self.npus, stream_bits=self.stream_bits, map_order=self.map_order,
                   dataflow=dict(self.dataflow), mapping=self.mapping)  # fmt: skip
        npus = tuple(
            replace(npu, **{key: max(getattr(npu, key), getattr(given, key)) for key in CAPACITIES if _has(npu, key)})
            for npu, given in zip(made.npus, self.npus)
        )
        return replace(made, npus=npus)

    def to_dict(self) -> dict[str, Any]:
        """JSON data; ``from_dict`` is its inverse. Of an NPU only what differs from DEFAULTS."""
        keys = (*GEOMETRY, *CAPACITIES, "kernel_ram")
        npus = [{k: v for k, v in asdict(n).items() if k in keys and v != DEFAULTS[k]} for n in self.npus]
        return {"format": "bitloom-foldings", "version": 1, "network": self.network, "stream_bits": self.stream_bits,
                "map_order": self.map_order, "dataflow": dict(self.dataflow), "mapping": list(self.mapping),
                "npus": npus}  # fmt: skip

    @classmethod
    def load(cls, path: Path, model: Model) -> "Candidate":
        """The candidate in a JSON file of ``to_dict``'s data; ValueError where it is none, or not for ``model``."""
        try:
            made = cls.from_dict(json.loads(path.read_text()))
        except (OSError, json.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as e:
            raise ValueError(f"{path}: foldings must be a file of explore --save, got: {e}") from None
        if made.network != model.network.name:
            raise ValueError(f"{path}: foldings must be for {model.network.name}, got {made.network}")
        return made

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Candidate":
        """Candidate of ``to_dict``'s data; ValueError where it is none."""
        if data.get("format") != "bitloom-foldings" or data.get("version") != 1:
            raise ValueError(f"foldings: format must be bitloom-foldings, version 1, got {data.get('format')!r}")
        npus = []
        for given in map(renamed, data["npus"]):
            ways = {key: tuple(given[key]) for key in ("inlets", "outlets") if key in given}
            npus.append(Npu(**{"acc_bits": 32, **{key: DEFAULTS[key] for key in CAPACITIES}, **given, **ways}))
        map_order, dataflow = read_choices(data)
        return cls(network=data["network"], npus=tuple(npus), mapping=tuple(data["mapping"]),
                   stream_bits=data["stream_bits"], map_order=map_order, dataflow=dataflow)  # fmt: skip


def _has(npu: Npu, key: str) -> bool:
    return npu.pool or key != "pool_words"


@dataclass(frozen=True)
class Figures:
    """Of a candidate: area by the model, lanes, cycles a frame and latency by the flow model.

    lanes : a channel of several planes counts once.
    """

    area: Resources
    lanes: int
    cycles: float
    latency: int
    stores: Mapping[str, int] = field(default_factory=dict)

    @property
    def lut(self) -> int:
        """LUTs of logic and of memory."""
        return self.area.lut + self.area.lutram


def flow(model: Model, candidate: Candidate, design: Design, frames: int = FRAMES) -> Any:
    """The flow model's result for ``design``, which ``candidate`` makes; Deadlock where it can't finish."""
    npus: Sequence[Mapping[str, Any]] = [asdict(npu) for npu in design.npus]
    made = plan(
        model, [geometry(n) for n in design.npus], candidate.map_order, dict(candidate.dataflow),
        mapping=candidate.mapping
    )
    return simulate(system(made, npus, stream_bits=design.stream_bits, spill_words=design.spill_words), frames)


def figures(model: Model, candidate: Candidate, design: Design | None = None) -> Figures | None:
    """Figures of a candidate; None where it makes no design that finishes."""
    try:
        design = design or candidate.design(model)
        found = flow(model, candidate, design)
    except (ValueError, Deadlock):
        return None
    return Figures(estimate(design), lanes(candidate), found.cycles_per_frame, found.latency, found.stores)


def lanes(candidate: Candidate) -> int:
    """Lanes; a channel of several planes counts once in an NPU that computes nothing but the first layer."""
    alone = candidate.mapping.count(0) == 1
    return sum((npu.kfp if n or not alone else npu.plane_lanes) * npu.kgp for n, npu in enumerate(candidate.npus))
