"""Figures of a candidate: area, cycles and latency of the design that it makes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.flow import Result
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import estimate

from .candidate import Candidate
from .folding_keys import AREA_ALONE
from .stores_in_use import has_stores, run_flow, run_lowered, with_stores


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
        """LUTs as a device counts them, of logic and of memory together."""
        return self.area.device_lut


@dataclass(frozen=True)
class FlowOnDesign:
    """A design, and the flow model's results for each network on it."""

    design: Design
    results: Sequence[Sequence[Result]]
    """Of each network's programs."""


KnownFlows = dict[Any, FlowOnDesign | None]
"""Results that are known for candidates, by key; None where a candidate makes no design that finishes."""


def figures(
    model: Model,
    candidate: Candidate,
    design: Design | None = None,
    also: Sequence[Model] = (),
    known: KnownFlows | None = None,
) -> Figures | None:
    """Figures of a candidate.

    Parameters
    ----------
    model, candidate
        A network or networks, and the candidate for them.
    design
        The candidate's design; None makes it.
    also
        Further networks that it is for.
    known
        Results for other candidates, to which those of this candidate are added. Candidates with equal values but for
        AREA_ALONE have one run of the flow model.

    Returns
    -------
    Figures or None
        None where the candidate makes no design that finishes.
    """
    models = (model, *also)
    if design is not None:
        flow = _on_design(design, (run_flow(each, candidate.choices, design) for each in models))
    else:
        known = {} if known is None else known
        alike = replace(candidate, npus=tuple(npu.unchecked(**_of_area(npu, AREA_ALONE)) for npu in candidate.npus))
        if alike.key not in known:
            known[alike.key] = _with_design(models, alike)
        flow = _with_areas(known[alike.key], candidate)
    if flow is None:
        return None
    results = flow.results
    by_network = [sum(result.cycles_per_frame for result in programs) for programs in results]
    each = {model.network.name: cycles for model, cycles in zip(models, by_network)} if also else {}
    latency = sum(result.latency for programs in results for result in programs)
    first = results[0]
    stores = {name: max(other.stores.get(name, 0) for other in first) for each in first for name in each.stores}
    return Figures(estimate(flow.design), candidate.lanes, sum(by_network), latency, stores, each)


def _on_design(design: Design, runs: Iterable[Sequence[Result]]) -> FlowOnDesign | None:
    """The design with the flow model's results for each network on it; None where one doesn't finish."""
    try:
        return FlowOnDesign(design, list(runs))
    except ValueError:
        return None


def _with_design(models: Sequence[Model], candidate: Candidate) -> FlowOnDesign | None:
    """The networks on the candidate's design; None where it makes none that finishes."""
    try:
        design, networks = candidate.roomy(models)
    except ValueError:
        return None
    flow = _on_design(design, (run_lowered(each, candidate.choices, design) for each in networks))
    if flow is not None and has_stores(design):  # one run of the flow model is enough
        return replace(flow, design=with_stores(design, [each for programs in flow.results for each in programs]))
    return flow


def _with_areas(flow: FlowOnDesign | None, candidate: Candidate) -> FlowOnDesign | None:
    """The flow on the design whose NPUs have the candidate's values of AREA_ALONE; None where an NPU can't have
    them."""
    if flow is None:
        return None
    pairs = zip(flow.design.npus, candidate.npus)
    try:
        npus = tuple(npu.changed(**_of_area(npu, given.values(*AREA_ALONE))) for npu, given in pairs)
    except ValueError:
        return None
    return replace(flow, design=replace(flow.design, npus=npus))


def _of_area(npu: Npu, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of these values those of AREA_ALONE that the NPU has."""
    return {name: values[name] for name in AREA_ALONE if npu.has(name)}
