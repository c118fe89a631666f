"""Capacities of which a design has less than a network needs; a refusal names them all.

Plan, Manifest --depths, widths--> shortages of each NPU --flow model--> of skip stores and of the spill store
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.design.manifest import Manifest

from .fitted import fitted
from .flow import Deadlock, System, enough_skips, least_spill, simulate
from .plan import Plan

STORES = ("tuple_words", "pool_words", "map_words", "buffer_words")
"""Capacities that are words of a store in the flow model, skip stores and the spill store apart."""
OF_SKIP_STORE = ("skip_words", "skip_bits", "skips_onward", "joined_words", "aheads")
"""Capacities that a network needs for the NPU's skip store alone. No shortage of them is reported where the NPU lacks a
skip store. The flow model says how many words the store must have."""
CHECKED_FRAMES = 2
"""Frames that the flow model follows."""


@dataclass(frozen=True)
class Shortage:
    """A capacity that is too small."""

    name: str
    """The capacity, one of `bitloom.hls_gen.design.flat.CAPACITIES`, or ``collect`` or ``spill_words``."""
    least: int
    """The need of the network: rows, words or bits at least."""
    has: int
    """The rows, words or bits of the design."""
    npu: int | None = None
    """Number of the NPU; None for what the design has once."""
    layer: str = ""
    """Name of the layer that needs it; nothing where several do."""
    why: str = ""
    """Reason that the message gives behind these numbers, or nothing."""


def check_capacities(plan: Plan, manifest: Manifest) -> None:
    """Refuse a network that doesn't fit a design.

    Parameters
    ----------
    plan
        The network's plan for the design.
    manifest
        Of the design.

    Raises
    ------
    ValueError
        A capacity is too small, or NPUs would wait for each other, or for room in a skip store, for ever (spec D8). One
        line with every capacity that is too small.
    """
    network = plan.lowered.model.network.name
    shortages = [shortage for n in range(len(plan.foldings)) for shortage in _of_npu(plan, manifest, n)]
    try:
        shortages += _of_flow(plan, manifest, shortages)
    except Deadlock as e:
        raise ValueError(f"{network}: design {manifest.name} has no room for its maps: {e}") from None
    if shortages:
        told = "; ".join(_in_words(shortage, manifest) for shortage in shortages)
        raise ValueError(f"{network}: {told}")


def _in_words(shortage: Shortage, manifest: Manifest) -> str:
    """A shortage in words."""
    what = f"design {manifest.name}"
    if shortage.npu is not None and len(manifest.npus) > 1:
        what = f"NPU {shortage.npu} of {what}"
    least = f"{shortage.least} for {shortage.layer}" if shortage.layer else shortage.least
    return f"{shortage.name} must be >= {least}, {what} has {shortage.has}{shortage.why}"


def _of_npu(plan: Plan, manifest: Manifest, n: int) -> list[Shortage]:
    """Depths and widths that are too small for what NPU ``n`` has to do."""
    npu_needs = plan.needs[n]
    npu = manifest.npus[n]
    collect = npu_needs.needs.window_lanes if npu.array.reducer.collects else 0
    needs = {"collect": collect, **npu_needs.capacities}
    layers: dict[str, str] = {}
    if npu.loader.stream_weights and plan.on(n):
        rows, layers["kernel_rows"] = max((planned.kernel_rows, planned.layer.name) for planned in plan.on(n))
        needs["kernel_rows"] = rows
    needs["kernel_rows"] += npu.first_kernel_row
    without = OF_SKIP_STORE if npu_needs.npu.has_skip and not npu.has_skip else ("skip_words",)
    needs = {name: need for name, need in needs.items() if name not in without}
    shortages = [Shortage(name, need, npu.value(name), n, layers.get(name, "")) for name, need in needs.items()]
    return [shortage for shortage in shortages if shortage.least > shortage.has]


def _of_flow(plan: Plan, manifest: Manifest, others: Sequence[Shortage]) -> list[Shortage]:
    """Skip stores and the spill store, as far as they are too small where all else has room; ``others`` are the
    shortages of all else. Deadlock where no size of them would help.

    Maps always flow where none goes back to NPU 0, and none waits in a skip store.
    """
    edges = zip(plan.mapping, plan.mapping[1:])
    skips = _skipping(plan)
    if not skips and not any(here != there == 0 for here, there in edges):
        return []
    flow = _roomy(plan, manifest, others)
    stores = {n: manifest.npus[n].value("skip_words") for n in skips}
    blocked = ""
    if all(stores.values()):
        try:
            simulate(flow, CHECKED_FRAMES)
            return []
        except Deadlock as e:
            blocked = f": {e}"
    enough = enough_skips(flow, stores, CHECKED_FRAMES)
    spill_words = manifest.design.spill_words
    shortages = [Shortage("skip_words", words, stores[n], n) for n, words in enough.items() if words > stores[n]]
    npus = [replace(flow_npu, skip_words=enough.get(n, flow_npu.skip_words)) for n, flow_npu in enumerate(flow.npus)]
    words = least_spill(replace(flow, npus=tuple(npus)), CHECKED_FRAMES)
    if words > spill_words:
        shortages.append(Shortage("spill_words", words, spill_words, why="" if shortages else blocked))
    return shortages


def _skipping(plan: Plan) -> list[int]:
    """Numbers of the NPUs that need a skip store."""
    ways = [(n, plan.ways[layer.name]) for n, layer in zip(plan.mapping, plan.lowered.layers)]
    return sorted({way.skip_store_npu(n) for n, way in ways if way.skips})


def _roomy(plan: Plan, manifest: Manifest, shortages: Sequence[Shortage]) -> System:
    """The system that runs the plan, with room where there are ``shortages``, and with skip stores of any size where
    the design has none."""
    npus = [
        npu if npu.has_skip or not needs.npu.has_skip else fitted(needs.npu, [needs])
        for needs, npu in zip(plan.needs, manifest.npus)
    ]
    for shortage in shortages:
        if shortage.npu is not None and shortage.name in STORES:
            words: dict[str, Any] = {shortage.name: 1 << (shortage.least - 1).bit_length()}
            npus[shortage.npu] = npus[shortage.npu].unchecked(**words)  # kernels may then lack rows in one_memory
    return system(plan, npus, stream_bits=manifest.stream_bits, spill_words=manifest.design.spill_words)
