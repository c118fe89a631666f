"""The search: chains and rings for a sweep of intervals, each tried in the flow model; of these the Pareto front.

    intervals x prices --chain.py, ring.py--> candidates --flow model, area model--> figures --budget--> front
                                                 ^------- variations.py -------------------------'
                                                                                   `--> the best, refined (refine.py)

Nothing is returned that ``size_memories``, the compiler's plan and the flow model did not accept.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bitloom.golden.file import model_digest
from bitloom.golden.network import Model
from bitloom.overlay.deploy.wheel import package_digest

from .budget import Budget
from .in_partitions import cut_rows, tasks
from .journal import Journal
from .price import Price
from .promising import promising
from .ranking import best_of, between_fitting, late_at_most, merit, pareto, worst_excess
from .refine import refine
from .searched import SEARCHED
from .task import FEW_NPUS, Task
from .tries import Row, Tries
from .variations import SETTINGS, MapSetting, setting_of
from .workers import Workers

POINTS = 9
"""Intervals of a sweep."""
HALVINGS = 6
"""Times that the gap between the fastest interval that fits and the next shorter one is halved."""
REFINED = 3
"""Chains that are refined at most, where they keep to all but the latency."""
PRICES = (FEW_NPUS, Price(npu=-900), Price(npu=-10_000))
"""An NPU costs about 900 LUTs beside its lanes. Without that price there are more of them, so that less waits for
another, and with the last price there is one a layer. Long intervals are tried with the first ones only."""
SPARSE = 3
"""Of so many intervals of a sweep one is also tried with rings, and with other engines."""
VARIED, ROUNDS = 2, 2
"""Rows that are varied at a time for each setting of the sweep, beside the best and the nearest one, and how often: the
second time those that came of the first."""
MAP_ORDERS = ("both", *dict.fromkeys(setting.map_order for setting in SETTINGS))
"""Values of ``map_order`` of ``explore``."""
STREAMED_WEIGHTS = {"auto": (False, True), "never": (False,), "always": (True,)}
"""Whether weights come down the stream: what of it is tried."""

SELDOM = 1_000
"""How many times more objects than otherwise come before cycles of objects are looked for: a search keeps very many
objects, of which hardly any lie in cycles."""

THIS_PROCESS = Workers()
SearchProgress = Callable[..., None]
"""Takes tasks that are done and all of them, and by the name ``what`` what is under way."""


class Counter:
    """Counts tasks that are done, for a progress bar."""

    def __init__(self, workers: Workers, progress: SearchProgress | None, journal: Journal):
        self.total: int | None = None
        self._journal = journal
        self._workers = workers
        self._progress = progress
        self._what = ""
        self._done = self._looked_at = 0
        self.begin("intervals that may fit")

    def begin(self, what: str) -> None:
        """Something is under way."""
        self._what = what
        self._tell(self._done)

    def looked_at(self) -> None:
        """One more interval was looked at, before it is known how many tasks there are."""
        self._looked_at += 1
        self._tell(self._looked_at)

    def rows(self, what: str, work: Callable[[Any], list[Row]], tasks: Sequence[Any], out: list[Row]) -> None:
        """Append what ``work`` gives for the tasks to ``out``, counted one by one; ``what`` is under way. Tasks that
        were done before are not done again."""
        self.begin(what)
        before = self._journal.done(len(tasks))
        out += [row for rows in before for row in rows]
        self._done += len(before)
        self._tell(self._done)
        for rows in self._workers.map(work, tasks[len(before) :]):
            self._journal.keep(rows)
            out += rows
            self._done += 1
            self._tell(self._done)

    def end(self) -> None:
        """All is done, also where fewer halvings were needed."""
        self._tell(self.total)

    def _tell(self, done: int | None) -> None:
        if self._progress is not None:
            if self.total is not None and done is not None:  # streamed weights and partitions come on top
                self.total = max(self.total, done)
            self._progress(done, self.total, what=self._what)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long a search takes, what it leaves out, and who does it."""

    points: int = POINTS
    """Intervals of the sweep; where a rate is asked for, those that are near it are tried, too."""
    halvings: int = HALVINGS
    """Times that, after the sweep, the gap between the fastest interval that fits and the next shorter one is
    halved. With more than HALVINGS, these intervals are also tried with the last one of PRICES, which takes most of
    the time."""
    workers: Workers = THIS_PROCESS
    """Who does the tasks; by default this process."""
    streamed_weights: str = "auto"
    """Whether weights that come down the stream are tried: one of STREAMED_WEIGHTS, "auto" where block RAM lacks."""

    def __post_init__(self) -> None:
        known = ", ".join(STREAMED_WEIGHTS)
        got = self.streamed_weights
        if got not in STREAMED_WEIGHTS:
            raise ValueError(f"explore: streamed_weights must be one of {known}, got {got!r}")


@dataclass(frozen=True)
class Explored:
    """The designs that a search found, and how."""

    front: tuple[Row, ...]
    """Rows that no other beats in both LUTs and cycles, fastest first: those within the budget, where there are any."""
    best: Row | None
    """The row that the budget asks for: the fastest one, or the smallest one if a rate is asked for. None where no row
    keeps to the budget."""
    nearest: Row | None = None
    """Where ``best`` is None: the row that is least over its limits."""
    tried: int = 0
    """Designs that were tried."""
    varied: tuple[str, ...] = ()
    """Things that were varied beside the foldings, a few words each."""
    layers: tuple[str, ...] = ()
    """Names of the layers as the mapping of the best candidate, or of the nearest one, counts them, in the order of
    computing."""
    interrupted: bool = False
    """Whether the search was interrupted, so that there may be better designs."""

    @property
    def shown(self) -> Row | None:
        """The best row; where nothing fits, the nearest one."""
        return self.best or self.nearest


def explore(
    model: Model | Sequence[Model],
    budget: Budget,
    *,
    stream_bits: int = 64,
    map_order: str = "both",
    effort: Effort | None = None,
    progress: SearchProgress | None = None,
    resume: Path | None = None,
) -> Explored:
    """Search for NPUs, how they are connected, mapping, lanes and memories with which ``model`` keeps to a budget.

    Parameters
    ----------
    model
        The trained network, or several: one design computes them in turn, and cycles and latency are sums over a frame
        of each.
    budget
        Limits of the design, and the rate or latency that is asked for.
    stream_bits
        Width of both streams, 32 or 64.
    map_order
        Order in which the tuples of each map are computed (spec B7): "pull", "raster", or "both" to try both.
    effort
        How long to search, and on how many processes; by default ``Effort()``.
    progress
        Called with (tasks done, all of them, what="what is under way"); all of them is None as long as they are chosen.
    resume
        File in which the tasks that are done are kept until the search is at its end. Where it is there, from the same
        search, they are not done again; the file of another search is replaced.

    Returns
    -------
    Explored
        The front, and what the budget asks for.

    Raises
    ------
    ValueError
        If there is no such map order, no engine computes the network, no chain of NPUs was found, or the file to resume
        from is no search.

    Examples
    --------
        explored = explore(model, Budget.of_board(board("Pynq-Z2"), lut=20_000))
        design = explored.best.candidate.design(model)
    """
    effort = effort or Effort()
    tries = Tries(model, budget, stream_bits, _settings(map_order), STREAMED_WEIGHTS[effort.streamed_weights])
    journal = Journal()
    if resume is not None:
        search = {
            "bitloom": package_digest(),
            "networks": [model_digest(each) for each in ([model] if isinstance(model, Model) else model)],
            "budget": asdict(budget),
            "stream_bits": stream_bits,
            "map_order": map_order,
            "effort": [effort.points, effort.halvings, effort.streamed_weights],
        }
        journal = Journal(resume, search)
    rows = list[Row]()
    try:
        with _seldom_collected():
            _search(tries, effort, Counter(effort.workers, progress, journal), rows)
    except KeyboardInterrupt:
        if not rows:
            raise
        return replace(_explored(tries, rows), interrupted=True)
    journal.end()
    return _explored(tries, rows)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Cycles of objects are looked for SELDOM times less often, also in processes that begin here."""
    first, *others = gc.get_threshold()
    gc.set_threshold(SELDOM * first, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def _search(tries: Tries, effort: Effort, count: Counter, rows: list[Row]) -> None:
    """Append all rows that are tried to ``rows``, each as soon as it is known."""
    sweep = _sweep(tries, effort, count)
    at_a_time = 2 + VARIED * len(tries.connections.swept)
    count.total = len(sweep) + ROUNDS * at_a_time + effort.halvings * len(_prices(effort)) + 1
    for order in dict.fromkeys(task.setting.map_order for task in sweep):
        tries.know(rows)
        count.rows("sweep", tries.rows, [task for task in sweep if task.setting.map_order == order], rows)
    if not rows:
        count.rows("nearest", tries.nearest, [sweep], rows)
    count.rows("streamed weights", tries.rows, _streamed(tries, rows), rows)
    for _ in range(ROUNDS):
        count.rows("variations", tries.varied, _to_vary(rows, tries.budget, at_a_time), rows)
    for _ in range(effort.halvings):
        tries.know(rows)
        count.rows("shorter intervals", tries.rows, _between(tries, rows, effort), rows)
    count.begin("latency")
    if not tries.also:
        best = best_of([row for row in rows if row.fits], tries.budget)
        rows += _refined(tries.model, rows, tries.budget, best)
        count.rows("partitions", partial(_in_partitions, tries, effort), _to_cut(tries, rows), rows)
    count.end()


def _to_cut(tries: Tries, rows: Sequence[Row]) -> list[Budget]:
    """The budget but for block RAM, where block RAM lacks in every row, and weights may stay on the device, as those of
    partitions do."""
    may_stay = any(not setting.streamed for setting in tries.settings)
    lacks = all("bram36" in tries.budget.excess(row.figures) for row in rows)
    return [replace(tries.budget, bram36=None)] if lacks and may_stay else []


def _in_partitions(tries: Tries, effort: Effort, budget: Budget) -> list[Row]:
    """Rows in partitions, of foldings that keep to a budget."""
    unlimited = Tries(tries.model, budget, tries.stream_bits, tries.given, (False,))
    return cut_rows(unlimited, tries, tasks(unlimited, effort.points))


def _explored(tries: Tries, rows: Sequence[Row]) -> Explored:
    """The designs that were found, with all rows that were tried."""
    fitting = [row for row in rows if row.fits]
    best = best_of(fitting, tries.budget)
    nearest = None if fitting else min(rows, key=lambda row: worst_excess(row, tries.budget))
    return Explored(
        front=tuple(pareto(fitting or rows)),
        best=best,
        nearest=nearest,
        tried=len({row.candidate.key for row in rows}),
        varied=varied(tries),
        layers=tries.names((best or nearest or rows[0]).candidate.engines),
    )


def varied(tries: Tries) -> tuple[str, ...]:
    """The choices that a search varies beside foldings, a few words each."""
    connections = tries.connections.possible
    one_npu = len(tries.layers) == 1 or bool(tries.also)
    rings, chains = (
        sorted({max(each.mapping) + 1 for each in connections if each.mapping and each.closed == closed})
        for closed in (True, False)
    )
    engines = {engine for each in connections for engine in each.engines.names}
    saves = "integer" in engines and tries.budget.dsp is not None
    searched = {
        "raster": any(setting.counters for setting in tries.settings),
        "window_former": any(layer.with_former for choices in tries.choices.values() for layer in choices.layers),
        "line_taps": any(
            layer.with_lines or layer.formed_pools for choices in tries.choices.values() for layer in choices.layers
        ),
        "depthwise": any(each.engines.depthwise for each in connections),
        "kernels_per_multiplier": saves,
        "lut_products": saves and any(layer.adds is not None for layer in tries.layers),
    }
    orders = dict.fromkeys(setting.map_order for setting in tries.settings)
    phrases = {
        "lanes of one NPU" if one_npu else "pipelines, cascades and single NPUs": True,
        f"rings of {' and '.join(map(str, rings))} NPUs": bool(rings),
        f"chains of {' and '.join(map(str, chains))} NPUs that are cut between fork and join": bool(chains),
        f"map order {' and '.join(orders)}": True,
        "both dataflows": not tries.also,
        "streamed weights": len(tries.layers) > 1 and any(setting.streamed for setting in tries.settings),
        "NPUs of both engines": len(engines) > 1,
        **{value.searched: searched.get(value.name, False) for value in SEARCHED},
    }
    return tuple(words for words, there in phrases.items() if there)


def _settings(map_order: str) -> list[MapSetting]:
    """The settings of a map order, or of both."""
    if map_order not in MAP_ORDERS:
        raise ValueError(f"explore: map_order must be one of {', '.join(MAP_ORDERS)}, got {map_order!r}")
    return [setting for setting in SETTINGS if map_order in ("both", setting.map_order)]


def _sweep(tries: Tries, effort: Effort, count: Counter) -> list[Task]:
    """The tasks of the sweep. The longer its intervals, the fewer prices they are tried with, soonest in an order that
    is there for a window former, which pays at short intervals; of connections beside the first one, fewer intervals
    are tried."""
    first, *others = tries.connections.possible
    free = tries.budget.cycles is None
    tasks = list[Task]()
    *for_formers, ordinary = tries.connections.swept
    for setting in (*for_formers, ordinary):
        intervals = tries.intervals(effort.points, setting)
        step = 3 if setting == ordinary else 1
        for k, interval in enumerate(intervals):
            tasks += [Task(first, setting, interval, price) for price in PRICES[: max(1, 3 - k // step * free)]]
            if k % SPARSE == 0:  # beside the first connection, which knows NPUs for this interval
                tasks += [Task(connection, setting, interval, FEW_NPUS) for connection in others]
    return promising(tries, tasks, count.looked_at)


def _streamed(tries: Tries, rows: Sequence[Row]) -> list[Task]:
    """Tasks with streamed weights, for the intervals of the sweep at which nothing fits, block RAM lacks, and all but
    memory keeps to the budget: streamed weights save nothing else.

    Raises
    ------
    ValueError
        If the sweep found nothing at all.
    """
    if not rows:
        raise ValueError(f"{tries.model.network.name}: no folding was found")
    setting = replace(tries.first, streamed=True)
    if len(tries.layers) == 1 or setting not in tries.settings or tries.first.streamed:
        return []
    asked = dict.fromkeys(row.asked for row in rows)
    fits = {row.asked for row in rows if row.fits}
    lacks = {
        row.asked for row in rows if "bram36" in tries.budget.excess(row.figures) and _has_logic(row, tries.budget)
    }
    return [
        Task(tries.connections.possible[0], setting, interval, FEW_NPUS)
        for interval in asked
        if interval in lacks - fits
    ]


def _has_logic(row: Row, budget: Budget) -> bool:
    """Whether a budget has what a row takes beside memory."""
    area = replace(row.figures.area, lutram=0, bram36=0)
    return budget.excess(replace(row.figures, area=area)).keys() <= {"cycles", "latency"}


def _prices(effort: Effort) -> Sequence[Price]:
    """Prices that an interval between two others is tried with."""
    return PRICES[:2] if effort.halvings <= HALVINGS else PRICES


def _between(tries: Tries, rows: Sequence[Row], effort: Effort) -> list[Task]:
    """The tasks of the next halving, connected and in a setting as the best row is, and as the best one at the shorter
    interval; none where no interval is left between two."""
    gap = between_fitting(rows, tries.budget)
    if gap is None:
        return []
    interval, *ends = gap
    joined = dict.fromkeys((tries.connections.connection_of(row.candidate), setting_of(row.candidate)) for row in ends)
    return [
        Task(connection, setting, interval, price)
        for connection, setting in joined
        for price in (_prices(effort) if connection.mapping is None else [FEW_NPUS])
    ]


def _to_vary(rows: Sequence[Row], budget: Budget, count: int) -> list[Row]:
    """So many rows that are worth to be varied: the best one, and others of the front, far from each other; where
    nothing fits, those that are least over their limits."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        return sorted(rows, key=lambda row: worst_excess(row, budget))[:count]
    best = best_of(fitting, budget)
    front = pareto(fitting)
    over = [row for row in rows if not row.fits and merit(row, budget) < merit(best, budget)]
    near = sorted(over, key=lambda row: worst_excess(row, budget))[:1]  # a variation may bring it within its limits
    step = max(1, len(front) // (count - 1))
    return ([best, *near] + [row for row in front[::step] if row is not best])[:count]


def _refined(model: Model, rows: Sequence[Row], budget: Budget, best: Row | None) -> list[Row]:
    """The best row that fails only by its latency, refined until the row keeps to the budget's latency.

    Rows that are no better than ``best`` are not looked at. Where none comes down to the latency, these rows are
    refined as far as they go, so that the nearest one is known.
    """
    near = {
        merit(row, budget): row
        for row in rows
        if not row.fits and late_at_most(row, budget) and (best is None or merit(row, budget) < merit(best, budget))
    }
    late = list[Row]()
    for _, row in sorted(near.items())[:REFINED]:
        candidate, reached = refine(model, row.candidate, row.figures, budget)
        if budget.holds(reached):
            return [Row(candidate, reached, row.asked, True)]
        late.append(Row(candidate, reached, row.asked, False))
    return late
