"""Residual networks of bits and concatenated maps in the search: what it knows of an NPU; what it finds simulates."""

from pathlib import Path

import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
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
from tests.networks import random_model

from .test_graphs import COUNTERS, QUICK, conv
from .test_variety import simulated


def signs() -> Model:
    """A block of two binary convolutions that add integers, behind one with thresholds, and a dense layer."""

    def binary(n: int, reads: str, channels: int) -> Layer:
        return Conv(name=f"conv_{n}", out_channels=channels, kernel=(3, 3), padding=(1, 1, 1, 1), inputs=(reads,))

    layers = [binary(1, INPUT, 6), Threshold(name="bits_1", levels=2)]
    reads, kept = "bits_1", ""
    for n in (2, 3, 4):
        layers += [binary(n, reads, 8), Requantise(name=f"act_{n}", encoding=signed(6))]
        layers += [Add(name=f"add_{n}", encoding=signed(7), inputs=(kept, f"act_{n}"))] if kept else []
        kept = f"add_{n}" if kept else f"act_{n}"
        layers.append(Threshold(name=f"bits_{n}", inputs=(kept,)))
        reads = f"bits_{n}"
    layers += [MaxPool(name="pool", kernel=(2, 2), stride=(2, 2), inputs=(reads,)), Dense(name="dense", out_channels=5)]
    source = Map(height=6, width=5, channels=4, encoding=BIPOLAR)
    return random_model(Network(name="signs", input=source, layers=tuple(layers)), 2, 24)


def fire() -> Model:
    """Two ways from a map, concatenated twice: in front of a convolution, and with a copy behind a third way."""
    joined = Concat(name="concat_4", inputs=("act_2", "act_3"))
    layers = (*conv(1, INPUT, 6), *conv(2, "act_1", 3), *conv(3, "act_1", 6, kernel=3), joined)
    joined = Concat(name="concat_7", inputs=("act_5", "act_6"))
    layers += (*conv(5, "concat_4", 4, kernel=3), *conv(6, "act_5", 5, kernel=3), joined)
    pool = MaxPool(name="pool_8", kernel=(2, 2), stride=(2, 2), inputs=("concat_7",))
    layers += (pool, *conv(9, "pool_8", 7), Dense(name="dense_10", out_channels=5, weight=signed(8)))
    source = Map(height=7, width=6, channels=3, encoding=signed(8))
    return random_model(Network(name="fire", input=source, layers=layers), 1, 32)


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
