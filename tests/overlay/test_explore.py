"""The search: whatever it returns makes a design that builds and simulates."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from driver.compile import compile_model
from driver.manifest import Manifest
from golden.network import Model
from hls_gen.design import Npu
from hls_gen.verilog import generate
from overlay import build as builds
from overlay import networks
from overlay.boards import BOARDS, board
from overlay.cli.commands import bitloom
from overlay.explore import search
from overlay.explore.budget import Budget
from overlay.explore.candidate import Candidate, Figures, figures
from overlay.explore.chain import Chain, Price, splits
from overlay.explore.layer import layers
from overlay.explore.search import Explored, Row, between_fitting, explore, of_runs, pareto
from overlay.explore.workers import Workers
from overlay.netlist import Resources
from overlay.run import run
from tests.errors import value_error
from tests.networks import integer_networks, random_images, random_integer_model, random_model
from tests.networks import networks as binary_networks

POINTS = 3


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A random network of one of the engines, with weights."""
    seed = draw(st.integers(0, 99))
    if draw(st.integers(0, 3)):
        return random_model(draw(binary_networks()), seed)
    return random_integer_model(draw(integer_networks()), seed, 24)


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    """Limits, some of them out of reach."""
    limits = {"lut": 2_000 << draw(st.integers(0, 4)), "bram36": draw(st.sampled_from([4, 20, 140])),
              "lanes": 4 << draw(st.integers(0, 8)), "cycles": 100 << draw(st.integers(0, 10))}  # fmt: skip
    return Budget(**{key: value for key, value in limits.items() if draw(st.booleans())})


def found_for(model: Model, budget: Budget) -> Explored:
    try:
        layers(model, "pull")
    except ValueError:
        assume(False)  # no engine computes it
    try:
        return explore(model, budget, points=POINTS)
    except ValueError as e:
        assume("no folding was found" not in str(e))
        raise


def builds_all(model: Model, found: Explored) -> None:
    """Every row's foldings, written as JSON and read again, give hardware and a program for it."""
    for row in (*found.front, *([found.best] if found.best else [])):
        candidate = Candidate.from_dict(json.loads(json.dumps(row.candidate.to_dict())))
        design = candidate.design(model)
        assert figures(model, candidate, design) == row.figures
        manifest = Manifest.from_dict(generate(design).manifest, design.name)
        compile_model(model, manifest, candidate.order, candidate.work, mapping=candidate.mapping)


def test_halves_the_gap_to_the_fastest_interval_that_fits() -> None:
    def row(asked: int, **over: float) -> Row:
        values = {"lut": 90, "cycles": asked, "latency": 5, **over}
        area = Resources(lut=int(values["lut"]), ff=0, bram36=0, lutram=0, dsp=0, carry4=0)
        found = Figures(area, 1, values["cycles"], int(values["latency"]))
        return Row(Candidate("n", (), ()), found, asked, not over)

    budget = Budget(lut=100, latency=10)
    rows = [row(100, lut=101), row(400, lut=200), row(900, latency=11), row(2500)]
    assert between_fitting(rows, budget) == 600, "what is only late counts as fitting: it can be refined"
    assert between_fitting(rows[2:], budget) is None, "there is nothing faster"
    assert between_fitting(rows[:2], budget) is None, "nothing fits"
    assert between_fitting([row(100, lut=101), row(101)], budget) is None
    assert between_fitting(rows, Budget(lut=100, cycles=1000)) is None, "a rate is asked for"


def late(cycles: float, latency: int, lut: int = 90) -> Figures:
    return Figures(Resources(lut=lut), 1, cycles, latency)


def late_row(cycles: int, latency: int, lut: int = 90) -> Row:
    return Row(Candidate("n", (), ()), late(cycles, latency, lut), cycles, lut <= 100 and latency <= 10)


def test_what_is_only_late_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best first, as long as it is better than what fits, until one keeps to the latency."""
    tried = []

    def refined(model: Model, candidate: Candidate, found: Figures, budget: Budget) -> tuple[Candidate, Figures]:
        tried.append(found.cycles)
        return candidate, replace(found, latency=10 if found.cycles == 300 else 11)

    monkeypatch.setattr(search, "refine", refined)
    budget, fits = Budget(lut=100, latency=10), late_row(500, 5)
    rows = [late_row(400, 20), late_row(300, 20), late_row(200, 20), late_row(100, 20, lut=101), late_row(600, 20),
            fits, late_row(250, 20)]  # fmt: skip
    made = search._refined(Mock(), rows, budget, fits)
    assert tried == [200, 250, 300]
    assert made is not None
    assert (made.figures, made.asked, made.fits) == (late(300, 10), 300, True)
    assert search._refined(Mock(), rows, budget, late_row(200, 5)) is None
    assert search._refined(Mock(), [late_row(200, 20)], budget, None) is None


def test_refinement_costs_no_cycles_unless_a_rate_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"faster": late(100, 50), "slower": late(120, 30), "larger": late(100, 20, lut=101)}
    refining = importlib.import_module("overlay.explore.refine")
    monkeypatch.setattr(refining, "_changes", lambda model, candidate: iter(found))
    monkeypatch.setattr(refining, "figures", lambda model, candidate: found[candidate])
    old: Any = "old"
    for budget, best in (
        (Budget(lut=100, latency=10), "faster"),
        (Budget(lut=100, latency=10, cycles=130), "slower"),
        (Budget(lut=100, latency=80), "old"),
    ):
        assert refining.refine(Mock(), old, late(100, 80), budget) == (best, found.get(best, late(100, 80)))


def test_more_halvings_come_nearer_to_the_budget() -> None:
    model, budget, cycles = networks.find("digits-cnn"), Budget(lut=5_000), []
    for halvings in (0, 1, 3):
        progress = Mock()
        best = explore(model, budget, points=3, halvings=halvings, progress=progress).best
        assert best is not None
        assert budget.holds(best.figures)
        assert len(set(progress.call_args.args)) == 1, "at the end all is done"
        cycles.append(best.figures.cycles)
    assert cycles[0] > cycles[1] > cycles[2]


QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@settings(max_examples=4, **QUICK)
@given(models(), budgets())
def test_what_it_returns_builds(model: Model, budget: Budget) -> None:
    found = found_for(model, budget)
    assert found.front
    builds_all(model, found)
    if found.best is not None:
        assert budget.holds(found.best.figures)


@pytest.mark.slow
@settings(max_examples=60, **QUICK)
@given(models(), budgets())
def test_what_it_returns_builds_slowly(model: Model, budget: Budget) -> None:
    builds_all(model, found_for(model, budget))


@pytest.mark.slow
@settings(max_examples=8, **QUICK)
@given(models(), budgets(), st.integers(0, 99))
def test_what_it_returns_simulates(
    tmp_path_factory: pytest.TempPathFactory, model: Model, budget: Budget, seed: int
) -> None:
    found = found_for(model, budget)
    row = found.best or found.front[-1]
    simulated(tmp_path_factory.mktemp("explored"), model, row, random_images(model.network, 4, seed))


def simulated(folder: Path, model: Model, row: Row, images: np.ndarray) -> None:
    """Hardware equals golden, and its latency is what the flow model says."""
    c = row.candidate
    made = builds.build(folder, c.design(model), [model], order=c.order, work=dict(c.work), mapping=c.mapping)
    assert run(made, model, images).bit_exact_frames == len(images)
    alone = run(made, model, images[:1])
    assert alone.counters["cycles"] == row.figures.latency


def test_digits_simulates(tmp_path: Path) -> None:
    model = networks.load("digits-cnn")
    found = explore(model, Budget(lanes=400, cycles=1000))
    assert found.best is not None
    assert len(found.best.candidate.npus) > 1
    simulated(tmp_path, model, found.best, random_images(model.network, 6, 1))


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
    found = explore(networks.load(name), budget)
    assert found.best is not None
    assert budget.holds(found.best.figures)


# parts


@pytest.mark.parametrize("total", [1, 2, 7, 64, 100, 1023])
def test_splits(total: int) -> None:
    assert splits(total) == sorted({-(-total // parts) for parts in range(1, total + 1)})


@pytest.mark.parametrize("name", ["digits-cnn", "cifar-quick-int8"])
def test_depths_are_those_of_fit(name: str) -> None:
    """The search prices an NPU with the memories that fit gives it."""
    model = networks.load(name)
    made = layers(model)
    chain = Chain(made, 64, 1 if name == "digits-cnn" else 8)
    runs = chain.cheapest(40_000, Price(npu=-10_000))
    assert runs is not None
    assert len(runs) == len(made)
    candidate = of_runs(name, runs, 64, "pull")
    keys = ("taps", "olds", "jumps", "kernel_rows", "threshold_rows", "acc_bits", "windows", "groups", "levels")
    for given_npu, fitted in zip(candidate.npus, candidate.design(model).npus):
        assert [getattr(given_npu, k) for k in keys] == [getattr(fitted, k) for k in keys]


@pytest.mark.parametrize("interval", [300, 1_000, 5_000, 40_000])
def test_cycles_are_those_of_the_flow_model(interval: int) -> None:
    """A pipeline takes as long as its slowest layer; with a few tuples of room nothing waits."""
    model = networks.load("digits-cnn")
    chain = Chain(layers(model), 64)
    runs = chain.cheapest(interval, Price(npu=-10_000))
    if runs is None:
        assert interval < 577  # the largest number of taps
        return
    slowest = max(chain.cycles(r.first, r.last, r.npu) for r in runs)
    found = figures(model, of_runs("digits-cnn", runs, 64, "pull"))
    assert found is not None
    assert found.cycles <= interval
    assert found.cycles <= slowest * 1.02 + 20


def row(cycles: float, lut: int) -> Row:
    candidate = Candidate("net", (Npu(),), (0,))
    return Row(candidate, Figures(Resources(lut=lut), 64, cycles, 100), 1, True)


def test_pareto() -> None:
    rows = [row(10, 50), row(20, 40), row(20, 60), row(30, 45), row(40, 10), row(10, 55)]
    assert [(r.figures.cycles, r.figures.lut) for r in pareto(rows)] == [(10, 50), (20, 40), (40, 10)]
    assert len(pareto([row(10, 50), row(20, 50), row(10, 50)])) == 1, "equal is not better"


def test_budget() -> None:
    budget = Budget.of_board(board("pynq-z2"), lut=20_000, cycles=None)
    assert (budget.lut, budget.ff, budget.bram36, budget.dsp, budget.cycles) == (20_000, 106_400, 140, 220, None)
    over = Figures(Resources(lut=19_000, lutram=2_000, bram36=70), 64, 10, 10)
    assert budget.excess(over) == {"lut": 1.05}
    full = Figures(Resources(lut=18_000, lutram=2_000), 64, 10, 10)
    assert Budget(lut=20_000, cycles=10).holds(full), "a limit may be met exactly"
    with value_error("budget: lut must be > 0, got -1"):
        Budget(lut=-1)


def test_boards() -> None:
    assert board("pynq-z1").holds(Resources(lut=53_000, lutram=200, ff=106_400, bram36=140, dsp=220))
    assert not board("pynq-z1").holds(Resources(lut=53_001, lutram=200))
    with value_error(f"board: name must be one of {', '.join(BOARDS)}, got 'zed'"):
        board("zed")


@pytest.mark.parametrize("words", [2, 128, 256, 512])
def test_foldings_keep_their_memories(words: int) -> None:
    """Also as large as an NPU's are by default."""
    npu = Npu(kfp=8, kgp=4, tuple_words=words, pool_words=words)
    read = Candidate.from_dict(json.loads(json.dumps(Candidate("net", (npu,), (0,)).to_dict())))
    assert (read.npus[0].tuple_words, read.npus[0].pool_words) == (words, words)


def test_foldings_of_another_format() -> None:
    with value_error("foldings: format must be bitloom-foldings, version 1, got 'x'"):
        Candidate.from_dict({"format": "x"})


# workers


def double(number: int) -> int:
    return 2 * number


def test_workers() -> None:
    assert list(Workers().map(double, [1, 2])) == list(Workers(jobs=2).map(double, [1, 2])) == [2, 4]
    with value_error("workers: jobs must be >= 1, got 0"):
        Workers(0)


def test_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        assert list(Workers(scheduler=cluster.scheduler_address).map(abs, [-1, 2])) == [1, 2]
        model = networks.load("digits-cnn")
        there = explore(model, Budget(cycles=2_000), workers=Workers(scheduler=cluster.scheduler_address))
    here = explore(model, Budget(cycles=2_000))
    assert [r.figures for r in there.front] == [r.figures for r in here.front]


# command line


def call(*arguments: str) -> Result:
    return CliRunner().invoke(bitloom, ["explore", *arguments])


def test_command(tmp_path: Path) -> None:
    saved = tmp_path / "foldings.json"
    result = call("digits-cnn", "--board", "pynq-z1", "--points", "2", "--save", str(saved))
    assert result.exit_code == 0, result.output
    for word in ("Pareto front", "chosen", "cycles", "latency", "designs that it was not fitted to"):
        assert word in result.stdout
    model = networks.load("digits-cnn")
    candidate, folder = Candidate.load(saved, model), tmp_path / "build"
    built = CliRunner().invoke(bitloom, ["build", "digits-cnn", "--foldings", str(saved), "--out", str(folder)])
    assert built.exit_code == 0, built.output
    made = builds.load(folder)
    assert made.design == candidate.design(model, "digits-cnn")
    assert made.program("digits-cnn").mapping == candidate.mapping


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("{", (), "{path}: foldings must be a file of explore --save, got: Expecting property name enclosed in double "
         "quotes: line 1 column 2 (char 1)"),
        ("{}", (), "{path}: foldings must be a file of explore --save, got: foldings: format must be bitloom-foldings, "
         "version 1, got None"),
        (json.dumps(Candidate("lfc-w1a1", (), ()).to_dict()), (),
         "{path}: foldings must be for digits-cnn, got lfc-w1a1"),
        ("{}", ("--kfp", "4"), "--foldings: the file says everything about the design, got --kfp too"),
        ("{}", ("--stream-weights",),
         "--foldings: the file says everything about the design, got --stream-weights too"),
    ],
)  # fmt: skip
def test_build_refuses_foldings(tmp_path: Path, content: str, arguments: tuple[str, ...], message: str) -> None:
    path = tmp_path / "foldings.json"
    path.write_text(content)
    result = CliRunner().invoke(bitloom, ["build", "digits-cnn", "--foldings", str(path), *arguments])
    assert str(result.exception) == f"bitloom: {message.format(path=path)}"


def test_command_json_and_rate() -> None:
    result = call("digits-cnn", "--rate", "50000", "--clock-mhz", "100", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["best"]["cycles_per_frame"] <= 2_000
    assert set(data["model_error"]) == {"designs", "median", "worst"}
    assert {"npus", "lanes", "lut", "lutram", "bram36", "latency_cycles", "foldings"} <= set(data["front"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cycles", "10", "--rate", "10"), "explore: give --cycles or --rate, not both"),
        (("--lut", "-5"), "budget: lut must be > 0, got -5.0"),
        (("--plot", "x.pdf"), "--plot: file name must end with .png or .svg, got x.pdf"),
        (("--lut", "10", "--points", "1", "--save", "x.json"),
         "digits-cnn: no design fits the budget, nothing was written to x.json"),
    ],
)  # fmt: skip
def test_command_errors(arguments: tuple[str, ...], message: str) -> None:
    result = call("digits-cnn", *arguments)
    assert result.exit_code != 0
    assert str(result.exception) == f"bitloom: {message}"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plot(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"front.{ending}"
    assert call("digits-cnn", "--points", "2", "--plot", str(picture)).exit_code == 0
    assert picture.stat().st_size > 5_000
