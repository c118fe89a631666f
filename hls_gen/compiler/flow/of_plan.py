"""Flow model of a plan (hls_gen.compiler.plan): its layers, and the NPUs of a design."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.compiler.tap_rows import TapRows
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.sequencer_kind import SequencerKind

from .layer import FlowLayer, Reading
from .loader import WeightPacket
from .system import System, Unit


def system(
    plan: Plan,
    npus: Sequence[Npu],
    *,
    stream_bits: int = 32,
    spill_words: int | None = 0,
    weights: Sequence[WeightPacket] = (),
    weights_before: int = 0,
) -> System:
    """The system that runs a plan.

    Parameters
    ----------
    plan
        The network's plan.
    npus
        NPUs of the design, whose foldings the plan was made for.
    stream_bits
        Width of the stream, 32 or 64.
    spill_words
        Words of the spill store on the closing edge of a ring; 0: there is none, None: without limit.
    weights, weights_before
        Packets of weights that come with every frame, and how many of them come before it.

    Returns
    -------
    System
        Its NPUs and layers.
    """
    streamed = {packet.layer for packet in weights}
    flow_layers = tuple(replace(layer, streamed=i in streamed) for i, layer in enumerate(layers(plan, npus)))
    engines = [npu.engine for npu in npus]
    to_bits = [pair == ("integer", "binary") for pair in zip(engines, (*engines[1:], engines[0]))]
    units = tuple(replace(unit(npu), to_bits=bits) for npu, bits in zip(npus, to_bits))
    return System(
        units=units,
        layers=flow_layers,
        mapping=tuple(plan.mapping),
        spill_words=spill_words,
        stream_bits=stream_bits,
        weights=tuple(weights),
        weights_before=weights_before,
        formed=plan.formed,
    )


def unit(npu: Npu) -> Unit:
    """Widths, capacities and latencies of an NPU by itself."""
    return Unit(
        kfp=npu.array.kfp,
        pfp=npu.pool_unit.pfp if npu.pool_unit else 0,
        ol=npu.results.ol,
        word_bits=npu.array.word_bits,
        host_word_bits=npu.host_word_bits,
        tuple_words=npu.sequencer.tuple_words,
        pool_words=npu.pool_unit.words if npu.pool_unit else 0,
        map_words=npu.stores.map_words,
        buffer_words=npu.ports.buffer_words if "ring" in npu.ports.inlets else 0,
        accumulators=npu.array.accumulators,
        latencies=timing.latencies(npu),
        pool_room=timing.pool_room(npu),
        binariser=npu.ports.binariser is not None,
        one_memory=npu.array.one_memory,
        skip_words=npu.stores.skip.words if npu.stores.skip else 0,
        keeps_steps=npu.keeps_steps,
        skips_onward=bool(npu.skips_onward),
        depthwise=npu.depthwise,
    )


def layers(plan: Plan, npus: Sequence[Npu]) -> list[FlowLayer]:
    """The layers of a plan, each as its NPU sees it.

    Parameters
    ----------
    plan
        The network's plan.
    npus
        NPUs of the design.

    Returns
    -------
    list of FlowLayer
        In the network's order.
    """
    on = {planned.layer.name: planned.number for planned in plan.layers}
    from_skip = {way.skip_reader: name for name, way in plan.ways.items() if way.skip_reader}
    return [_layer(planned, npus[planned.number], on, from_skip.get(planned.layer.name)) for planned in plan.layers]


def _layer(planned: PlannedLayer, npu: Npu, on: Mapping[str, int], skipped: str | None) -> FlowLayer:
    """A layer on an NPU of a design; ``on`` has the NPU of each layer, and ``skipped`` is the map that this one reads
    from the skip store, if any."""
    p = planned.layer
    taps = planned.taps
    pool = None
    if npu.pool_sequencer is not None and planned.pool is not None and planned.pool_taps is not None:
        pool = reading(npu.pool_sequencer.kind, planned.pool, planned.pool_taps, len(planned.pooled))
    return FlowLayer(
        name=p.name,
        reading=reading(
            npu.sequencer.kind,
            planned.conv,
            taps,
            planned.words,
            visits=p.visits,
            part=planned.part.words if planned.npu.sequencer.tuple_parts else 0,
        ),
        groups=planned.passes,
        inner=planned.inner,
        steps=npu.units * p.levels,
        last_steps=planned.last_units * p.levels,
        pool=pool,
        raw=p.raw,
        chunk_words=planned.chunk_words if on.get(p.reads, planned.number) != planned.number else None,
        reads=None if p.reads == INPUT else p.joins if p.joins and skipped == p.reads else p.reads,
        from_skip=skipped is not None and p.joins is None,
        joins=skipped if p.joins else None,
        joined_words=planned.read.parts or (0, 0),
        adds=p.adds,
    )


def reading(
    kind: SequencerKind, tables: StageTables, taps: TapRows, words: int, *, visits: int = 1, part: int = 0
) -> Reading:
    """How a sequencer reads a map.

    Parameters
    ----------
    kind
        How the sequencer finds and claims taps.
    tables
        The map's schedule.
    taps
        What it takes in the sequencer's memories.
    words
        Words of a tuple.
    visits
        Beats of each word at a tap.
    part
        Words of a tuple that a pass reads, where the NPU can leave some out; 0: it can't.

    Returns
    -------
    Reading
        What the flow model must know of the map's reading.
    """
    claiming = np.flatnonzero(tables.advance)
    return Reading(
        words=words,
        taps=tables.valid_taps * visits,
        claiming=claiming * visits,
        claims=tables.advance[claiming],
        hold_tuples=taps.hold,
        skips=not kind.claims_ahead and taps.counters is None,
        ends_old=not tables.new[claiming[-1]],
        part_words=part,
    )
