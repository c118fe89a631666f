"""Graphs on rings and on chains that are cut where maps are copied: what the search knows of their NPUs, what it finds,
and that this simulates."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from bitloom.golden import zoo
from bitloom.golden.network import Model
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.figures import figures
from bitloom.overlay.explore.one_npu import MappedNpu
from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.ring import _RingNpus
from bitloom.overlay.explore.search import explore
from bitloom.overlay.explore.stores_in_use import run_flow
from bitloom.overlay.explore.task import FEW_NPUS, Connection, Task
from bitloom.overlay.explore.tries import Tries
from bitloom.overlay.explore.variations import SETTINGS, MapSetting
from tests.hls_gen.compiler.graph_cases import residual as network_of
from tests.hls_gen.compiler.test_concatenations import CASES
from tests.networks import random_model

from .test_bits_and_joins import fire, signs
from .test_graphs import COUNTERS, QUICK, residual, searched
from .test_variety import simulated

RASTER = SETTINGS[1]
RING, CUT = ((0, 1, 0, 1, 0, 1), True), ((0, 0, 1, 1, 1, 1), False)
"""Mappings of `residual`, and whether their NPUs are rings."""
EACH = ((0, 1, 2, 3, 4), False)
"""The mapping of `signs` to a pipeline."""
ACTIVATION_KEYS = ("kernel_rows", "threshold_rows", "acc_bits", "multiplier_bits", "half_even", "round_twice")
MAP_KEYS = ("windows", "groups", "map_words", "joined_words", "add_factor_bits", "add_bias_bits", "layers")
KEYS = ("kfp", *ACTIVATION_KEYS, *MAP_KEYS)


def mapped(model: Model, mapping: tuple[int, ...], closed: bool, setting: MapSetting, interval: int) -> Candidate:
    """The candidate that NPUs make which are joined so."""
    tries = Tries(model, Budget(), 64, SETTINGS)
    connection = Connection(tries.engines[0], mapping, closed)
    assert connection in tries.connections.possible
    mapped_npus = tries.mapped_npus(Task(connection, setting, interval, FEW_NPUS))
    assert mapped_npus is not None
    candidate = tries.candidate(mapped_npus, setting)
    assert candidate.mapping == mapping
    assert tries.connections.connection_of(candidate) == connection
    return candidate


FIRST = [(COUNTERS, *RING), (RASTER, *CUT)]
LATER = [(SETTINGS[0], *RING), (COUNTERS, (0, 1, 2, 0, 1, 2), True)]
LATER = [pytest.param(*case, marks=pytest.mark.slow) for case in LATER]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("setting", "mapping", "closed"), [*FIRST, *LATER])
def test_what_the_search_knows_of_npus_that_copy(setting: MapSetting, mapping: tuple[int, ...], closed: bool) -> None:
    model = residual()
    candidate = mapped(model, mapping, closed, setting, 1_500)
    assert candidate.closed == closed
    for given, npu in zip(candidate.npus, candidate.design(model).npus):
        assert {k: given.value(k) for k in KEYS} == {k: npu.value(k) for k in KEYS}
        assert npu.value("skip_words") <= given.value("skip_words"), "as if maps were there as a whole"
    if (mapping, closed) == RING:
        assert candidate.npus[0].array.kfp == candidate.npus[1].array.kfp, (
            "a map goes on and stays: one gearbox makes its words"
        )
        assert not any("loop" in npu.ports.inlets for npu in candidate.npus)


@pytest.mark.parametrize("price", [Price(dsp=1_000), Price(dsp=1_000, npu=-10_000)], ids=["none", "a bonus"])
def test_npus_that_must_be_alike_are_those_that_are_cheapest_together(
    price: Price, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a kind are not all looked at where the first of them cost more than others do together; an NPU may cost
    less than nothing."""
    looked_at = Mock(side_effect=_RingNpus._cheapest)
    monkeypatch.setattr(_RingNpus, "_cheapest", lambda *given: looked_at(*given))
    mapped_npus = list[list[MappedNpu] | None]()
    counts = list[int]()
    for together in (_RingNpus._together, _together_at_any_price):
        monkeypatch.setattr(_RingNpus, "_together", together)
        tries = Tries(residual(), Budget(), 64, SETTINGS)
        mapped_npus.append(tries.mapped_npus(Task(Connection(tries.engines[0], *RING), COUNTERS, 1_500, price)))
        counts.append(looked_at.call_count - sum(counts))
    assert mapped_npus[0] is not None
    assert mapped_npus[0] == mapped_npus[1]
    assert counts[0] < counts[1] or price.npu


_TOGETHER = _RingNpus._together


def _together_at_any_price(
    mapped_npus: _RingNpus, group: Sequence[int], alike: dict[str, int], below: float
) -> tuple[float, list[MappedNpu]] | None:
    cheapest = _TOGETHER(mapped_npus, group, alike, float("inf"))
    return cheapest if cheapest and cheapest[0] < below else None


@pytest.mark.parametrize(("mapping", "closed"), [EACH, pytest.param((0, 1, 0, 1, 0), True, marks=pytest.mark.slow)])
def test_what_the_search_knows_of_npus_that_keep_integers_for_the_next(mapping: tuple[int, ...], closed: bool) -> None:
    """These have steps alike, and so have those that add them; cycles are those of the busiest, but for some waits."""
    model = signs()
    candidate = mapped(model, mapping, closed, RASTER, 1_000)
    design = candidate.design(model)
    tries = Tries(model, Budget(), 64, SETTINGS)
    assert any(npu.skips_onward for npu in design.npus)
    for npu, after in zip(design.npus, design.npus[1:]):
        assert not npu.skips_onward or (npu.array.kgp, npu.results.ol) == (after.array.kgp, after.results.ol)
    keys = [key for key in KEYS if key not in ("add_factor_bits", "add_bias_bits")]  # alike where steps are
    for given, npu in zip(candidate.npus, design.npus):
        assert {k: given.value(k) for k in keys} == {k: npu.value(k) for k in keys}
        assert npu.value("skip_words") <= given.value("skip_words")
    choices = tries.connections.of(tries.connections.connection_of(candidate), RASTER)
    busiest = max(choices.cycles(choices.indices_on(n, mapping), npu) for n, npu in enumerate(candidate.npus))
    assert busiest - 100 < run_flow(model, candidate.choices, design)[0].cycles_per_frame < 1.4 * busiest


def test_mappings_of_graphs() -> None:
    """Rings where maps find their ways, and chains with copies; of bits also a layer each."""
    mappings = [
        (each.mapping, each.closed) for each in Tries(residual(), Budget(), 64, SETTINGS[1:]).connections.possible
    ]
    assert mappings[:4] == [(None, False), RING, ((0, 1, 2, 0, 1, 2), True), ((0, 1, 2, 3, 0, 1), True)]
    assert CUT in mappings[4:]
    assert not any(closed for _, closed in mappings[4:])
    mappings = [
        (each.mapping, each.closed) for each in Tries(signs(), Budget(), 64, SETTINGS[1:2]).connections.possible
    ]
    assert mappings == [(None, False), ((0, 1, 0, 1, 0), True), ((0, 1, 2, 0, 1), True), ((0, 1, 2, 3, 0), True), EACH]


@pytest.mark.parametrize(("model", "cycles"), [(residual, 500), pytest.param(fire, 900, marks=pytest.mark.slow)])
def test_chains_with_copies_are_found_where_they_are_faster(model: Callable[[], Model], cycles: int) -> None:
    net_model = model()
    explored = searched(model, 100)
    assert explored.best is not None
    assert explored.best.figures.cycles < cycles
    assert any("cut between fork and join" in words for words in explored.varied)
    copied = next(row for row in explored.front if row.candidate.chunk)
    assert copied.candidate.chunk == f"rows:{net_model.network.input.height}"
    straight = replace(copied.candidate, chunk="")
    assert figures(net_model, straight, straight.design(net_model)).cycles > 1.1 * copied.figures.cycles


@pytest.mark.slow
def test_a_mapping_may_be_the_smallest_design_for_a_rate() -> None:
    explored = explore(fire(), Budget(cycles=900), map_order="raster", effort=QUICK)
    assert explored.best is not None
    assert explored.best.figures.cycles <= 900
    assert len(explored.best.candidate.npus) > 1


@pytest.mark.slow
def test_a_ring_of_a_graph_simulates(tmp_path: Path) -> None:
    """A map goes on and stays on its NPU; another one is added where it comes round."""
    model = residual()
    simulated(tmp_path, mapped(model, *RING, COUNTERS, 2_500), model)


@pytest.mark.slow
@pytest.mark.parametrize("model", [residual, fire, signs])
def test_a_front_of_graphs_simulates(model: Callable[[], Model], tmp_path: Path) -> None:
    net_model = model()
    explored = explore(net_model, Budget(lut=20_000, dsp=120), map_order="raster", effort=QUICK)
    assert explored.best is not None
    assert any(row.candidate.chunk for row in explored.front) == (model is not signs)
    assert len(explored.best.candidate.npus) > 1
    for n, row in enumerate(explored.front):
        assert figures(net_model, row.candidate, row.candidate.design(net_model)) == row.figures
        simulated(tmp_path / str(n), row.candidate, net_model)


@pytest.mark.parametrize(
    "name", ["sums", *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name != "sums")]
)
def test_every_concatenation_is_searched(name: str) -> None:
    """Also where one NPU copies maps; what is told of a design is that of the one that is built."""
    model = random_model(network_of(CASES[name][0]), 1, 32)
    explored = explore(model, Budget(lut=15_000, dsp=80), map_order="raster", effort=QUICK)
    assert explored.best is not None
    for row in explored.front:
        candidate = Candidate.from_dict(json.loads(json.dumps(row.candidate.to_dict())))
        assert figures(model, candidate, candidate.design(model)) == row.figures
        assert len(candidate.mapping) == len(explored.layers)


def twice(name: str) -> tuple[Model, Model]:
    """A network of the zoo, and the same with another name."""
    model = zoo.load(name)
    return model, Model(replace(model.network, name="other"), model.arrays)


@pytest.mark.parametrize("name", ["digits-or", "digits-words"])
def test_networks_that_accumulate_by_or_share_rings_and_chains(name: str) -> None:
    possible = Tries(twice(name), Budget(), 64, SETTINGS[:1], (False,)).connections.possible
    kinds = {(each.mapping is not None, each.closed) for each in possible}
    assert kinds == {(False, False), (True, False), (True, True)}


def test_a_chain_of_networks_with_ored_words_is_found_where_it_is_faster(tmp_path: Path) -> None:
    """One NPU takes 1,890 cycles a round within these LUTs."""
    models = twice("digits-words")
    explored = explore(models, Budget(lut=8_000), map_order="raster", effort=QUICK)
    assert explored.best is not None
    assert explored.best.figures.cycles < 1_000
    simulated(tmp_path, explored.best.candidate, *models)
