"""Flow model of a plan (hls_gen.compiler.plan): its layers, and the NPUs of a design by their manifest's parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.hls_gen.compiler.passes import IntegerPass, Pass
from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.schedule import StageTables

from .layer import Layer, Reading
from .system import System, Unit

Parameters = Mapping[str, Any]

POPCOUNT_LANES = 64
"""Lanes that a PE counts in one stage (hls_gen/rtl/array/pe.py)."""
SUM_TERMS = 4
"""Terms that a stage of an integer PE adds (hls_gen/rtl/array/pe_integer.py)."""


def system(plan: Plan, npus: Sequence[Parameters], *, stream_bits: int = 32, spill_words: int | None = 0) -> System:
    """The system of NPUs with these parameters that runs ``plan``."""
    made = tuple(layers(plan, npus))
    kinds = [str(parameters["engine"]) for parameters in npus]
    to_bits = [pair == ("integer", "binary") for pair in zip(kinds, (*kinds[1:], kinds[0]))]
    units = tuple(replace(unit(parameters), to_bits=bits) for parameters, bits in zip(npus, to_bits))
    return System(
        units=units, layers=made, mapping=tuple(plan.mapping), spill_words=spill_words, stream_bits=stream_bits
    )


def unit(parameters: Parameters) -> Unit:
    """Widths, capacities and latencies of an NPU by itself."""
    kfp, integer = int(parameters["kfp"]), parameters["engine"] == "integer"
    feature_bits, binariser = int(parameters["feature_bits"]), int(parameters["binariser_bits"])
    return Unit(
        kfp=kfp,
        pfp=int(parameters["pfp"]) if parameters["pool"] else 0,
        ol=int(parameters["ol"]),
        word_bits=kfp * feature_bits,
        host_word_bits=kfp * (binariser or feature_bits),
        tuple_words=int(parameters["tuple_words"]),
        pool_words=int(parameters["pool_words"]),
        map_words=int(parameters["map_words"]),
        buffer_words=int(parameters["buffer_words"]) if "ring" in parameters["inlets"] else 0,
        accumulators=int(parameters["accumulators"]),
        array_latency=1 + pe_latency(parameters),
        activation_latency=6 if integer else 1,
        pool_latency=5 if integer else 1,
        pool_room=13 if integer else 11,
        binariser=binariser > 0,
    )


def pe_latency(parameters: Parameters) -> int:
    """Cycles from a window's last word to the result of a PE (hls_gen/rtl/array/convolver.py)."""
    kfp, collect, planes = (int(parameters[name]) for name in ("kfp", "collect", "planes"))
    if parameters["engine"] == "integer":
        stages, terms = 1, -(-kfp // SUM_TERMS)
        while terms > 1:
            stages, terms = stages + 1, -(-terms // SUM_TERMS)
        return 3 + stages
    if parameters["accumulate"] == "or":
        return 2
    counted = collect or kfp
    if planes:
        size = kfp // (planes + 1)
        counted = max(2 * size, kfp - planes * size)  # group 0 has the constant lanes too, the last one the spare ones
    return 3 if counted <= POPCOUNT_LANES else 4


def layers(plan: Plan, npus: Sequence[Parameters]) -> list[Layer]:
    """The layers of ``plan``, each on its NPU."""
    tables, out = iter(plan.schedule.tables), list[Layer]()
    chunks = [iter(npu.chunks) for npu in plan.npus]
    rows = [iter(zip(npu.conv.layers, npu.results)) for npu in plan.npus]
    pool_rows = [iter(npu.pool.layers) for npu in plan.npus]
    passes: Sequence[Pass | IntegerPass] = plan.lowered.passes
    for i, (p, n) in enumerate(zip(passes, plan.mapping)):
        row, after = next(rows[n])
        units, levels = -(-int(npus[n]["kgp"]) // int(npus[n]["ol"])), after["levels_minus_1"] + 1
        inner = row.get("inner_groups_minus_1", 0) + 1
        pool_row = next(pool_rows[n]) if npus[n]["pool"] and not p.raw else None
        out.append(
            Layer(
                name=p.name,
                reading=reading(next(tables), row, p.visits),
                groups=(after["groups_minus_1"] + 1) // inner,
                inner=inner,
                steps=units * levels,
                last_steps=(after["last_units_minus_1"] + 1) * levels,
                pool=reading(next(tables), pool_row, 1) if p.pool and pool_row else None,
                raw=p.raw,
                chunk_words=next(chunks[n]) if i and plan.mapping[i - 1] != n else None,
            )
        )
    return out


def reading(tables: StageTables, row: Mapping[str, int], visits: int) -> Reading:
    """How a sequencer reads a map. row : of its memory ``layers``.  visits : beats of each word at a tap."""
    words = row["words_minus_1"] + 1
    claiming = np.flatnonzero(tables.new)
    return Reading(
        words=words,
        taps=np.bincount(tables.window) * visits,
        claiming=claiming * visits,
        claims=tables.advance[claiming],
        hold_tuples=row["hold_words"] // words,
        skips=not row.get("by_counters", 0),
    )
