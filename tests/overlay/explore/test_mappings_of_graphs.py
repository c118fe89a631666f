"""Graphs on rings and on chains that are cut where maps are copied: what the search knows of their NPUs, what it finds,
and that this simulates."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bitloom.golden.network import Model
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.figures import figures
from bitloom.overlay.explore.search import Effort, explore
from bitloom.overlay.explore.task import FEW_NPUS, Joining, Task
from bitloom.overlay.explore.tries import Tries
from bitloom.overlay.explore.variations import SETTINGS, MapSetting

from .test_bits_and_joins import fire, signs
from .test_graphs import COUNTERS, QUICK, residual, separable
from .test_variety import simulated

RASTER = SETTINGS[1]
RING, CUT = ((0, 1, 0, 1, 0, 1), True), ((0, 1, 2, 2, 2, 2), False)
"""Mappings of `residual`, and whether their NPUs are rings."""
KEYS = ("kfp", "kernel_rows", "threshold_rows", "acc_bits", "multiplier_bits", "half_even", "round_twice", "windows",
        "groups", "map_words", "joined_words", "add_factor_bits", "add_bias_bits", "layers")  # fmt: skip


def mapped(model: Model, mapping: tuple[int, ...], closed: bool, setting: MapSetting, interval: int) -> Candidate:
    """The candidate that NPUs make which are joined so."""
    tries = Tries(model, Budget(), 64, SETTINGS)
    way = Joining(tries.engines[0], mapping, closed)
    assert way in tries.ways()
    segments = tries.segments(Task(way, setting, interval, FEW_NPUS))
    assert segments is not None
    made = tries.candidate(segments, setting, mapping)
    assert tries.joinings.way_of(made) == way
    return made


@pytest.mark.parametrize(
    ("setting", "mapping", "closed"),
    [(COUNTERS, *RING), pytest.param(SETTINGS[0], *RING, marks=pytest.mark.slow), (RASTER, *CUT),
     pytest.param(COUNTERS, (0, 1, 2, 0, 1, 2), True, marks=pytest.mark.slow)],
)  # fmt: skip
def test_what_the_search_knows_of_npus_that_copy(setting: MapSetting, mapping: tuple[int, ...], closed: bool) -> None:
    model = residual()
    candidate = mapped(model, mapping, closed, setting, 1_500)
    assert candidate.closed == closed
    for given, npu in zip(candidate.npus, candidate.design(model).npus):
        assert {k: getattr(given, k) for k in KEYS} == {k: getattr(npu, k) for k in KEYS}
        assert npu.skip_words <= given.skip_words < 2 * npu.skip_words + 100
    if closed:
        assert candidate.npus[0].kfp == candidate.npus[1].kfp, "a map goes on and stays: one gearbox makes its words"
        assert not any("loop" in npu.inlets for npu in candidate.npus)


def test_mappings_of_graphs() -> None:
    """Rings where maps find their ways, and chains with copies; none of bits."""
    found = [(way.mapping, way.closed) for way in Tries(residual(), Budget(), 64, SETTINGS[1:]).ways()]
    assert found == [(None, False), RING, ((0, 1, 2, 0, 1, 2), True), ((0, 1, 2, 3, 0, 1), True),
                     ((0, 1, 1, 1, 1, 1), False), CUT]  # fmt: skip
    assert [way.mapping for way in Tries(signs(), Budget(), 64, SETTINGS[1:2]).ways()] == [None]
    assert not any(way.closed for way in Tries([residual(), separable()], Budget(), 64, SETTINGS[1:2]).ways())


@pytest.mark.parametrize(("model", "cycles"), [(residual, 500), pytest.param(fire, 900, marks=pytest.mark.slow)])
def test_chains_with_copies_are_found_where_they_are_faster(model: Callable[[], Model], cycles: int) -> None:
    made, budget = model(), Budget(lut=20_000, dsp=120)
    found = explore(made, budget, map_order="raster", effort=QUICK)
    assert found.best is not None
    candidate = Candidate.from_dict(json.loads(json.dumps(found.best.candidate.to_dict())))
    assert figures(made, candidate, candidate.design(made)) == found.best.figures
    assert found.best.figures.cycles < cycles
    assert candidate.chunk == f"rows:{made.network.input.height}"
    assert any("NPUs that copy maps" in words for words in found.varied)
    chains = [row for row in found.front if not row.candidate.chunk]
    assert min(row.figures.cycles for row in chains) > 1.3 * found.best.figures.cycles


@pytest.mark.slow
def test_a_mapping_may_be_the_smallest_design_for_a_rate() -> None:
    found = explore(fire(), Budget(cycles=900), map_order="raster", effort=QUICK)
    assert found.best is not None
    assert found.best.figures.cycles <= 900
    assert len(found.best.candidate.npus) > 1


def test_a_ring_of_a_graph_simulates(tmp_path: Path) -> None:
    """A map goes on and stays on its NPU; another one is added where it comes round."""
    model = residual()
    simulated(tmp_path, model, mapped(model, *RING, COUNTERS, 2_500))


@pytest.mark.slow
@pytest.mark.parametrize("model", [residual, fire])
def test_a_front_of_graphs_simulates(model: Callable[[], Model], tmp_path: Path) -> None:
    made = model()
    found = explore(made, Budget(lut=20_000, dsp=120), map_order="raster", effort=Effort(points=3))
    assert any(row.candidate.chunk for row in found.front)
    for n, row in enumerate(found.front):
        assert figures(made, row.candidate, row.candidate.design(made)) == row.figures
        simulated(tmp_path / str(n), made, row.candidate)
