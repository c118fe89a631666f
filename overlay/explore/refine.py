"""Refinement for latency: other dataflows in late layers, and more lanes there, as long as the budget holds.

An input-stationary dense layer works while its input trickles in; an output-stationary one lets the layer after it
begin early. Late layers are small, and a few more lanes there cost little. Each step takes the change that gains most
in the flow model. It ends where nothing gains, the latency is reached, or STEPS are done.
"""

from collections.abc import Iterator

from bitloom.golden.network import Model
from bitloom.hls_gen.design.array import MOST_ACCUMULATORS

from .budget import Budget
from .candidate import Candidate
from .demands import layers
from .figures import Figures, figures

STEPS = 4
"""Changes at most, one after the other."""
LEAST_GAIN = 0.01
"""Share of the latency that a step must gain."""


def refine(model: Model, candidate: Candidate, current: Figures, budget: Budget) -> tuple[Candidate, Figures]:
    """Change a candidate so that its latency falls.

    Parameters
    ----------
    model
        The network.
    candidate, current
        Where to begin, and its figures.
    budget
        Limits that must hold; refinement ends where the latency does.

    Returns
    -------
    tuple
        The candidate with less latency, and its figures; those given where nothing gains.
    """
    for _ in range(STEPS):
        if budget.latency is not None and current.latency <= budget.latency:
            break
        tried = [(other, figures(model, other)) for other in _changes(model, candidate)]
        good = [
            (other, f)
            for other, f in tried
            if f is not None
            and not set(budget.excess(f)) - {"latency"}
            and (budget.cycles is not None or f.cycles <= current.cycles)
            and f.latency < (1 - LEAST_GAIN) * current.latency
        ]
        if not good:
            break
        candidate, current = min(good, key=lambda pair: pair[1].latency)
    return candidate, current


def _changes(model: Model, candidate: Candidate) -> Iterator[Candidate]:
    """Candidates that differ in one thing: a late layer's dataflow, or a late NPU's KGP."""
    demands = layers(model, candidate.map_order, candidate.engines)
    for n, npu in enumerate(candidate.npus):
        on_npu = [layer for layer, k in zip(demands, candidate.mapping) if k == n]
        if len(on_npu) == 1 and not on_npu[0].planes and npu.engine == "binary":
            layer = on_npu[0]
            groups = layer.groups(npu)
            if layer.name in candidate.dataflow:
                dataflow = {k: v for k, v in candidate.dataflow.items() if k != layer.name}
                yield candidate.with_npu(n, npu.changed(accumulators=1), dataflow)
            elif 1 < groups <= MOST_ACCUMULATORS:
                count = min(MOST_ACCUMULATORS, layer.shared_accumulators(npu))
                yield candidate.with_npu(
                    n, npu.changed(accumulators=count), {**candidate.dataflow, layer.name: "input_stationary"}
                )
        if n and 2 * npu.array.kgp <= max(layer.kernels for layer in on_npu):
            yield candidate.with_npu(n, npu.changed(kgp=2 * npu.array.kgp), candidate.dataflow)
