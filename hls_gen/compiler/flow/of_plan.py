"""Flow model of a plan (hls_gen.compiler.plan): its layers, and the NPUs of a design."""

from collections.abc import Collection, Sequence

import numpy as np

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
    engines = [npu.engine for npu in npus]
    to_bits = [pair == ("integer", "binary") for pair in zip(engines, (*engines[1:], engines[0]))]
    skip_words = (npu.value("skip_words") for npu in npus)
    flow_npus = (
        FlowNpu(npu=npu, skip_words=words, to_bits=bits) for npu, words, bits in zip(npus, skip_words, to_bits)
    )
    return System(
        npus=tuple(flow_npus),
        layers=tuple(layers(plan, {packet.layer for packet in weights})),
        mapping=tuple(plan.mapping),
        spill_words=spill_words,
        stream_bits=stream_bits,
        weights=tuple(weights),
        weights_before=weights_before,
    )


def layers(plan: Plan, streamed: Collection[int] = ()) -> list[FlowLayer]:
    """The layers of a plan, each as its NPU sees it.

    Parameters
    ----------
    plan
        The network's plan.
    streamed
        Numbers of the layers whose weights come with every frame.

    Returns
    -------
    list of FlowLayer
        In the network's order.
    """
    return [_layer(planned, i in streamed) for i, planned in enumerate(plan.layers)]


def _layer(planned: PlannedLayer, streamed: bool) -> FlowLayer:
    """A layer on its NPU."""
    layer = planned.layer
    way = planned.way
    part_words = planned.tuple_part.words if planned.npu.sequencer.tuple_parts else 0
    return FlowLayer(
        name=layer.name,
        reading=reading(planned.on_array, part_words),
        groups=planned.passes,
        inner=planned.inner,
        steps=planned.npu.group_steps * layer.levels,
        last_steps=planned.last_units * layer.levels,
        pool=reading(planned.on_pool_unit) if planned.on_pool_unit and layer.pool else None,
        raw=layer.raw,
        inlet=planned.read.inlet,
        chunk_words=planned.chunk_words or 0,
        joined_words=planned.read.joined_words,
        adds=layer.adds is not None,
        outlet=way.target,
        skips=way.skips,
        is_added=way.adder is not None,
        map_words=planned.map_words,
        map_lanes=planned.output.shape[1],
        streamed=streamed,
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
