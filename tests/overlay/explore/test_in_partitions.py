"""Where block RAM lacks for a network, foldings of one NPU are cut for what there is."""

import json
from dataclasses import replace
from functools import cache

import pytest

from bitloom.golden import zoo
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.build import load
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.evaluation.hardware import cycles_by_flow
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.figures import Figures, figures
from bitloom.overlay.explore.in_partitions import MOST_CUT, cut_rows, tasks
from bitloom.overlay.explore.journal import Journal
from bitloom.overlay.explore.search import THIS_PROCESS, Counter, Effort, _to_cut, explore
from bitloom.overlay.explore.tries import Row, Tries
from bitloom.overlay.explore.variations import SETTINGS
from tests.commands import call

NAME = "cifar-quick-int8"
"""Whole it takes 54 BRAM36 at least."""
BUDGET = Budget(lut=20_000, dsp=220, bram36=30)


def rows_within(whole: Budget) -> list[Row]:
    """Of one interval."""
    limit, unlimited = (
        Tries(zoo.load(NAME), budget, 64, SETTINGS, (False,)) for budget in (whole, replace(whole, bram36=None))
    )
    task = min(tasks(unlimited, 7), key=lambda task: abs(task.interval - 180_000))
    return cut_rows(unlimited, limit, [task, task])


@cache
def rows() -> list[Row]:
    return rows_within(BUDGET)


def design_of(row: Row) -> Design:
    return row.candidate.design(zoo.load(NAME))


def test_figures_are_those_of_a_design_in_partitions() -> None:
    (row,) = rows()
    assert row.candidate.topology == f"1 NPU, {sum(row.candidate.partitions.values())} programs"
    by_flow = cycles_by_flow(zoo.load(NAME), design_of(row), row.candidate.choices)
    assert (row.figures.cycles, row.figures.latency) == (by_flow.cycles_per_frame, by_flow.latency)
    assert row.figures.area == estimate(design_of(row))
    assert row.figures.area.bram36 <= BUDGET.bram36
    assert row.fits
    whole = replace(row.candidate, partitions={}).design(zoo.load(NAME))
    assert estimate(whole).bram36 > 2 * row.figures.area.bram36


@pytest.mark.parametrize("cut", ["conv_2", "dense_4"])
def test_a_program_of_one_layer_fills_no_map_store(cut: str) -> None:
    """It is the first one of two programs, or the second one; the other one fills a map store."""
    reached = figures(zoo.load("digits-cnn"), Candidate("digits-cnn", (DIGITS,), (0,) * 4, partitions={cut: 1}))
    assert reached is not None
    assert reached.stores.keys() == {f"npu0.{store}_words" for store in ("map", "pool", "tuple")}


@pytest.mark.sample(1)
@pytest.mark.parametrize("less", [{"lut": 100}, {"dsp": 3}, {"bram36": 1}], ids=str)
def test_nothing_is_cut_that_is_too_large_otherwise_or_has_too_little_block_ram(less: dict[str, float]) -> None:
    assert rows_within(replace(BUDGET, **less)) == []


@pytest.mark.parametrize(("streamed", "cut"), [((False, True), True), ((False,), True), ((True,), False)])
def test_nothing_is_cut_where_all_weights_shall_be_streamed(streamed: tuple[bool, ...], cut: bool) -> None:
    """Programs of a network in partitions have their weights on the device."""
    (row,) = rows()
    little = replace(BUDGET, bram36=1)
    tries = Tries(zoo.load(NAME), little, 64, SETTINGS, streamed)
    assert _to_cut(tries, [replace(row, fits=False)]) == [replace(BUDGET, bram36=None)] * cut


def test_nothing_is_cut_where_a_row_has_enough_block_ram() -> None:
    """Memory alone is not what lacks there."""
    tries = Tries(zoo.load(NAME), BUDGET, 64, SETTINGS)

    def row(lut: int, bram36: int) -> Row:
        of_row = Figures(Resources(lut=lut, bram36=bram36), lanes=1, cycles=1, latency=1)
        return Row(Candidate(NAME, (), ()), of_row, 1, BUDGET.holds(of_row))

    fitting, too_large, lacking, lacking_both = row(900, 30), row(20_001, 30), row(900, 31), row(20_001, 31)
    assert _to_cut(tries, [lacking, lacking_both]) == [replace(BUDGET, bram36=None)]
    assert _to_cut(tries, [lacking, fitting]) == []
    assert _to_cut(tries, [lacking, too_large]) == []


def test_no_more_is_done_than_there_is() -> None:
    """Tasks that come on top, as those of partitions, are among all."""
    told = []
    count = Counter(THIS_PROCESS, lambda done, total, what: told.append((done, total)), Journal())
    count.total = 1
    count.rows("partitions", lambda task: [], [1, 2], [])
    assert told[-2:] == [(1, 1), (2, 2)]


def test_a_file_says_the_cuts() -> None:
    (row,) = rows()
    data = json.loads(json.dumps(row.candidate.to_dict()))
    again = Candidate.from_dict(data)
    assert again.partitions == row.candidate.partitions
    assert again.to_dict() == data
    assert again.key != replace(again, partitions={}).key


@pytest.mark.slow
def test_a_search_cuts_only_where_block_ram_lacks(tmp_path) -> None:
    """The saved design is built as any other."""
    model = zoo.load(NAME)
    explored = explore(model, BUDGET, effort=Effort(points=7, halvings=0))
    assert 1 <= len(explored.front) <= MOST_CUT
    assert all(row.candidate.partitions and row.fits for row in explored.front)
    assert explored.best is not None
    foldings = tmp_path / "foldings.json"
    foldings.write_text(json.dumps(explored.best.candidate.to_dict()))
    words = ["build", NAME, "--foldings", str(foldings), "--out", str(tmp_path / "build"), "--json"]
    facts = json.loads(call(*words).stdout)
    assert facts["programs"] == sum(explored.best.candidate.partitions.values())
    assert facts["area"]["bram36"] == explored.best.figures.area.bram36
    assert load(tmp_path / "build").choices.partitions == explored.best.candidate.partitions
    room = explore(model, replace(BUDGET, bram36=140), effort=Effort(points=7, halvings=0))
    assert not any(row.candidate.partitions for row in room.front)
