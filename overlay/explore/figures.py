"""Figures of a candidate: area, cycles and latency of the design that it makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bitloom.golden.network import Model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.lanes import plane_lanes
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import estimate

from .candidate import Candidate
from .stores_in_use import ROOM_FOR_ALL, has_stores, run_flow, with_stores


@dataclass(frozen=True)
class Figures:
    """Figures of a candidate, all from models."""

    area: Resources
    """By the area model."""
    lanes: int
    """Multiply-accumulates a cycle; a channel that is read as several bit planes counts once."""
    cycles: float
    """Cycles a frame in a steady stream, by the flow model."""
    latency: int
    """Cycles of one frame alone, by the flow model."""
    stores: Mapping[str, int] = field(default_factory=dict)
    """Most words that each store between layers ever held, by name."""
    each: Mapping[str, float] = field(default_factory=dict)
    """Of several networks the cycles a frame by name; ``cycles`` and ``latency`` are sums then."""

    @property
    def lut(self) -> int:
        """LUTs of logic and of memory together."""
        return self.area.lut + self.area.lutram


def figures(
    model: Model, candidate: Candidate, design: Design | None = None, also: Sequence[Model] = ()
) -> Figures | None:
    """Figures of a candidate.

    Parameters
    ----------
    model, candidate
        What belongs together.
    design
        The candidate's design; None makes it.
    also
        Further networks that it is for.

    Returns
    -------
    Figures or None
        None where the candidate makes no design that finishes.
    """
    models = (model, *also)
    sized = design is not None
    try:
        design = design or candidate.design(model, also=also, room=ROOM_FOR_ALL)
        results = [run_flow(model, candidate.choices, design) for model in models]
        if has_stores(design) and not sized:  # one run of the flow model is enough
            design = with_stores(design, results)
    except ValueError:
        return None
    each = {model.network.name: result.cycles_per_frame for model, result in zip(models, results)} if also else {}
    cycles = sum(result.cycles_per_frame for result in results)
    latency = sum(result.latency for result in results)
    return Figures(estimate(design), lanes(candidate), cycles, latency, results[0].stores, each)


def lanes(candidate: Candidate) -> int:
    """Lanes; a channel of several bit planes counts once in an NPU that computes only the first layer."""
    alone = candidate.mapping.count(0) == 1
    return sum(
        (npu.array.kfp if n or not alone else plane_lanes(npu.array.kfp, npu.array.planes)) * npu.array.kgp
        for n, npu in enumerate(candidate.npus)
    )
