"""The project's main property: for every legal folding, the hardware equals the golden model and the flow model.

Designs run every network that is drawn for them (the table: board_cases.py), through the pynq driver on the virtual
board: results are golden's, with and without pauses of the host's streams, and without pauses every cycle and every
count is the flow model's. What the compiler refuses as a deadlock stops in hardware, too.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from bitloom.golden.network import Model
from bitloom.golden.window import BESIDE
from bitloom.hls_gen.compiler.actions import Addition, UnitAction
from bitloom.hls_gen.compiler.choices import CompileChoices, Dataflow
from bitloom.hls_gen.compiler.engine_form import engine_form_of
from bitloom.hls_gen.compiler.lowering import lowered_for
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.compiler.segments import SHORTCUTS, segments
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.virtual.sim import lint
from tests.rows import npu_rows
from tests.simulated import BLOCKED, Comparison, check_blocked, compare, tally

from .board_cases import CASES, BoardCase, NetworkKind

QUICK = [name for name, case in CASES.items() if case.quick]
MOST = 40
"""Networks of a case that the default tier draws at most."""
CHUNKED = {"pull": "", "raster": "rows", "columns": "columns:1"}
"""The choice ``chunk`` of lines of a map, by the map's order."""
UNUSED = re.compile(
    r".*: (Signal is not used: '(start_row|skipped_ready|signs_skip_data|layer_words_minus_1)'"
    r"|Bits of signal are not used: '(part_\w+|merged)'\[0\])"
)
"""Lint's messages on pool units with weights, of multipliers that several kernels share, of the ends of a chain that
keeps steps onward, and of tuples that are read in parts; all else must be silent."""


def check(case: BoardCase, pick: Pick) -> set[str]:
    """Words for what became of a network that is drawn: ``unfit``, ``stuck``, or ``exact`` and what it used."""
    design, kind = case.design, case.kind
    drawn = kind.draw(pick, design)
    if drawn is None:
        return {"unfit"}
    model, mapping = drawn
    choices = drawn_choices(kind, design, mapping, pick)
    pauses = {"source": (0.0, 0.4), "sink": kind.reader_pauses}
    stalls = {stream: pick.of(shares) for stream, shares in pauses.items()}
    seed = pick.seed()
    frames = max(kind.batches)
    if len(design.npus) == 1 and design.npus[0].has_skip:
        choices = replace(choices, shortcuts=SHORTCUTS[seed % 2])
    if len(design.npus) == 1 and design.npus[0].depthwise:
        choices = replace(choices, copy_depthwise=seed % 4 < 2)
    batch = pick.integer(1, frames) if design.npus[0].loader.stream_weights else frames
    with kind.surroundings(pick):
        try:
            choices = replace(choices, dataflow=suited(choices, design, model))
            pauses = {"batches": kind.batches, "stalls": stalls, "stalled_batch": batch}
            comparison = compare(design, model, choices, **pauses, seed=seed)
        except ValueError as e:
            if BLOCKED.fullmatch(str(e)):
                check_blocked(design, model, choices, str(e), **stalls, seed=seed)
                return {"stuck", "exact or stuck"}
            if not any(rule in str(e) for rule in kind.refusals):
                raise
            return {"unfit"}
    return {"exact", "exact or stuck", *(uses(design, model, choices, comparison) or ["plain"])}


def drawn_choices(kind: NetworkKind, design: Design, mapping: list[int] | None, pick: Pick) -> CompileChoices:
    """Choices for a network."""
    raster = any(npu.sequencer.raster for npu in design.npus)
    order = "raster" if raster else pick.of(kind.orders)
    chunks = [chunk for chunk in kind.chunks if chunk != "lines" or len(design.npus) > 1]
    dataflow = "output_stationary"
    chunk = pick.of(chunks)
    accumulators = [npu.array.accumulators for npu in design.npus]
    if max(accumulators) > 1:
        dataflows = ["output_stationary", "auto", *(["input_stationary:2"] if min(accumulators) > 1 else [])]
        dataflow = pick.of(dataflows)
    text = CHUNKED[order] if chunk == "lines" else f"tuples:{chunk}" if chunk and len(design.npus) > 1 else ""
    return CompileChoices(map_order=order, dataflow=dataflow, mapping=mapping, chunk=text)


def suited(choices: CompileChoices, design: Design, model: Model) -> Dataflow:
    """The dataflow, but input_stationary:2 only of layers whose kernel groups it divides."""
    if choices.dataflow != "input_stationary:2":
        return choices.dataflow
    lowered = lowered_for(model, design.npus, choices)
    groups = {p.name: design.npus[n].array.groups(p.out_channels) for p, n in zip(lowered.layers, lowered.mapping)}
    return {name: "input_stationary:2" for name, count in groups.items() if count % 2 == 0}


def uses(design: Design, model: Model, choices: CompileChoices, comparison: Comparison) -> list[str]:
    """Words for what a network made use of."""
    network_plan = comparison.plan
    layers = network_plan.lowered.layers
    parts = 0
    if design.npus[0].sequencer.tuple_parts:
        parts = layers_with_fewer_beats(design, model, choices, comparison)
    used = {
        "copies": any(is_copy(layer.name) for layer in layers),
        "depthwise": any(layer.depthwise is not None for layer in layers),
        "behind copies": any(layer.depthwise is not None and layer.name.endswith("_copy") for layer in layers),
        "lines": any(layer.split_pool for layer in layers),
        "shared lanes": any(map(_shares_lanes, network_plan.layers)),
        "array lines": any(planned.layer.former_taps and not planned.formed for planned in network_plan.layers),
        "growth": any(layer.window.window.growth != (1, 1) for layer in layers),
        **{side: any(layer.window.window.beside == side for layer in layers) for side in BESIDE[1:]},
        "products": any((addition := layer.action(Addition)) and addition.of_layer["multiplies"] for layer in layers),
        "lookups": any(layer.action(UnitAction) is not None for layer in layers),
        "passes": any(1 < planned.inner < planned.groups for planned in network_plan.layers),
        "formed": network_plan.formed(0) is not None,
        "rows together": (windows := network_plan.formed(0)) is not None and windows.together > 1,
        "formed behind": any(network_plan.formed(n) for n in range(1, len(design.npus))),
        "onward": any(way.skip_npu is not None for way in network_plan.ways.values()),
        "outputs": len(network_plan.outputs) > 1,
        "shortcut last": choices.shortcuts == "last" and any(layer.adds for layer in layers) and _orders_differ(model),
        "both engines": len({design.npus[n].engine for n in network_plan.mapping}) == 2,
        "streamed": len(comparison.program.weights) > 0,
        "parts": parts > 0,
        "several parts": parts > 1,
    }
    return [word for word, there in used.items() if there]


def _shares_lanes(planned: PlannedLayer) -> bool:
    """Whether lines of a pool's kernel share lanes."""
    unit = planned.npu.pool_unit
    pool = planned.on_pool_unit
    return bool(unit and pool and pool.lines and unit.beat.shares_lanes(pool.lines.window))


def _orders_differ(model: Model) -> bool:
    """Whether a network has a shortcut that may come last."""
    orders = [[segment.name for segment in segments(engine_form_of(model.network), None, how)] for how in SHORTCUTS]
    return orders[0] != orders[1]


def layers_with_fewer_beats(design: Design, model: Model, choices: CompileChoices, comparison: Comparison) -> int:
    """How many layers take fewer beats than if kernel groups read whole tuples, with zeros for the other groups. The
    NPU has fewer kernel rows where there is such a layer, and as many else."""
    zeros = plan(model, [npu.changed(tuple_parts=0) for npu in design.npus], choices)
    fewer = [beats < whole for (_, beats), (_, whole) in zip(comparison.plan.ideal, zeros.ideal)]
    rows = [sum(layer.count("kernels") for layer in npu_rows(each)) for each in (comparison.plan, zeros)]
    assert (rows[0] < rows[1]) == any(fewer)
    return sum(fewer)


def check_words(words: Counter[str], least: Mapping[str, int]) -> None:
    """Each word occurred as often as it must."""
    assert {word: words[word] for word, count in least.items() if words[word] < count} == {}


@pytest.mark.many_cycles
@pytest.mark.parametrize("name", QUICK)
def test_random_networks(name: str) -> None:
    case = CASES[name]
    check_words(tally(partial(check, case), MOST, case.quick), case.quick)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_random_networks(name: str) -> None:
    case = CASES[name]
    assert [line for line in lint(generate(case.design).text) if not UNUSED.fullmatch(line)] == []
    check_words(tally(partial(check, case), case.many), case.least)
