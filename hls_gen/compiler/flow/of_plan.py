"""Flow model of a plan (hls_gen.compiler.plan): its layers, and the NPUs of a design."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.input_maps import is_input
from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.compiler.sequencer_taps import OnSequencer
from bitloom.hls_gen.design.npu import Npu

from .layer import FlowLayer, Reading
from .loader import WeightPacket
from .system import FlowNpu, System


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
    flow_layers = tuple(replace(layer, streamed=i in streamed) for i, layer in enumerate(layers(plan)))
    engines = [npu.engine for npu in npus]
    to_bits = [pair == ("integer", "binary") for pair in zip(engines, (*engines[1:], engines[0]))]
    skip_words = (npu.value("skip_words") for npu in npus)
    flow_npus = (
        FlowNpu(npu=npu, skip_words=words, to_bits=bits) for npu, words, bits in zip(npus, skip_words, to_bits)
    )
    return System(
        npus=tuple(flow_npus),
        layers=flow_layers,
        mapping=tuple(plan.mapping),
        spill_words=spill_words,
        stream_bits=stream_bits,
        weights=tuple(weights),
        weights_before=weights_before,
    )


def layers(plan: Plan) -> list[FlowLayer]:
    """The layers of a plan, each as its NPU sees it.

    Parameters
    ----------
    plan
        The network's plan.

    Returns
    -------
    list of FlowLayer
        In the network's order.
    """
    on = {planned.layer.name: planned.number for planned in plan.layers}
    from_skip = {way.skip_reader: name for name, way in plan.ways.items() if way.skip_reader}
    return [_layer(planned, on, from_skip.get(planned.layer.name)) for planned in plan.layers]


def _layer(planned: PlannedLayer, on: Mapping[str, int], skipped: str | None) -> FlowLayer:
    """A layer on its NPU; ``on`` has the NPU of each layer, and ``skipped`` is the map that this one reads
    from the skip store, if any."""
    layer = planned.layer
    part_words = planned.tuple_part.words if planned.npu.sequencer.tuple_parts else 0
    reads = layer.joins if layer.joins and skipped == layer.reads else layer.reads
    return FlowLayer(
        name=layer.name,
        reading=reading(planned.on_array, part_words),
        groups=planned.passes,
        inner=planned.inner,
        steps=planned.npu.group_steps * layer.levels,
        last_steps=planned.last_units * layer.levels,
        pool=reading(planned.on_pool_unit) if planned.on_pool_unit and layer.pool else None,
        raw=layer.raw,
        chunk_words=planned.chunk_words if on.get(layer.reads, planned.number) != planned.number else None,
        reads=INPUT if is_input(layer.reads) else reads,
        from_skip=skipped is not None and layer.joins is None,
        joins=skipped if layer.joins else None,
        joined_words=planned.read.joined_words or (0, 0),
        adds=layer.adds,
        formed=planned.formed,
    )


def reading(on: OnSequencer, part_words: int = 0) -> Reading:
    """How a sequencer reads a map.

    Parameters
    ----------
    on
        The map on the sequencer.
    part_words
        Words of a tuple that a pass reads, where the NPU can leave some out; 0: it can't.

    Returns
    -------
    Reading
        Facts of the map's reading that the flow model needs.
    """
    tables = on.taps.tables
    claiming = np.flatnonzero(tables.advance)
    return Reading(
        words=on.words,
        taps=on.taps.window_taps,
        claiming=claiming * on.taps.visits,
        claims=tables.advance[claiming],
        hold_tuples=on.counts.hold,
        has_skips=on.counts.skips > 0,
        ends_old=not tables.new[claiming[-1]],
        part_words=part_words,
        lines=on.lines,
    )
