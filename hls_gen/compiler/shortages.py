"""Capacities of which a design has less than a network needs; a refusal names them all.

    Plan, Manifest --depths, widths--> shortages of each NPU --flow model--> of skip stores and of the spill store
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.design.manifest import Manifest

from .fitted import fitted
from .flow import Deadlock, System, least_skip, simulate, spill
from .plan import Plan

STORES = ("tuple_words", "pool_words", "map_words", "buffer_words")
"""Capacities that are words of a store in the flow model, skip stores and the spill store apart."""
OF_SKIP_STORE = ("skip_words", "skip_bits", "skips_onward", "joined_words", "aheads")
"""Capacities that a network needs of an NPU for the sake of its skip store: nothing is said of them where there is no
skip store. How many words it must have, the flow model says."""
FRAMES = 2
"""Frames that the flow model follows."""


@dataclass(frozen=True)
class Shortage:
    """A capacity that is too small.

    Attributes
    ----------
    name
        The capacity, a field of `bitloom.hls_gen.design.capacities.Capacities`, or ``collect`` or ``spill_words``.
    least
        What the network needs at least.
    has
        What the design has.
    npu
        Number of the NPU; None for what the design has once.
    why
        What is said besides, or nothing.
    """

    name: str
    least: int
    has: int
    npu: int | None = None
    why: str = ""


def check_capacities(made: Plan, manifest: Manifest) -> None:
    """Refuse a network that doesn't fit a design.

    Parameters
    ----------
    made
        The network's plan for the design.
    manifest
        Of the design.

    Raises
    ------
    ValueError
        A capacity is too small, or NPUs would wait for each other, or for room in a skip store, for ever (spec D8). One
        line with every capacity that is too small.
    """
    found = [shortage for n in range(len(made.npus)) for shortage in _of_npu(made, manifest, n)]
    found += _of_flow(made, manifest, found)
    if found:
        told = "; ".join(_told(shortage, manifest) for shortage in found)
        raise ValueError(f"{made.lowered.model.network.name}: {told}")


def _told(shortage: Shortage, manifest: Manifest) -> str:
    """A shortage in words."""
    of_design = shortage.npu is None or len(manifest.npus) == 1
    what = _design(manifest) if of_design else f"NPU {shortage.npu} of {_design(manifest)}"
    return f"{shortage.name} must be >= {shortage.least}, {what} has {shortage.has}{shortage.why}"


def _design(manifest: Manifest) -> str:
    """The design in words."""
    return f"design {manifest.name}"


def _of_npu(made: Plan, manifest: Manifest, n: int) -> list[Shortage]:
    """Depths and widths that are too small for what NPU ``n`` has to do."""
    own, npu = made.npus[n], manifest.npus[n]
    needs = {"collect": own.window_lanes if npu.collect else 0, **own.depths(), "acc_bits": own.acc_bits()}
    if npu.stream_weights:
        needs["kernel_rows"] = max(map(len, own.kernels), default=0)
    needs["kernel_rows"] += npu.first_kernel_row
    without = OF_SKIP_STORE if own.folding.skip_words and not npu.skip_words else ("skip_words",)
    needs = {name: need for name, need in needs.items() if name not in without}
    return [Shortage(name, need, has, n) for name, need in needs.items() if need > (has := getattr(npu, name))]


def _of_flow(made: Plan, manifest: Manifest, low: Sequence[Shortage]) -> list[Shortage]:
    """Skip stores and the spill store, as far as they are too small where all else has room; ``low`` are the
    other shortages. ValueError where no size of them would help.

    Maps always flow where none goes back to NPU 0, and none waits in a skip store.
    """
    edges, skips = zip(made.mapping, made.mapping[1:]), _skipping(made)
    if not skips and not any(here != there == 0 for here, there in edges):
        return []
    flow, spill_words, blocked = _roomy(made, manifest, low), manifest.design.spill_words, ""
    if all(manifest.npus[n].skip_words for n in skips):
        try:
            simulate(flow, FRAMES)
            return []
        except Deadlock as e:
            blocked = f": {e}"
    least = {n: least_skip(flow, n, FRAMES) for n in skips}
    found = [Shortage("skip_words", words, manifest.npus[n].skip_words, n) for n, words in least.items()]
    found = [shortage for shortage in found if shortage.least > shortage.has]
    if found:  # with skip stores that are large enough the spill store may be, too
        flow, blocked = replace(flow, units=tuple(replace(unit, skip_words=None) for unit in flow.units)), ""
    words = spill(flow, FRAMES).least
    if words > spill_words:
        found.append(Shortage("spill_words", words, spill_words, why=blocked))
    if not found:
        raise ValueError(f"{made.lowered.model.network.name}: {_design(manifest)} has no room for its maps{blocked}")
    return found


def _skipping(made: Plan) -> list[int]:
    """Numbers of the NPUs that need a skip store."""
    ways = [(n, made.ways[p.name]) for n, p in zip(made.mapping, made.lowered.layers)]
    return sorted({way.store(n) for n, way in ways if way.skips})


def _roomy(made: Plan, manifest: Manifest, low: Sequence[Shortage]) -> System:
    """The system that runs the plan, with room where there are shortages ``low``, and with skip stores where the design
    has none; of which size doesn't count."""
    npus = [npu if npu.skip_words or not own.folding.skip_words else fitted(own.folding, [own])
            for own, npu in zip(made.npus, manifest.npus)]  # fmt: skip
    flow = system(made, npus, stream_bits=manifest.stream_bits, spill_words=manifest.design.spill_words)
    more: list[dict[str, Any]] = [{one.name: one.least for one in low if one.npu == n and one.name in STORES}
                                  for n in range(len(npus))]  # fmt: skip
    return replace(flow, units=tuple(replace(unit, **words) for unit, words in zip(flow.units, more)))
