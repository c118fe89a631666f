"""Folding to design: memories as large as the given networks need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.design import LEAST_SPILL_WORDS, Design
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.npu import Npu

from .choices import CompileChoices
from .effects import check_effects
from .extended import Npus, PlannedOnNpus, extended
from .fitted import fitted, streamed, unsized
from .flow import System, smooth, smooth_skips
from .formed_taps import form_taps, former_sizes
from .lowering import Lowered, lowered_for
from .margins import margins
from .needs import NpuNeeds
from .partitions import check_partitions, partitions
from .plan import Plan, map_orders, plan_lowered, with_skip_stores
from .sharing import ReadValues, values_read
from .ways import with_equal_steps

FLOW_FRAMES = 4
"""Frames for which stores are simulated to be sized."""


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """By which rules memories get their sizes."""

    spill_words: int | None = None
    """Words of the spill store on the closing edge of a ring; None: as many as are ever in use
    (hls_gen/compiler/flow)."""
    skip_words: int | None = None
    """Words of each skip store; None: as many as are ever in use."""
    stream_weights: bool = False
    """Whether weights are streamed: kernel rows for two layers, and what doesn't fit comes down the stream with every
    frame."""
    frames: int = FLOW_FRAMES
    """Frames for which the flow model runs to size skip stores and spill stores."""
    equal: bool = False
    """Whether every NPU gets the largest of all NPUs' memories."""


class SizedDesign(NamedTuple):
    """A design, and the networks for which it was sized."""

    design: Design
    networks: list[list[Lowered]]
    """Of each network the lowered layers of its programs: of partitions, or of the network as a whole."""


def size_memories(
    name: str,
    models: Sequence[Model],
    foldings: Npu | Sequence[Npu],
    choices: CompileChoices | None = None,
    *,
    stream_bits: int = 32,
    sizing: Sizing | None = None,
) -> Design:
    """Find capacities with which NPUs run all of the given networks.

    Parameters
    ----------
    name
        The design's name.
    models
        The networks, at least one.
    foldings
        The NPUs, in their order, or the only one. Their capacities are ignored; ``collect``, where it is not 0, is
        made as wide as the networks need.
    choices
        How the networks will be compiled; by default as ``CompileChoices()``.
    stream_bits
        Width of the stream, 32 or 64.
    sizing
        By which rules memories get their sizes; by default those of ``Sizing()``.

    Raises
    ------
    ValueError
        An engine can't compute a network. One line: layer, rule and value.
    """
    npus = (foldings,) if isinstance(foldings, Npu) else foldings
    return sized_design(name, models, npus, choices or CompileChoices(), stream_bits, sizing or Sizing()).design


def sized_design(
    name: str,
    models: Sequence[Model],
    foldings: Sequence[Npu],
    choices: CompileChoices,
    stream_bits: int,
    sizing: Sizing,
) -> SizedDesign:
    """The result of `size_memories`, and the lowered networks, with which a search or a build goes on."""
    if not models:
        raise ValueError(f"{name}: a design must be made for at least one network, got none")
    npus = tuple(unsized(folding) for folding in foldings)
    check_partitions(name, models, choices.partitions)
    programs = [[each.model for each in partitions(model, choices.partitions, npus)] for model in models]
    networks = extended(_planned(name, [*chain(*programs)], npus, choices.of_partition, equal=sizing.equal))
    npus, plans = networks.npus, networks.plans
    needs_by_npu = [[plan.needs[n] for plan in plans] for n in range(len(npus))]
    if sizing.stream_weights:
        needs_by_npu = [[_streamed(plan, n, npu) for plan in plans] for n, npu in enumerate(npus)]
    if sizing.equal:
        needs_by_npu = [[need for needs in needs_by_npu for need in needs]] * len(npus)
    sized = with_equal_steps([_fit(npu, needs, sizing) for npu, needs in zip(npus, needs_by_npu)])
    if sizing.skip_words is None:
        sized = _with_skip_stores(sized, plans, stream_bits, sizing)
    else:
        sized = tuple(npu.changed(skip_words=sizing.skip_words) if npu.has_skip else npu for npu in sized)
    spill_words = _spill_words(plans, sized, stream_bits, sizing)
    design = Design(name=name, stream_bits=stream_bits, npus=sized, spill_words=spill_words)
    each = iter(networks.lowered)
    return SizedDesign(design, [[next(each) for _ in of_model] for of_model in programs])


@dataclass(frozen=True, kw_only=True, eq=False)
class _PlannedNetworks(PlannedOnNpus):
    """The networks of a design, planned on its NPUs."""

    npus: Npus
    models: Sequence[Model]
    lowered: Sequence[Lowered]
    """Each network, lowered for these NPUs."""
    choices: CompileChoices
    equal: bool
    """As in `Sizing`."""

    @cached_property
    def plans(self) -> list[Plan]:
        """The plan of each network."""
        return [plan_lowered(lowered, self.npus, self.choices) for lowered in self.lowered]

    def on(self, npus: Npus) -> "_PlannedNetworks":
        """The networks on other NPUs. Where other lanes share weights layers may take other cycles, so that the best
        mapping may be another one."""
        npus = _alike(npus, equal=self.equal)
        lanes, before = ([npu.array.lanes_per_weight for npu in each] for each in (npus, self.npus))
        lowered = self.lowered
        if lanes != before:
            lowered = [lowered_for(model, npus, self.choices) for model in self.models]
        return replace(self, npus=npus, lowered=lowered)

    def tuple_part_npus(self) -> set[int]:
        return {planned.number for plan in self.plans for planned in plan.layers if planned.gains_by_tuple_parts}

    def values_read(self, n: int) -> Iterator[ReadValues]:
        return chain.from_iterable(values_read(plan, n) for plan in self.plans)

    def beats(self) -> list[int]:
        return [beats for plan in self.plans for _, beats in plan.ideal]


def _planned(
    name: str, models: Sequence[Model], npus: Npus, choices: CompileChoices, *, equal: bool
) -> _PlannedNetworks:
    """The networks, planned on NPUs with what lowered layers say that they need."""
    networks = [lowered_for(model, npus, choices) for model in models]
    check_effects(name, networks, npus, choices)
    npus = _with_formers(_with_steps_and_claims(networks, npus, equal=equal), networks, choices)
    return _PlannedNetworks(npus=npus, models=models, lowered=networks, choices=choices, equal=equal)


def _with_steps_and_claims(networks: Sequence[Lowered], npus: Npus, *, equal: bool) -> Npus:
    """The NPUs with a skip store of steps where one of the networks needs it: then the NPU requantises the sums of all
    networks. Also with a table of tuples that are claimed ahead where one of the networks needs it: then every network
    claims by the table, and needs rows for that. If NPUs are to be ``equal``, all have a table where one has."""
    of_npus = zip(*(with_skip_stores(lowered, npus) for lowered in networks))
    each = []
    for npu, foldings in zip(npus, of_npus):
        claims = any(folding.sequencer.aheads for folding in foldings)
        npu = next((folding for folding in foldings if folding.keeps_steps), npu)
        each.append(_claiming(npu) if claims else npu)
    return _alike(each, equal=equal)


def _with_formers(npus: Npus, networks: Sequence[Lowered], choices: CompileChoices) -> Npus:
    """The NPUs, window formers as large as for all that networks form, in any map order in which they are planned."""
    formed: list[list[FormedWindows]] = [[] for _ in npus]
    for lowered in networks:
        for order in map_orders(lowered.model.network.name, choices):
            for layer, windows in form_taps(lowered, npus, order)[1].items():
                formed[lowered.npu_of[layer]].append(windows)
    return tuple(npu.changed(**former_sizes(npu, each)) if each else npu for npu, each in zip(npus, formed))


def _alike(npus: Sequence[Npu], *, equal: bool) -> Npus:
    """The NPUs; if they are to be ``equal``, all claim tuples ahead where one of them does."""
    claims = equal and any(npu.sequencer.aheads for npu in npus)
    return tuple(map(_claiming, npus)) if claims else tuple(npus)


def _claiming(npu: Npu) -> Npu:
    """The NPU with a table of tuples that are claimed ahead."""
    return npu.changed(aheads=flat.LEAST["aheads"])


def _with_skip_stores(npus: Npus, plans: Sequence[Plan], stream_bits: int, sizing: Sizing) -> Npus:
    """The NPUs with their skip stores so large that no plan ever fills one; all as large as the largest if the NPUs are
    to be equal."""
    if not any(npu.has_skip for npu in npus):
        return npus
    using = [plan for plan in plans if any(way.skips for way in plan.ways.values())]
    systems = [_Keyed(each.key, each) for each in (system(plan, npus, stream_bits=stream_bits) for plan in using)]
    words = [max(column) for column in zip(*(_skip_words(each, sizing.frames) for each in systems))]
    return with_skip_words(npus, [max(words)] * len(words) if sizing.equal else words)


def with_skip_words(npus: Npus, words: Sequence[int]) -> Npus:
    """The NPUs with skip stores of so many words: without one where that is 0, but for those that keep integers for
    additions, which have the least."""
    least = flat.LEAST["skip_words"]
    return tuple(npu.changed(skip_words=max(count, least * npu.keeps_steps)) for npu, count in zip(npus, words))


@dataclass(frozen=True)
class _Keyed:
    """A system that is found again in the cache of `_skip_words` by what it does."""

    key: tuple[object, ...]
    system: System = field(compare=False)


@lru_cache(maxsize=64)
def _skip_words(keyed: _Keyed, frames: int) -> tuple[int, ...]:
    """`smooth_skips` of a system. Slices of a layer, and blocks of a network, are often alike."""
    return tuple(smooth_skips(keyed.system, frames))


def _spill_words(plans: Sequence[Plan], npus: Sequence[Npu], stream_bits: int, sizing: Sizing) -> int:
    """Words of the spill store for all plans; 0 where the NPUs are no closed ring."""
    if "ring" not in npus[0].ports.inlets:
        return 0
    if sizing.spill_words is not None:
        return sizing.spill_words
    return max(LEAST_SPILL_WORDS, *(_spill(plan, npus, stream_bits, sizing.frames) for plan in plans))


def _spill(plan: Plan, npus: Sequence[Npu], stream_bits: int, frames: int) -> int:
    """Words of the spill store in which no NPU ever waits for room."""
    if not plan.needs[0].needs.from_ring_words:
        return 0
    return smooth(system(plan, npus, stream_bits=stream_bits), frames)


def _fit(folding: Npu, npu_needs: Sequence[NpuNeeds], sizing: Sizing) -> Npu:
    """The NPU with memories for what each network needs of it, and with margins for networks of other weights."""
    npu = fitted(folding, npu_needs)
    return npu.changed(stream_weights=sizing.stream_weights, **margins(npu, npu_needs))


def _streamed(plan: Plan, n: int, npu: Npu) -> NpuNeeds:
    """Needs of a network where weights are streamed to NPU ``n``."""
    need = plan.needs[n]
    return replace(need, needs=streamed(need.needs, npu, 0 if n else plan.frame.frame_layout.words))
