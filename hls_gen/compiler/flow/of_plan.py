"""Flow model of a plan (hls_gen.compiler.plan): its layers, and the NPUs of a design."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer
from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu

from .layer import FlowLayer, Reading
from .system import System, Unit
from .weights import WeightPacket


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
    made = tuple(replace(layer, streamed=i in streamed) for i, layer in enumerate(layers(plan, npus)))
    engines = [npu.engine for npu in npus]
    to_bits = [pair == ("integer", "binary") for pair in zip(engines, (*engines[1:], engines[0]))]
    units = tuple(replace(unit(npu), to_bits=bits) for npu, bits in zip(npus, to_bits))
    return System(
        units=units,
        layers=made,
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
        kfp=npu.kfp,
        pfp=npu.pfp if npu.pool else 0,
        ol=npu.ol,
        word_bits=npu.word_bits,
        host_word_bits=npu.host_word_bits,
        tuple_words=npu.tuple_words,
        pool_words=npu.pool_words,
        map_words=npu.map_words,
        buffer_words=npu.buffer_words if "ring" in npu.inlets else 0,
        accumulators=npu.accumulators,
        array_latency=timing.array_latency(npu),
        activation_latency=timing.activation_latency(npu),
        pool_latency=timing.pool_latency(npu),
        pool_room=timing.pool_room(npu),
        binariser=npu.binariser_bits > 0,
        one_memory=npu.one_memory,
        skip_words=npu.skip_words,
        keeps_steps=npu.keeps_steps,
        skips_onward=bool(npu.skips_onward),
        addition_latency=timing.addition_latency(npu),
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
    tables, out = iter(plan.schedule.tables), list[FlowLayer]()
    chunks = [iter(npu.chunks) for npu in plan.npus]
    rows = [iter(zip(npu.conv.layers, npu.results)) for npu in plan.npus]
    input_rows = [iter(npu.conv.inputs) for npu in plan.npus]
    pool_rows = [iter(npu.pool.layers) for npu in plan.npus]
    lowered: Sequence[LoweredLayer] = plan.lowered.layers
    on = {p.name: n for p, n in zip(lowered, plan.mapping)}  # lowered layer -> its NPU
    from_skip = {way.skip_reader: name for name, way in plan.ways.items() if way.skip_reader}
    for p, n in zip(lowered, plan.mapping):
        row, after = next(rows[n])
        levels = after["levels_minus_1"] + 1
        inner = row.get("inner_groups_minus_1", 0) + 1
        source = next(input_rows[n])
        skipped = from_skip.get(p.name)
        pool_row = next(pool_rows[n]) if npus[n].pool and not p.raw else None
        out.append(
            FlowLayer(
                name=p.name,
                reading=reading(next(tables), row, p.visits, skips=not npus[n].aheads),
                groups=(after["groups_minus_1"] + 1) // inner,
                inner=inner,
                steps=npus[n].units * levels,
                last_steps=(after["last_units_minus_1"] + 1) * levels,
                pool=reading(next(tables), pool_row, 1) if p.pool and pool_row else None,
                raw=p.raw,
                chunk_words=next(chunks[n]) if on.get(p.reads, n) != n else None,
                reads=None if p.reads == INPUT else p.joins if p.joins and skipped == p.reads else p.reads,
                from_skip=skipped is not None and p.joins is None,
                joins=skipped if p.joins else None,
                joined_words=(source["first_words_minus_1"] + 1, source["second_words_minus_1"] + 1)
                if p.joins
                else (0, 0),
                adds=p.adds,
            )
        )
    return out


def reading(tables: StageTables, row: Mapping[str, int], visits: int, skips: bool = True) -> Reading:
    """How a sequencer reads a map.

    Parameters
    ----------
    tables
        The map's schedule.
    row
        The layer's row of the sequencer's memory ``layers``, by field.
    visits
        Beats of each word at a tap.
    skips
        Whether tables have a skip for each tuple that a tap claims beside its own.

    Returns
    -------
    Reading
        What counts of them for the flow.
    """
    words = row["words_minus_1"] + 1
    claiming = np.flatnonzero(tables.advance)
    return Reading(
        words=words,
        taps=np.bincount(tables.window) * visits,
        claiming=claiming * visits,
        claims=tables.advance[claiming],
        hold_tuples=row["hold_words"] // words,
        skips=skips and not row.get("by_counters", 0),
        ends_old=not tables.new[claiming[-1]],
        part_words=row.get("part_words_minus_1", -1) + 1,
    )
