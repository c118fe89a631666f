"""Graphs of layers, depthwise convolutions, window formers, shared multipliers and several networks in the search."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bitloom.golden import file
from bitloom.golden.network import Model
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.estimate import estimate_cores
from bitloom.overlay.cli.found_designs import blocks_of
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.demands import layers
from bitloom.overlay.explore.figures import figures
from bitloom.overlay.explore.one_npu import MappedNpu, NpuChoices, saving
from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.search import Effort, Explored, explore, varied
from bitloom.overlay.explore.stores_in_use import run_flow
from bitloom.overlay.explore.task import FEW_NPUS, Connection, Task
from bitloom.overlay.explore.tries import Row, Tries
from bitloom.overlay.explore.variations import SETTINGS, MapSetting
from bitloom.overlay.study.mlperf_tiny import NPU as BY_HAND
from bitloom.overlay.study.mlperf_tiny import entry
from tests.commands import call
from tests.errors import value_error
from tests.hls_gen.compiler.graph_cases import residual as residual_of
from tests.networks import random_model

from .fronts import FRONTS, lines
from .test_variety import simulated

QUICK = Effort(points=2, halvings=0)
COUNTERS = MapSetting("raster", counters=True)


def network(name: str, text: str, source: str = "9x8x3 s8") -> Model:
    return random_model(residual_of(text, source=source, name=name), 1, 32)


def residual() -> Model:
    """A shortcut with a convolution of stride 2."""
    way = "conv_1 @input 8 3, conv_2 act_1 8 3 2, conv_3 act_2 8"
    shortcut = "conv_4 act_1 8 stride=2, add_5 act_4 act_3"
    return network("residual", f"{way}, {shortcut}, conv_6 add_5 6, dense_7 5 s8")


def separable() -> Model:
    """Two depthwise convolutions."""
    first = "conv_1 @input 8 3, depthwise conv_2 act_1 8 3, conv_3 act_2 12"
    return network("separable", f"{first}, depthwise conv_4 act_3 12 3 2, conv_5 act_4 8, dense_6 4 s8")


def deep() -> Model:
    """Two convolutions of 3 x 3."""
    return network("deep", "conv_1 @input 8 3, conv_2 act_1 8 3, dense_3 4 s8")


def narrow() -> Model:
    """Two depthwise convolutions, the first one of 4 channels, the second one of 32."""
    first = "conv_1 @input 4 3, depthwise conv_2 act_1 4 3, conv_3 act_2 32"
    return network("narrow", f"{first}, depthwise conv_4 act_3 32 3, conv_5 act_4 8, dense_6 4 s8", "24x16x3 s8")


MODELS = {"residual": residual, "separable": separable}
LINED = {
    "deep": (deep, 330, {"line_taps": 3}),
    "separable": (separable, 330, {"pool_line_taps": 3}),
    "narrow": (narrow, 6_700, {"pool_line_taps": 3, "pool_lane_lines": 2}),
}
"""Networks, a short interval, and what takes several taps in a design that keeps to it."""


def chosen(mapped_npus: Sequence[MappedNpu], name: str) -> set[Any]:
    """The values of that name that the NPUs have."""
    return {mapped_npu.npu.value(name) for mapped_npu in mapped_npus}


@pytest.mark.parametrize("name", ["deep", pytest.param("separable", marks=pytest.mark.slow), "narrow"])
def test_several_taps_a_beat_where_one_is_too_slow(name: str) -> None:
    """At a long interval each NPU takes a tap a beat; at a short one an array, or a pool unit, takes a line of the
    kernel, or two where channels are few."""
    model, short, several = LINED[name]
    tries = Tries(model(), Budget(), 64, SETTINGS)
    connection = Connection(tries.engines[0])
    slow, fast = (tries.mapped_npus(Task(connection, COUNTERS, interval, FEW_NPUS)) for interval in (200_000, short))
    assert slow is not None
    assert fast is not None
    assert all(chosen(slow, value) == {1} for value in several)
    assert any(all(each.npu.value(value) == number for value, number in several.items()) for each in fast)


def test_lines_share_lanes_in_a_design_that_is_found() -> None:
    """The design is faster than without them, and than with two lines in half as many lanes each; with two lines in as
    many lanes each it would be larger."""
    tries = Tries(narrow(), Budget(), 64, SETTINGS)
    (sharing,) = tries.mapped_npus(Task(Connection(tries.engines[0]), COUNTERS, 6_700, FEW_NPUS)) or ()
    found = tries.candidate([sharing], COUNTERS)
    one_line = {"pool_lane_lines": 1}
    two_lines = {**one_line, "pool_lines": 2}
    changes = ({}, one_line, {**two_lines, "pfp": sharing.npu.value("pfp") // 2}, two_lines)
    designs = [replace(found, npus=(found.npus[0].changed(**values),)) for values in changes]
    each = [f for f in (figures(tries.model, design) for design in designs) if f]
    cycles, luts = [f.cycles for f in each], [f.lut for f in each]
    assert len(each) == len(designs)
    assert cycles[0] < min(cycles[1:3])
    assert luts[0] < luts[3]


def test_an_array_takes_lines_where_a_kernel_has_some() -> None:
    """The first layer reads the frame, which comes tap by tap; the last one has a kernel of one tap."""
    choices = NpuChoices(layers(deep(), "raster"), 64)
    taps = [{npu.array.line_taps for npu in choices.bare((i,))} for i in range(len(choices.layers))]
    assert taps == [{1}, {1, 3}, {1}]


@pytest.mark.slow
@pytest.mark.parametrize("name", LINED)
def test_several_taps_a_beat_simulate(name: str, tmp_path: Path) -> None:
    """Bit for bit, in the cycles that were told."""
    tries = Tries(LINED[name][0](), Budget(), 64, SETTINGS)
    fast = tries.mapped_npus(Task(Connection(tries.engines[0]), COUNTERS, LINED[name][1], FEW_NPUS))
    assert fast is not None
    simulated(tmp_path, tries.candidate(fast, COUNTERS), tries.model)


@cache
def searched(make: Callable[[], Model], dsp: int) -> Explored:
    """Results of the search for a network and so many DSP blocks."""
    return explore(make(), Budget(lut=20_000, dsp=dsp), map_order="raster", effort=QUICK)


@pytest.mark.parametrize("name", ["residual", pytest.param("separable", marks=pytest.mark.slow)])
def test_what_a_graph_gets(name: str) -> None:
    """With few DSP blocks: window former, shared multipliers, and the blocks that the network has a use for."""
    model = MODELS[name]()
    explored = searched(MODELS[name], {"residual": 100, "separable": 60}[name])
    assert lines(explored.front) == FRONTS[name]
    assert explored.best is not None
    candidate = Candidate.from_dict(json.loads(json.dumps(explored.best.candidate.to_dict())))
    assert figures(model, candidate, candidate.design(model)) == explored.best.figures
    blocks = {block for npu in candidate.npus for block in blocks_of(npu)}
    wanted = {"residual": {"window former"}, "separable": {"depthwise pool unit"}}
    wanted = {kind: {*parts, "2 kernels a multiplier"} for kind, parts in wanted.items()}
    assert wanted[name] <= blocks
    additions = {"additions in LUTs"} if name == "residual" else set()
    assert {"window former", "shared multipliers"} | additions <= {*explored.varied}
    assert len(explored.layers) == len(candidate.mapping) == {"residual": 6, "separable": 4}[name]


def test_layers_between_a_fork_and_its_join_stay_on_an_npu() -> None:
    """In chains that the search cuts; mappings with copies are ways of their own."""
    tries = Tries(residual(), Budget(), 64, SETTINGS[:1])
    mapped_npus = tries.mapped_npus(Task(Connection(tries.engines[0]), SETTINGS[0], 1_000, Price(npu=-10_000)))
    assert mapped_npus is not None
    assert [mapped_npu.indices for mapped_npu in mapped_npus] == [(0, 1, 2, 3), (4,), (5,)]


def test_where_dsp_blocks_are_dear() -> None:
    """PEs share multipliers as far as products fit, and LUTs multiply in additions."""
    npu = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, acc_bits=32, kgp=4, skip_words=2)
    assert list(saving(npu, saves_dsp=False)) == [npu]
    plain, shared, in_luts = saving(npu, saves_dsp=True)
    assert (plain, shared) == (npu, npu.changed(kernels_per_multiplier=2))
    assert in_luts == shared.changed(lut_products=("addition",))
    narrow = npu.changed(feature_bits=4, weight_bits=4, kgp=2, skip_words=0)
    assert [one.array.kernels_per_multiplier for one in saving(narrow, saves_dsp=True)] == [1, 2], (
        "as many as there are kernels"
    )
    dsp = [estimate_cores(one, 64, [one.array.kernel_ram])[0].dsp for one in (plain, shared, in_luts)]
    assert dsp[0] - dsp[1] == 16, "a multiplier for two products: half of 8 x 4"
    assert dsp[1] - dsp[2] == 2, "two products of an addition"


@pytest.mark.slow
def test_streamed_weights_as_asked() -> None:
    for asked, streamed in (("never", {False}), ("always", {True})):
        effort = replace(QUICK, streamed_weights=asked)
        explored = explore(residual(), Budget(lut=20_000), map_order="raster", effort=effort)
        assert {row.candidate.stream_weights for row in explored.front} == streamed
        assert ("streamed weights" in explored.varied) == (asked == "always")


def test_streamed_weights_are_one_of_three() -> None:
    with value_error("explore: streamed_weights must be one of auto, never, always, got 'sometimes'"):
        Effort(streamed_weights="sometimes")


def ring_of_two(models: list[Model]) -> Row:
    """The first try of the search on a ring of two NPUs."""
    tries = Tries(models, Budget(), 64, SETTINGS[1:2], [False])
    connection = next(
        each for each in tries.connections.possible if each.closed and each.mapping and max(each.mapping) == 1
    )
    assert connection.mapping == (0, 1, 0, 1, 0, 1, 0, 1, 0, 1), "six layers, and four: layer after layer"
    row = tries.rows(Task(connection, SETTINGS[1], 2_500, FEW_NPUS))[0]
    assert (row.candidate.topology, row.candidate.also) == ("ring of 2", ("separable",))
    return row


def test_several_networks_go_round_a_ring() -> None:
    """Each with its own mapping; cycles are sums of those of the flow model, and files say all of the design."""
    models = [residual(), separable()]
    row = ring_of_two(models)
    candidate = Candidate.from_dict(json.loads(json.dumps(row.candidate.to_dict())))
    design = candidate.design(models[0], also=models[1:])
    each = {one.network.name: run_flow(one, candidate.choices, design)[0].cycles_per_frame for one in models}
    assert (dict(row.figures.each), row.figures.cycles) == (each, sum(each.values()))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "models",
    [pytest.param(["residual"], marks=pytest.mark.slow), ["residual", "separable"]],
    ids="-".join,
)
def test_the_nearest_design_of_graphs_is_known(models: list[str]) -> None:
    """Also where all that the search knows of is far over the budget, so that no run of the flow model was worth it."""
    budget = Budget(bram36=0.5, lut=1_000)
    explored = explore([MODELS[name]() for name in models], budget, map_order="raster", effort=QUICK)
    assert explored.best is None
    assert explored.nearest is not None
    assert budget.excess(explored.nearest.figures).keys() == {"bram36", "lut"}
    assert lines([explored.nearest]) == FRONTS[f"{'-'.join(models)}, nearest"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dsp"), [("residual", 4), pytest.param("separable", 6, marks=pytest.mark.slow)])
def test_the_nearest_design_has_less_of_what_is_over(name: str, dsp: int) -> None:
    """Prices of DSP blocks rise before it is known that nothing fits."""
    model = MODELS[name]()
    budget = Budget(dsp=1)
    explored = explore(model, budget, map_order="raster", effort=QUICK)
    tries = Tries(model, budget, 64, SETTINGS[1:])
    mapped_npus = tries.mapped_npus(Task(tries.connections.possible[0], tries.first, 1 << 20, FEW_NPUS))
    assert explored.nearest is not None
    assert mapped_npus is not None
    assert explored.nearest.figures.area.dsp == dsp < tries.over(tries.candidate(mapped_npus, tries.first))["dsp"]


def test_several_networks_get_chains() -> None:
    tries = Tries([residual(), separable()], Budget(), 64, SETTINGS[1:2], [False])
    chains = [each for each in tries.connections.possible if each.mapping is not None and not each.closed]
    assert chains
    rows = [row for connection in chains for row in tries.rows(Task(connection, SETTINGS[1], 2_500, FEW_NPUS))[:1]]
    assert rows
    for row in rows:
        assert len(row.candidate.npus) > 1
        assert not row.candidate.closed
    assert any(words.startswith("rings of 2 and 3") for words in varied(tries))


@pytest.mark.slow
def test_a_ring_of_several_networks_simulates(tmp_path: Path) -> None:
    """Bit for bit, in the cycles of the flow model."""
    models = [residual(), separable()]
    simulated(tmp_path, ring_of_two(models).candidate, *models)


@pytest.mark.slow
def test_several_networks_get_one_design(tmp_path: Path) -> None:
    """Cycles are those of a frame of each; build wants all networks of the file."""
    models = [residual(), separable()]
    for model in models:
        file.save(model, tmp_path / f"{model.network.name}.npz")
    paths = [str(tmp_path / f"{model.network.name}.npz") for model in models]
    saved = tmp_path / "foldings.json"
    options = [
        "--lut",
        "15000",
        "--dsp",
        "40",
        "--points",
        "2",
        "--halvings",
        "0",
        "--map-order",
        "raster",
        "--json",
        "--save",
    ]
    words = ["explore", *paths, *options, str(saved)]
    result = call(*words)
    assert result.exit_code == 0, result.output
    best = json.loads(result.stdout)["best"]
    candidate = Candidate.load(saved, models[0], models[1:])
    assert (candidate.also, candidate.npus[0].depthwise) == (("separable",), True)
    design = candidate.design(models[0], also=models[1:])
    each = {one.network.name: run_flow(one, candidate.choices, design)[0].cycles_per_frame for one in models}
    assert best["cycles_by_network"] == each
    assert best["cycles_per_frame"] == sum(each.values())
    refused = call("build", paths[0], "--foldings", saved)
    assert str(refused.exception) == (
        f"bitloom: {saved}: these foldings are also for separable, which must be given, got none"
    )


def test_one_npu_of_several_networks_keeps_to_the_budget() -> None:
    """At the price of LUTs alone, where the cheapest one would take too many DSP blocks."""
    models = [residual(), separable()]
    areas = list[tuple[int, int]]()
    for budget in (Budget(), Budget(dsp=40)):
        tries = Tries(models, budget, 64, SETTINGS[2:])
        mapped_npus = tries.mapped_npus(Task(tries.connections.possible[0], COUNTERS, 3_000, FEW_NPUS))
        assert mapped_npus is not None
        npu = mapped_npus[0].npu
        (area,) = estimate_cores(npu, 64, [npu.array.kernel_ram])
        areas.append((area.dsp, area.device_lut))
    (plain, cheap), (few, dear) = areas
    assert few <= 40 < plain
    assert cheap < dear


@pytest.mark.slow
def test_mlperf_tiny_gets_more_than_was_found_by_hand() -> None:
    """Four networks on one design within a budget, in fewer cycles than a hand-made NPU that keeps to it: that of the
    benchmark with fewer PEs and a tap a beat. With several taps in the pool unit, that NPU is over the budget."""
    model, *also = [entry(name).model for name in ("ic", "kws", "vww", "ad")]
    budget = Budget(lut=30_000, dsp=150, bram36=135)
    best = explore([model, *also], budget).best
    assert best is not None
    smaller = {"kfp": 16, "kgp": 16, "ol": 4, "lut_products": ("addition",), "pool_scale_ram": "block"}
    npu = BY_HAND.changed(line_taps=1, pool_line_taps=1, **smaller)
    by_hand = figures(model, replace(best.candidate, npus=(npu,), map_order="raster"), also=also)
    assert by_hand is not None
    assert budget.holds(by_hand)
    assert best.figures.cycles < by_hand.cycles


@pytest.mark.slow
@pytest.mark.parametrize("names", [["residual"], ["separable"], ["residual", "separable"]], ids="-".join)
def test_what_is_found_simulates(names: list[str], tmp_path: Path) -> None:
    """Bit for bit, in the cycles that were told."""
    models = [MODELS[name]() for name in names]
    best = explore(models, Budget(lut=15_000, dsp=40), effort=QUICK).best
    assert best is not None
    simulated(tmp_path, best.candidate, *models)
    assert figures(models[0], best.candidate, also=models[1:]) == best.figures
