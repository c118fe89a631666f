"""Choices of the search beside foldings: rings, engines, map orders, counters, dataflows; its designs simulate."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.run import run
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.demands import layers
from bitloom.overlay.explore.engines import Engines
from bitloom.overlay.explore.figures import figures
from bitloom.overlay.explore.one_npu import NpuChoices
from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.ring import cheapest_ring, rings
from bitloom.overlay.explore.search import Effort, explore
from bitloom.overlay.explore.stores_in_use import run_flow
from bitloom.overlay.explore.task import candidate_of
from bitloom.overlay.explore.variations import SETTINGS, MapSetting
from tests.commands import call
from tests.errors import value_error
from tests.graph_text import network_of
from tests.networks import random_images, random_model

COUNTERS = MapSetting("raster", counters=True)
FRAMES = 4


def ends() -> Model:
    """A small network whose first and last layers have weights of 8 bits."""
    network = network_of("8x7x2 s8", "conv_1 6 2x2 s8, act_1, conv_2 8 2x3, act_2, dense 5 s8", name="ends")
    return random_model(network, 3, 32)


def kernels() -> Model:
    """A network whose kernels take most of its memory: five layers of as many weights on maps that are small."""
    chain = [f"conv_{n} 32 2x2 s8, act_{n} s8 relu=yes" for n in range(5)]
    return random_model(network_of("6x7x32 s8", *chain, "dense 5 s8", name="kernels"), 3, 32)


def ring_of(model: Model, mapping: Sequence[int], interval: int, setting: MapSetting = SETTINGS[0]) -> Candidate:
    demands = layers(model, setting.map_order)
    npus = cheapest_ring(NpuChoices(demands, 64, counters=setting.counters), mapping, interval, Price())
    assert npus is not None
    return candidate_of(model.network.name, npus, 64, setting.map_order)


@pytest.mark.parametrize(
    ("engines", "expected"),
    [
        ("b", []),
        ("bb", []),
        ("bbb", [(0, 1, 0)]),
        ("bbbb", [(0, 1, 0, 1), (0, 1, 2, 0)]),
        ("bbbbbb", [(0, 1, 0, 1, 0, 1), (0, 1, 2, 0, 1, 2), (0, 1, 2, 3, 0, 1)]),
        ("ibbbbi", [(0, 1, 1, 1, 1, 0)]),
        ("ibi", [(0, 1, 0)]),
        ("ibbb", []),
    ],
)
def test_rings(engines: str, expected: list[tuple[int, ...]]) -> None:
    assert rings([[{"b": "binary", "i": "integer"}[letter] for letter in engines]]) == expected


def test_an_npu_of_a_ring_computes_its_layers_in_the_interval() -> None:
    model = networks.load("digits-cnn")
    interval = 4_000
    candidate = ring_of(model, (0, 1, 0, 1), interval)
    assert (candidate.topology, candidate.mapping) == ("ring of 2", (0, 1, 0, 1))
    assert [npu.ports.inlets for npu in candidate.npus] == [("host", "ring"), ("ring",)]
    assert [npu.ports.outlets for npu in candidate.npus] == [("ring",), ("ring", "host")]
    choices = NpuChoices(layers(model), 64)
    work = [choices.cycles(candidate.indices_on(n), npu) for n, npu in enumerate(candidate.npus)]
    assert max(work) <= interval
    predicted = figures(model, candidate)
    assert predicted is not None
    assert max(work) - 100 <= predicted.cycles < sum(work) + 200, "busy as one NPU at least, and no longer than in turn"


def test_a_network_of_both_kinds_gets_npus_of_both() -> None:
    model = ends()
    explored = explore(model, Budget(lut=20_000), effort=Effort(points=2, halvings=0))
    assert explored.best is not None
    assert {row.candidate.engines for row in explored.front} == {Engines(("integer", "binary", "integer"))}
    assert explored.tried >= len(explored.front)
    chains = ("pipelines, cascades and single NPUs", "rings of 2 NPUs", "map order pull and raster", "both dataflows")
    npus = ("streamed weights", "NPUs of both engines", "several taps a beat", "window former", "tables and counters")
    assert explored.varied == (*chains, *npus)


def test_only_what_is_asked_for_is_varied() -> None:
    explored = explore(ends(), Budget(), map_order="pull", effort=Effort(points=1, halvings=0))
    assert {row.candidate.map_order for row in explored.front} == {"pull"}
    assert "map order pull" in explored.varied
    with value_error("explore: map_order must be one of both, pull, raster, got 'auto'"):
        explore(ends(), Budget(), map_order="auto")


def simulated(folder: Path, candidate: Candidate, *models: Model) -> None:
    """Saved and read again, built and simulated: bit-exact, in the cycles of the flow model."""
    candidate = Candidate.from_dict(json.loads(json.dumps(candidate.to_dict())))
    model, *also = models
    design = candidate.design(model, also=also)
    build = builds.build(folder, design, models, choices=candidate.choices)
    latency = 0
    for each in models:
        left = run_flow(each, candidate.choices, design, FRAMES)[0].left
        images = random_images(each.network, FRAMES, 1)
        several, alone = run(build, each, images), run(build, each, images[:1])
        assert several.bit_exact_frames == FRAMES
        assert several.counters["cycles"] - alone.counters["cycles"] == left[-1] - left[0]
        latency += alone.counters["cycles"]
    predicted = figures(model, candidate, design, also=also)
    assert predicted is not None
    assert latency == predicted.latency


@pytest.mark.slow
def test_a_ring_of_both_engines_simulates(tmp_path: Path) -> None:
    simulated(tmp_path, ring_of(ends(), (0, 1, 0), 2_000), ends())


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.words.replace(", ", "-"))
def test_rings_simulate(tmp_path: Path, setting: MapSetting) -> None:
    model = networks.load("digits-cnn")
    simulated(tmp_path, ring_of(model, (0, 1, 0, 1), 4_000, setting=setting), model)


@pytest.mark.slow
def test_streamed_weights_are_found_where_kernels_do_not_fit(tmp_path: Path) -> None:
    """Six blocks of RAM hold no kernels of six layers at this rate; saved, built and simulated bit for bit."""
    model = kernels()
    network, foldings = tmp_path / "kernels.npz", tmp_path / "foldings.json"
    file.save(model, network)
    options = [
        "--lut",
        "3000",
        "--bram",
        "6",
        "--cycles",
        "11000",
        "--map-order",
        "pull",
        "--points",
        "1",
        "--halvings",
        "0",
        "--save",
    ]
    words = ["explore", str(network), *options, str(foldings)]
    result = call(*words, env={"COLUMNS": "250"})
    assert result.exit_code == 0, result.output
    (chosen,) = (line for line in result.stdout.splitlines() if "chosen │" in line)
    assert "pull, streamed weights" in chosen
    candidate = Candidate.load(foldings, model)
    assert candidate.stream_weights
    predicted = figures(model, candidate)
    assert predicted is not None
    assert f"│ {predicted.cycles:,.0f} │" in " ".join(chosen.split())
    assert Budget(lut=3_000, bram36=6, cycles=11_000).holds(predicted)
    resident = replace(candidate, npus=tuple(npu.changed(stream_weights=False) for npu in candidate.npus))
    faster = figures(model, resident)
    assert faster is not None
    assert faster.area.bram36 > 6
    assert faster.cycles < predicted.cycles, "weights take time to come"
    folder = tmp_path / "built"
    built = call("build", network, "--foldings", foldings, "--out", folder)
    assert built.exit_code == 0, built.output
    assert len(builds.load(folder).program("kernels").weights)
    simulated(tmp_path / "simulated", candidate, model)


@pytest.mark.slow
def test_a_front_simulates(tmp_path: Path) -> None:
    """Whatever the search says of small networks: each design of the front."""
    for name, model in (("ends", ends()), ("digits", networks.load("digits-cnn"))):
        for n, row in enumerate(explore(model, Budget(lut=9_000), effort=Effort(points=3, halvings=1)).front):
            simulated(tmp_path / f"{name}{n}", row.candidate, model)
