"""Residual networks of bits and concatenated maps in the search: what it knows of an NPU; what it finds simulates."""

from pathlib import Path

import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.demands import possible_engines
from bitloom.overlay.explore.engines import Engines
from bitloom.overlay.explore.figures import figures
from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.search import Effort, explore
from bitloom.overlay.explore.stores_in_use import run_flow
from bitloom.overlay.explore.task import FEW_NPUS, Connection, Task
from bitloom.overlay.explore.tries import Tries
from bitloom.overlay.explore.variations import SETTINGS, MapSetting
from tests.graph_text import network_of
from tests.hls_gen.compiler.graph_cases import residual
from tests.networks import random_model

from .test_graphs import COUNTERS, QUICK
from .test_variety import simulated


def signs() -> Model:
    """A block of two binary convolutions that add integers, behind one with thresholds, and a dense layer."""
    conv = "8 3x3 padding=1"
    first = "conv_1 6 3x3 padding=1, threshold bits_1 levels=2"
    second = f"conv_2 {conv}, act_2 s6, threshold bits_2, conv_3 {conv}, act_3 s6, add_3 act_2 act_3 s7"
    third = f"threshold bits_3, conv_4 {conv}, act_4 s6, add_4 add_3 act_4 s7, threshold bits_4"
    return random_model(
        network_of("6x5x4", first, second, third, "max_pool pool 2x2 2x2, dense 5", name="signs"), 2, 24
    )


def fire() -> Model:
    """Two ways from a map, concatenated twice: in front of a convolution, and with a copy behind a third way."""
    first = "conv_1 @input 6, conv_2 act_1 3, conv_3 act_1 6 3, concat_4 act_2 act_3"
    second = "conv_5 concat_4 4 3, conv_6 act_5 5 3, concat_7 act_5 act_6, pool_8 concat_7, conv_9 pool_8 7"
    return random_model(residual(first, second, "dense_10 5 s8", source="7x6x3 s8", name="fire"), 1, 32)


MODELS = {"signs": signs, "fire": fire, "digits-residual": lambda: networks.load("digits-residual")}
ACTIVATION_KEYS = ("threshold_rows", "acc_bits", "multiplier_bits", "half_even", "round_twice", "bias_fraction_bits")
MAP_KEYS = ("windows", "groups", "map_words", "skip_bits", "joined_words", "add_factor_bits", "add_bias_bits")
KEYS = ("kernel_rows", *ACTIVATION_KEYS, *MAP_KEYS, "levels")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "setting", [pytest.param(SETTINGS[0], marks=pytest.mark.slow), COUNTERS], ids=["tables", "counters"]
)
def test_what_the_search_knows_of_an_npu(name: str, setting: MapSetting) -> None:
    """Memories are those of sizing, or hold as much; cycles those of the flow model, but for a few a layer."""
    tries = Tries(MODELS[name](), Budget(), 64, SETTINGS)
    mapped_npus = tries.mapped_npus(Task(Connection(tries.engines[0]), setting, 6_000, FEW_NPUS))
    assert mapped_npus is not None
    candidate = tries.candidate(mapped_npus, setting)
    design = candidate.design(tries.model)
    (given,), (npu,) = candidate.npus, design.npus
    assert {k: given.value(k) for k in KEYS} == {k: npu.value(k) for k in KEYS}
    assert npu.value("skip_words") <= given.value("skip_words") < 3 * npu.value("skip_words") + 2
    assert npu.keeps_steps == (name != "fire")
    assert bool(npu.joined_words) == (name == "fire")
    busiest = tries.choices[tries.engines[0], setting].cycles(candidate.indices_on(0), given)
    assert abs(run_flow(tries.model, candidate.choices, design)[0].cycles_per_frame - busiest) < 60 * len(tries.layers)


def test_integers_that_are_added_stay_on_a_binary_npu() -> None:
    """Chains that the search cuts are cut where bits alone go on; other mappings are ways of their own."""
    assert possible_engines(signs()) == [Engines(("binary",) * 5)]
    tries = Tries(signs(), Budget(), 64, SETTINGS[1:2])
    mapped_npus = tries.mapped_npus(Task(Connection(tries.engines[0]), SETTINGS[1], 1_000, Price(npu=-10_000)))
    assert mapped_npus is not None
    assert [mapped_npu.indices for mapped_npu in mapped_npus] == [(0,), (1, 2, 3), (4,)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["signs", "fire"])
def test_what_is_found_simulates(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    best = explore(model, Budget(lut=6_000, dsp=40), map_order="raster", effort=QUICK).best
    assert best is not None
    design = best.candidate.design(model)
    assert figures(model, best.candidate, design) == best.figures
    assert any(npu.value("skip_words") for npu in design.npus)
    simulated(tmp_path, best.candidate, model)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["pull", "raster"])
def test_digits_with_shortcuts_simulate(order: str, tmp_path: Path) -> None:
    """Every design of a front."""
    model = networks.load("digits-residual")
    explored = explore(model, Budget(lut=12_000), map_order=order, effort=Effort(points=4))
    assert explored.best is not None
    for n, row in enumerate(explored.front):
        candidate = row.candidate
        assert figures(model, candidate, candidate.design(model)) == row.figures
        simulated(tmp_path / str(n), candidate, model)
