"""Parts of the search: chains, their figures, budget, Pareto front, halvings, refinement, workers."""

import gc
import importlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import error
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.explore import one_npu, search, workers
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.chain import Chain
from bitloom.overlay.explore.demands import layers
from bitloom.overlay.explore.figures import Figures, figures
from bitloom.overlay.explore.folding_keys import ARRAY_CYCLES
from bitloom.overlay.explore.one_npu import OUT, NpuChoices, splits
from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.ranking import between_fitting
from bitloom.overlay.explore.search import Effort, explore, varied
from bitloom.overlay.explore.searched import FASTEST, TRIED
from bitloom.overlay.explore.task import Task, candidate_of
from bitloom.overlay.explore.tries import Row, Tries
from bitloom.overlay.explore.variations import SETTINGS
from bitloom.overlay.explore.workers import Workers
from bitloom.overlay.platform.boards import BOARDS, board
from tests.cases import random_model
from tests.errors import value_error
from tests.graph_text import network_of

from .fronts import FRONTS, lines


def words_model(*sizes: int) -> Model:
    """A conv that counts products, then dense layers with words of so many channels."""
    words = (f"act_{k}, dense words_{k} 6 accumulate=or_words word_channels={n}" for k, n in enumerate(sizes))
    return random_model(network_of("4x3x5", "conv 6 2x2", *words), np.random.default_rng(0))


def test_designs_for_words() -> None:
    """Every row builds; a layer with words has an NPU with lanes for them, one alone an NPU that does nothing else."""
    model = words_model(3, 3)
    explored = explore(model, Budget(), effort=Effort(points=4))
    kinds = set()
    for row in explored.front:
        design = row.candidate.design(model)
        for layer, n in enumerate(row.candidate.mapping):
            npu = design.npus[n]
            kinds.add(npu.value("accumulate"))
            assert layer == 0 or (npu.value("word_lanes") == 3 and npu.array.kfp % 3 == 0)
    assert kinds == {"popcount", "or_words"}


def test_foldings_keep_their_chunk() -> None:
    candidate = Candidate("net", (Npu.of(),), (0,), chunk="rows:2")
    data = candidate.to_dict()
    assert data["chunk"] == Candidate.from_dict(data).choices.chunk == "rows:2"
    assert "chunk" not in replace(candidate, chunk="").to_dict()
    with value_error("chunk must be one of tuples, rows, columns, perhaps with :N, N from 1 on, got 'rows:0'"):
        Candidate.from_dict({**data, "chunk": "rows:0"})
    with value_error("chunk must be a text, got 2"):
        Candidate.from_dict({**data, "chunk": 2})


def test_words_of_several_sizes_are_refused() -> None:
    with value_error("net: word_channels must be the same in all layers to explore, got 2, 3"):
        explore(words_model(2, 3), Budget())


@pytest.mark.sample(1)
@pytest.mark.parametrize("interval", [300, 1_000, 5_000, 40_000])
def test_cycles_are_those_of_the_flow_model(interval: int) -> None:
    """A pipeline takes as long as its slowest layer; with a few tuples of room nothing waits."""
    model = networks.load("digits-cnn")
    choices = NpuChoices(layers(model), 64)
    chain = Chain(choices)
    runs = chain.cheapest(interval, Price(npu=-10_000))
    if runs is None:
        assert interval < 577  # the largest number of taps
        return
    slowest = max(choices.cycles(r.indices, r.npu) for r in runs)
    predicted = figures(model, candidate_of("digits-cnn", runs, 64, "pull"))
    assert predicted is not None
    assert predicted.cycles <= interval
    assert predicted.cycles <= slowest * 1.02 + 20


def test_first_layers_of_bits_are_tried_with_a_window_former() -> None:
    """CNV's first layer takes 8,100 beats tap by tap on any lanes; the first two layers are enough of the network."""
    cnv = networks.load("cnv-w1a1")
    begin = replace(cnv.network, layers=cnv.network.layers[:4], classes=())
    model = Model(begin, {layer.name: cnv.arrays[layer.name] for layer in begin.layers})
    tries = Tries(model, Budget(), 64, SETTINGS, [False])
    assert "window former" in varied(tries)
    mapped_npus = tries.mapped_npus(Task(tries.connections.possible[0], tries.first, 7_138, Price(npu=-10_000)))
    assert mapped_npus is not None
    assert [mapped_npu.npu.former is not None for mapped_npu in mapped_npus] == [True, False]


def test_memories_are_sized_once_for_all_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where DSP blocks are dear: then NPUs with fewer of them are looked at, too."""
    choices = NpuChoices(layers(networks.load("cifar-quick-int8")), 64)
    sized = Mock(side_effect=choices.sized)
    monkeypatch.setattr(choices, "sized", sized)
    assert Chain(choices).cheapest(200_000, Price())
    count = sized.call_count
    assert choices.kept == count > 0
    plain = Chain(choices).cheapest(200_000, Price(npu=1))
    assert sized.call_count == count
    dear = Chain(choices).cheapest(200_000, Price(dsp=1_000))
    assert sized.call_count < 2 * count, "only what a cheaper chain needs comes to it"
    kernels = [[mapped_npu.npu.array.kernels_per_multiplier for mapped_npu in each or ()] for each in (plain, dear)]
    assert max(kernels[0]) == 1 < max(kernels[1])


def test_only_what_lies_on_a_way_of_npus_that_are_fast_enough_is_sized() -> None:
    """No chain takes 90 cycles a frame, as a layer takes more on any NPU; others would keep to it."""
    choices = NpuChoices(layers(networks.load("digits-cnn")), 64)
    assert any(choices.foldings((i,), bare, 90).before(None) for i in (3, 4) for bare in choices.bare((i,)))
    assert Chain(choices).cheapest(90, Price()) is None
    assert choices.kept == 0


def test_what_was_asked_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(networks.load("digits-cnn"), Budget(), 64, SETTINGS, [False])
    tasks = [Task(tries.connections.possible[0], setting, 2_000, Price()) for setting in SETTINGS]
    choices = [tries.choices[tries.engines[0], setting] for setting in SETTINGS]
    npus = [tries.mapped_npus(task) for task in tasks]
    kept = [each.kept for each in choices]
    assert all(kept), "there is room for all"
    monkeypatch.setattr("bitloom.overlay.explore.tries.KEPT", kept[0] + kept[2])
    assert tries.mapped_npus(tasks[0]) == npus[0]
    assert [each.kept for each in choices] == [kept[0], 0, kept[2]]
    assert tries.mapped_npus(tasks[1]) == npus[1]
    assert [each.kept for each in choices][:2] == [kept[0], kept[1]]


def test_an_elder_counts_with_who_asks_it_and_is_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Tries(networks.load("digits-cnn"), Budget(), 64, SETTINGS, [False])
    elder, younger, other = (tries.choices[tries.engines[0], setting] for setting in SETTINGS)
    assert younger.elder is elder
    assert tries.mapped_npus(Task(tries.connections.possible[0], SETTINGS[1], 2_000, Price()))
    count = elder.kept
    assert count > 0
    monkeypatch.setattr("bitloom.overlay.explore.tries.KEPT", 0)
    tries._make_room(elder)
    tries._make_room(younger)
    assert elder.kept == count
    tries._make_room(other)
    assert (elder.kept, younger.kept) == (0, 0)


def test_npus_that_a_search_keeps_share_parts_that_are_equal() -> None:
    choices = NpuChoices(layers(networks.load("digits-cnn")), 64)
    assert Chain(choices).cheapest(5_000, Price())
    npus = [(indices, sized.npu) for (indices, _), sized in choices._known.sized.items() if sized]
    for name in ("results", "pool_unit", "stores", "ports", "loader"):
        parts = [getattr(npu, name) for _, npu in npus]
        assert len({*map(id, parts)}) == len({*parts}) < len(npus) / 2
    assert all(npu == choices.sized(indices, npu) for indices, npu in npus)


def test_cycles_are_those_of_the_layer_as_an_npu_reads_it() -> None:
    """A window former behind inlet "host" forms the frame, so that the second layer of the NPU takes its taps one by
    one; alone on an NPU like that but for its inlets, the former forms that layer's."""
    demands = layers(networks.load("digits-cnn"), "raster")
    choices = NpuChoices(demands, 64)
    npus = {run: next(npu for npu in choices.bare(run) if npu.former and npu.array.kfp == 24) for run in ((0, 1), (1,))}
    assert len({ARRAY_CYCLES(npu) for npu in npus.values()}) == 1
    cycles = [choices.cycles(run, npu) for run, npu in npus.items()]
    assert cycles == [NpuChoices(demands, 64).cycles(run, npu) for run, npu in npus.items()]
    assert [demands[1].seen_by(npu).array_cycles(npu, OUT) for npu in npus.values()] == [10_688, 6_912]


@pytest.mark.parametrize("name", ["digits-cnn", "cifar-quick-int8", "digits-residual"])
def test_the_array_takes_no_longer_with_more_results_a_cycle(name: str) -> None:
    """Nor with the fastest numbers of what is tried beside: so the search leaves out OLs that are too few with them."""
    choices = NpuChoices(layers(networks.load(name)), 64)
    slower = 0
    pairs = [(i, bare) for i in range(len(choices.layers)) for bare in choices.bare((i,))]
    for i, bare in pairs:
        kernels = choices.layers[i].kernels
        for kgp in {1, 7, kernels // 3 + 1, kernels}:
            npus = [bare.unchecked(kgp=kgp, ol=ol) for ol in splits(kgp)]
            fastest = {key: value for key, value in FASTEST.items() if key in TRIED[bare.engine]}
            by_numbers = list[list[int]]()
            for tried in (npus, [npu.unchecked(**fastest) for npu in npus]):
                cycles = [choices.layers[i].seen_by(npu).array_cycles(npu, OUT) for npu in tried]
                assert cycles == sorted(cycles, reverse=True)
                slower += len({*cycles}) > 1
                by_numbers.append(cycles)
            plain, faster = by_numbers
            assert all(fast <= slow for slow, fast in zip(plain, faster))
    assert slower


@pytest.mark.slow
def test_a_chain_takes_what_its_slowest_layer_takes() -> None:
    """Also where tuples that no tap reads cost cycles, as in raster order without counters."""
    tries = Tries(networks.load("cnv-w1a1"), Budget(), 64, SETTINGS, [False])
    assert tries.first.words == "raster"
    connection = tries.connections.possible[0]
    mapped_npus = tries.mapped_npus(Task(connection, tries.first, 7_138, Price(npu=-10_000)))
    assert mapped_npus is not None
    choices = tries.connections.of(connection, tries.first)
    slowest = max(choices.cycles(mapped_npu.indices, mapped_npu.npu) for mapped_npu in mapped_npus)
    predicted = figures(tries.model, tries.candidate(mapped_npus, tries.first))
    assert predicted is not None
    assert predicted.cycles == slowest == 7_138


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("digits-cnn", [(24_654, 1_900), (1_594, 2_450), (484, 5_150)]),
        ("cnv-w1a1", [(13_248, 14_000), (22_771, 9_600)]),
    ],
)
@pytest.mark.slow
def test_long_intervals_are_swept_in_pull_order_too(name: str, points: list[tuple[int, int]]) -> None:
    """A window former needs raster order, which takes more LUTs for as many cycles where nothing else needs it."""
    budget = Budget.of_board(board("pynq-z2"), error()["worst"])
    front = explore(networks.load(name), budget).front
    assert front[0].candidate.npus[0].former
    for cycles, lut in points:
        assert any(row.figures.cycles <= cycles and row.figures.lut <= lut for row in front), (cycles, lut)


@pytest.mark.slow
def test_cnv_takes_a_line_of_taps_a_beat() -> None:
    budget = Budget.of_board(board("pynq-z2"), error()["worst"])
    best = explore(networks.load("cnv-w1a1"), budget).best
    assert best is not None
    assert best.figures.cycles <= 5_484


def row(cycles: float, lut: int) -> Row:
    candidate = Candidate("net", (Npu.of(),), (0,))
    return Row(candidate, Figures(Resources(lut=lut), 64, cycles, 100), 1, True)


def test_budget() -> None:
    budget = Budget.of_board(board("pynq-z2"), lut=20_000, cycles=None)
    assert budget == Budget(lut=20_000, lutram=17_400, ff=106_400, bram36=140, dsp=220)
    assert Budget.of_board(board("pynq-z2"), margin=0.25, share=0.5).lut == 21_280
    over = Figures(Resources(lut=19_000, lutram=2_000, bram36=70), 64, 10, 10)
    assert budget.excess(over) == {"lut": 1.05}
    in_pairs = Figures(Resources(lut=25_000, pairs=8_000, lutram=3_000), 64, 10, 10)
    assert budget.holds(in_pairs)
    memory = Figures(Resources(lutram=20_000), 64, 10, 10)
    assert budget.excess(memory) == {"lutram": 20_000 / 17_400}
    full = Figures(Resources(lut=18_000, lutram=2_000), 64, 10, 10)
    assert Budget(lut=20_000, cycles=10).holds(full), "a limit may be met exactly"
    with value_error("budget: lut must be > 0 and finite, got -1"):
        Budget(lut=-1)


def test_boards() -> None:
    assert board("pynq-z1").holds(Resources(lut=53_000, lutram=200, ff=106_400, bram36=140, dsp=220))
    assert not board("pynq-z1").holds(Resources(lut=53_001, lutram=200))
    assert board("pynq-z1").holds(Resources(lut=60_000, pairs=24_200, lutram=17_400))
    assert not board("pynq-z1").holds(Resources(lutram=17_401))
    assert all(0.3 * each.lut < each.lutram < each.lut / 2 or each.name == "RFSoC4x2" for each in BOARDS.values())
    with value_error(f"board: name must be one of {', '.join(BOARDS)}, got 'zed'"):
        board("zed")


def test_foldings_without_map_order() -> None:
    data = Candidate("net", (Npu.of(),), (0,)).to_dict()
    del data["map_order"]
    with value_error("map_order must be one of pull, raster, columns, auto, got None"):
        Candidate.from_dict(data)


def double(number: int) -> int:
    return 2 * number


def test_a_search_tries_the_same_with_any_number_of_processes(monkeypatch):
    """Processes begin as they do on macOS and Windows, and on Linux from Python 3.14 on: what they need is pickled."""
    monkeypatch.setattr(workers, "ProcessPoolExecutor", partial(ProcessPoolExecutor, mp_context=get_context("spawn")))
    model = networks.load("digits-cnn")
    one, two = (
        explore(
            model, Budget(lut=20_000), map_order="raster", effort=Effort(points=1, halvings=1, workers=Workers(jobs))
        )
        for jobs in (1, 2)
    )
    assert one.tried == two.tried
    assert [(row.figures.cycles, row.figures.lut) for row in one.front] == [
        (row.figures.cycles, row.figures.lut) for row in two.front
    ]
    assert lines(one.front) == FRONTS["digits-cnn, one point"]


def test_the_sweep_is_in_the_order_in_which_window_formers_feed_most_layers() -> None:
    """In pull order they can feed the last layer of digits-cnn alone, in raster order the first two."""
    tries = Tries(networks.load("digits-cnn"), Budget(), 64, SETTINGS, [False])
    assert [setting.map_order for setting in tries.connections.swept] == ["raster", "pull"]


def test_workers() -> None:
    assert list(Workers().map(double, [1, 2])) == list(Workers(jobs=2).map(double, [1, 2])) == [2, 4]
    for jobs in (0, 257):  # all processes would be begun at once
        with value_error(f"workers: jobs must be 1..256, got {jobs}"):
            Workers(jobs)


@pytest.mark.slow
def test_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        assert list(Workers(scheduler=cluster.scheduler_address).map(abs, [-1, 2])) == [1, 2]
        model = networks.load("digits-cnn")
        effort = Effort(points=1, halvings=0, workers=Workers(scheduler=cluster.scheduler_address))
        there = explore(model, Budget(lanes=100), map_order="raster", effort=effort)
    here = explore(model, Budget(lanes=100), map_order="raster", effort=Effort(points=1, halvings=0))
    assert [r.figures for r in there.front] == [r.figures for r in here.front]


def test_halves_the_gap_to_the_fastest_interval_that_fits() -> None:
    def row(asked: int, **over: float) -> Row:
        values = {"lut": 90, "cycles": asked, "latency": 5, **over}
        area = Resources(lut=int(values["lut"]), ff=0, bram36=0, lutram=0, dsp=0, carry4=0)
        row_figures = Figures(area, 1, values["cycles"], int(values["latency"]))
        return Row(Candidate("n", (), ()), row_figures, asked, not over)

    budget = Budget(lut=100, latency=10)
    rows = [row(100, lut=101), row(400, lut=200, cycles=410), row(400, lut=300), row(900, latency=11), row(2500)]
    assert between_fitting(rows, budget) == (600, rows[3], rows[2]), "what is only late fits: it can be refined"
    assert between_fitting(rows[3:], budget) is None, "there is nothing faster"
    assert between_fitting(rows[:3], budget) is None, "nothing fits"
    assert between_fitting([row(100, lut=101), row(101)], budget) is None
    assert between_fitting(rows, Budget(lut=100, cycles=1000)) is None, "a rate is asked for"


def late(cycles: float, latency: int, lut: int = 90) -> Figures:
    return Figures(Resources(lut=lut), 1, cycles, latency)


def late_row(cycles: int, latency: int, lut: int = 90) -> Row:
    return Row(Candidate("n", (), ()), late(cycles, latency, lut), cycles, lut <= 100 and latency <= 10)


def test_what_is_only_late_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best first, as long as it is better than what fits, until one keeps to the latency."""
    tried = []

    def refined(model: Model, candidate: Candidate, known: Figures, budget: Budget) -> tuple[Candidate, Figures]:
        tried.append(known.cycles)
        return candidate, replace(known, latency=10 if known.cycles == 300 else 11)

    monkeypatch.setattr(search, "refine", refined)
    budget = Budget(lut=100, latency=10)
    fits = late_row(500, 5)
    rows = [late_row(400, 20), late_row(300, 20), late_row(200, 20), late_row(100, 20, lut=101)]
    rows += [late_row(600, 20), fits, late_row(250, 20)]
    refined_rows = search._refined(Mock(), rows, budget, fits)
    assert tried == [200, 250, 300]
    assert [(one.figures, one.asked, one.fits) for one in refined_rows] == [(late(300, 10), 300, True)]
    assert search._refined(Mock(), rows, budget, late_row(200, 5)) == []
    refined_rows = search._refined(Mock(), [late_row(200, 20)], budget, None)
    assert [(one.figures, one.fits) for one in refined_rows] == [(late(200, 11), False)], "nearer, if not near enough"


def test_refinement_costs_no_cycles_unless_a_rate_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"faster": late(100, 50), "slower": late(120, 30), "larger": late(100, 20, lut=101)}
    refining = importlib.import_module("bitloom.overlay.explore.refine")
    monkeypatch.setattr(refining, "_changes", lambda model, candidate: iter(changes))
    monkeypatch.setattr(refining, "figures", lambda model, candidate: changes[candidate])
    old: Any = "old"
    for budget, best in (
        (Budget(lut=100, latency=10), "faster"),
        (Budget(lut=100, latency=10, cycles=130), "slower"),
        (Budget(lut=100, latency=80), "old"),
    ):
        assert refining.refine(Mock(), old, late(100, 80), budget) == (best, changes.get(best, late(100, 80)))


def test_a_price_adds_up() -> None:
    area = Resources(lut=100, ff=30, bram36=1.5, lutram=10, dsp=4)
    price = Price(bram36=2, dsp=3, lanes=0.5, ff=0.25, npu=-7)
    assert price.of(area, 8) == 110 + 3 + 12 + 4 + 7.5 - 7
    assert replace(price, limits={"dsp": 2, "ff": 30}).of(area, 8) == price.of(area, 8) + 1e7
    assert [each.saves_dsp for each in (Price(), Price(dsp=1), Price(limits={"dsp": 9}))] == [False, True, True]


def test_what_a_refinement_tries() -> None:
    """Another dataflow of a layer alone on its NPU, unless it has one group, and twice the KGP behind the first NPU:
    number of the NPU, its accumulators and KGP, and the layers that are input stationary."""
    refining = importlib.import_module("bitloom.overlay.explore.refine")
    name = "lfc-w1a1"
    npus = REFERENCE_DESIGNS[name].npus
    given = Candidate(name, npus, (0, 1, 2, 3), dataflow={"dense_1": "input_stationary"})
    tried = [
        (n, npu.array.accumulators, npu.array.kgp, [*change.dataflow])
        for change in refining._changes(networks.load(name), given)
        for n, npu in enumerate(change.npus)
        if npu != npus[n]
    ]
    assert tried == [
        (0, 64, 32, ["dense_1", "dense_0"]),
        (1, 1, 32, []),
        (1, 64, 64, ["dense_1"]),
        (2, 64, 32, ["dense_1", "dense_2"]),
        (2, 1, 64, ["dense_1"]),
    ]


@pytest.mark.slow
def test_more_halvings_come_nearer_to_the_budget() -> None:
    model = networks.find("digits-cnn")
    budget = Budget(lut=5_000)
    cycles = []
    for halvings in (0, 2):
        progress = Mock()
        effort = Effort(points=2, halvings=halvings)
        best = explore(model, budget, map_order="raster", effort=effort, progress=progress).best
        assert best is not None
        assert budget.holds(best.figures)
        assert len(set(progress.call_args.args)) == 1, "at the end all is done"
        told = list(dict.fromkeys(call.kwargs["what"] for call in progress.call_args_list))
        first = ["intervals that may fit", "sweep", "streamed weights", "variations"]
        assert told == [*first, *["shorter intervals"] * bool(halvings), "latency"]
        cycles.append(best.figures.cycles)
    assert cycles[0] > cycles[1]


def test_the_pool_is_as_narrow_as_the_interval_allows() -> None:
    """B19: half of a chosen PFP would cost cycles, latency or LUTs, in every design of the front."""
    model = networks.load("digits-cnn")
    narrower = 0
    effort = Effort(points=2, halvings=0)
    front = explore(model, Budget(lut=20_000), map_order="raster", effort=effort).front
    assert lines(front) == FRONTS["digits-cnn, 20,000 LUTs"]
    for row in front:
        npus = row.candidate.npus
        known = row.figures
        for n, npu in enumerate(npus):
            if npu.pool_unit and present(npu.pool_unit).pfp > 1:
                half = (*npus[:n], npu.changed(pfp=present(npu.pool_unit).pfp // 2), *npus[n + 1 :])
                predicted = figures(model, replace(row.candidate, npus=half))
                costs = (
                    zip((predicted.cycles, predicted.latency, predicted.lut), (known.cycles, known.latency, known.lut))
                    if predicted
                    else []
                )
                assert predicted is None or any(narrow > chosen for narrow, chosen in costs), npu
                narrower += 1
    assert narrower


def test_cycles_of_objects_are_looked_for_less_often_during_a_search() -> None:
    model = networks.load("digits-cnn")
    before = gc.get_threshold()
    seen = set[int]()
    search.explore(
        model,
        Budget.of_board(board("Pynq-Z2")),
        map_order="pull",
        effort=Effort(points=1, halvings=0),
        progress=lambda *_, **__: seen.add(gc.get_threshold()[0]),
    )
    assert max(seen) == search.SELDOM * before[0]
    assert gc.get_threshold() == before


def test_foldings_are_kept_for_several_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = NpuChoices(layers(networks.load("digits-cnn")), 64)
    known = choices.by_kfp((0,), 1_000)
    choices.by_kfp((0,), 2_000)
    assert choices.by_kfp((0,), 1_000) is known
    monkeypatch.setattr(one_npu, "KEPT", 1)
    choices.by_kfp((0,), 3_000)
    assert choices.by_kfp((0,), 1_000) is not known


def test_streamed_weights_are_tried_where_memory_alone_lacks() -> None:
    """Of LUTs, those of memory are none of logic. Where something fits at an interval, nothing is streamed for it."""
    tries = Tries(networks.load("digits-cnn"), Budget(lut=1_000, bram36=10, cycles=100), 64, SETTINGS)

    def row(asked: int, lut: int, lutram: int = 0, bram36: float = 20, cycles: int = 200) -> Row:
        row_figures = Figures(Resources(lut=lut, lutram=lutram, bram36=bram36), 1, cycles, cycles)
        return Row(Candidate("digits-cnn", (), ()), row_figures, asked, tries.budget.holds(row_figures))

    rows = [row(1, 900), row(2, 1_100), row(3, 900, 200), row(4, 900, bram36=5), row(5, 900)]
    rows.append(row(5, 900, bram36=5, cycles=100))
    assert [task.interval for task in search._streamed(tries, rows)] == [1, 3]
