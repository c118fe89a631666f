"""The search: whatever it returns makes a design that builds and simulates."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.demands import layers
from bitloom.overlay.explore.figures import figures
from bitloom.overlay.explore.search import Effort, Explored, explore
from tests.networks import IntegerChoices, integer_networks, random_model
from tests.networks import networks as binary_networks

from .test_variety import simulated

POINTS = 2


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A random network of one of the engines, with weights."""
    seed = draw(st.integers(0, 99))
    if draw(st.integers(0, 3)):
        return random_model(draw(binary_networks()), seed)
    return random_model(draw(integer_networks(IntegerChoices(feature_bits=9, fraction=7))), seed, 24, 31)


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    """Limits, some of them out of reach."""
    limits = {"lut": 2_000 << draw(st.integers(0, 4)), "bram36": draw(st.sampled_from([4, 20, 140]))}
    limits |= {"lanes": 4 << draw(st.integers(0, 8)), "cycles": 100 << draw(st.integers(0, 10))}
    return Budget(**{key: value for key, value in limits.items() if draw(st.booleans())})


def search_for(model: Model, budget: Budget) -> Explored:
    try:
        layers(model, "pull")
    except ValueError:
        assume(False)  # no engine computes it
    try:
        return explore(model, budget, effort=Effort(points=POINTS))
    except ValueError as e:
        assume("no folding was found" not in str(e))
        raise


def builds_all(model: Model, explored: Explored) -> None:
    """Every row's foldings, written as JSON and read again, give hardware and a program for it."""
    for row in (*explored.front, *([explored.best] if explored.best else [])):
        candidate = Candidate.from_dict(json.loads(json.dumps(row.candidate.to_dict())))
        design = candidate.design(model)
        assert figures(model, candidate, design) == row.figures
        manifest = Manifest.from_dict(generate(design).manifest, design.name)
        compile_model(model, manifest, candidate.choices)


@pytest.mark.slow
@settings(max_examples=60)
@given(models(), budgets())
def test_what_it_returns_builds(model: Model, budget: Budget) -> None:
    explored = search_for(model, budget)
    assert explored.front
    builds_all(model, explored)
    assert explored.best is None or budget.holds(explored.best.figures)


@pytest.mark.slow
@settings(max_examples=8)
@given(models(), budgets())
def test_what_it_returns_simulates(tmp_path_factory: pytest.TempPathFactory, model: Model, budget: Budget) -> None:
    explored = search_for(model, budget)
    row = explored.best or explored.front[-1]
    simulated(tmp_path_factory.mktemp("explored"), row.candidate, model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("cnv-w1a1", Budget(lanes=2_272, cycles=28_999, latency=69_999)),
        ("cnv-w1a1", Budget(lut=26_072, bram36=140, cycles=14_199)),
        ("cnv-w1a1", Budget(lut=53_200, bram36=140, cycles=8_199)),
        ("lfc-w1a1", Budget(lanes=6_272, cycles=512)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_reaches_the_figures(name: str, budget: Budget) -> None:
    explored = explore(networks.load(name), budget)
    assert explored.best is not None
    assert budget.holds(explored.best.figures)


@pytest.mark.slow
def test_no_candidate_is_more_parallel_than_a_design_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest intervals need more lanes than the limit allows: the search goes on with longer ones."""
    monkeypatch.setenv("BITLOOM_MAX_LANES", "100")
    effort = Effort(points=1, halvings=0)
    explored = explore(networks.load("digits-cnn"), Budget(lut=53_200), map_order="raster", effort=effort)
    assert explored.best is not None
    assert explored.best.figures.lanes <= 100
