"""The search: chains and rings for a sweep of intervals, each tried in the flow model; of these the Pareto front.

    intervals x prices --chain.py, ring.py--> candidates --flow model, area model--> figures --budget--> front
                                                 ^------- variations.py -------------------------'
                                                                                   `--> the best, refined (refine.py)

Nothing is returned that ``size_memories``, the compiler's plan and the flow model did not accept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.golden.network import Model

from .budget import Budget
from .one_npu import Price
from .ranking import best_of, between_fitting, late_at_most, merit, pareto, worst_excess
from .refine import refine
from .tries import FEW_NPUS, Joining, Row, Task, Tries
from .variations import SETTINGS, MapSetting, setting_of
from .workers import Workers

POINTS = 9
"""Intervals of a sweep."""
HALVINGS = 1
"""Times that the gap between the fastest interval that fits and the next shorter one is halved."""
REFINED = 3
"""Chains that are refined at most, where they keep to all but the latency."""
PRICES = (FEW_NPUS, Price(npu=-900), Price(npu=-10_000))
"""An NPU costs about 900 LUTs beside its lanes. Without that price there are more of them, so that less waits for
another, and with the last price there is one a layer. Long intervals are tried with the first ones only."""
SPARSE = 3
"""Of so many intervals of a sweep one is also tried with rings, and with other engines."""
VARIED, ROUNDS = 4, 2
"""Rows that are varied at a time, and how often: the second time those that came of the first."""
MAP_ORDERS = ("both", *dict.fromkeys(setting.map_order for setting in SETTINGS))
"""What ``explore`` takes as map order."""

THIS_PROCESS = Workers()

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long a search takes, and who does it.

    Attributes
    ----------
    points
        Intervals of the sweep; where a rate is asked for, those that are near it are tried, too.
    halvings
        Times that, after the sweep, the gap between the fastest interval that fits and the next shorter one is halved.
        With more than HALVINGS, these intervals are also tried with the last one of PRICES, which takes most of the
        time.
    workers
        Who does the tasks; by default this process.
    """

    points: int = POINTS
    halvings: int = HALVINGS
    workers: Workers = THIS_PROCESS


@dataclass(frozen=True)
class Explored:
    """What a search found.

    Attributes
    ----------
    front
        Rows that no other beats in both LUTs and cycles, fastest first: those within the budget, where there are any.
    best
        What the budget asks for: the fastest row, or the smallest one if a rate is asked for. None where nothing that
        was found keeps to the budget.
    nearest
        Where ``best`` is None: the row that is least over its limits.
    tried
        Designs that were tried.
    varied
        What was varied beside the foldings, a few words each.
    """

    front: tuple[Row, ...]
    best: Row | None
    nearest: Row | None = None
    tried: int = 0
    varied: tuple[str, ...] = ()


def explore(
    model: Model,
    budget: Budget,
    *,
    stream_bits: int = 64,
    map_order: str = "both",
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Explored:
    """Search for NPUs, how they are joined, mapping, lanes and memories with which ``model`` keeps to a budget.

    Parameters
    ----------
    model
        The trained network.
    budget
        What the design may take at most, and the rate or latency that is asked for.
    stream_bits
        Width of both streams, 32 or 64.
    map_order
        Order in which the tuples of each map are computed (spec B7): "pull", "raster", or "both" to try both.
    effort
        How long to search, and on how many processes; by default ``Effort()``.
    progress
        Called with (tasks done, all of them).

    Returns
    -------
    Explored
        The front, and what the budget asks for.

    Raises
    ------
    ValueError
        If there is no such map order, no engine computes the network, or no chain of NPUs was found.

    Examples
    --------
        found = explore(model, Budget.of_board(board("Pynq-Z2"), lut=20_000))
        design = found.best.candidate.design(model)
    """
    effort, tries = effort or Effort(), Tries(model, budget, stream_bits, _settings(map_order))
    sweep = _sweep(tries, effort)
    count = _Counter(len(sweep) + ROUNDS * VARIED + effort.halvings * len(_prices(effort)) + 1, progress)
    rows = list(count.rows(effort.workers, tries.rows, sweep))
    rows += count.rows(effort.workers, tries.rows, _streamed(tries, rows))
    for _ in range(ROUNDS):
        rows += count.rows(effort.workers, tries.varied, _to_vary(rows, budget))
    for _ in range(effort.halvings):
        rows += count.rows(effort.workers, tries.rows, _between(rows, budget, effort))
    fitting = _fitting(model, rows, budget)
    count.end()
    return Explored(
        front=tuple(pareto(fitting or rows)),
        best=best_of(fitting, budget),
        nearest=None if fitting else min(rows, key=lambda row: worst_excess(row, budget)),
        tried=len({row.candidate.key for row in rows}),
        varied=_varied(tries),
    )


def _settings(map_order: str) -> list[MapSetting]:
    """The settings of a map order, or of both."""
    if map_order not in MAP_ORDERS:
        raise ValueError(f"explore: map_order must be one of {', '.join(MAP_ORDERS)}, got {map_order!r}")
    return [setting for setting in SETTINGS if map_order in ("both", setting.map_order)]


def _sweep(tries: Tries, effort: Effort) -> list[Task]:
    """The tasks of the sweep. The longer its intervals, the fewer prices they are tried with; of ways beside the first
    one, fewer intervals are tried."""
    first, *others = tries.ways()
    setting, free = tries.settings[0], tries.budget.cycles is None
    intervals = tries.intervals(effort.points)
    own = [
        Task(first, setting, interval, price)
        for k, interval in enumerate(intervals)
        for price in PRICES[: 3 - k // 3 * free]
    ]
    return own + [Task(way, setting, interval, FEW_NPUS) for way in others for interval in intervals[::SPARSE]]


def _streamed(tries: Tries, rows: Sequence[Row]) -> list[Task]:
    """Tasks with streamed weights, for the intervals of the sweep at which nothing fits and block RAM lacks.

    Raises
    ------
    ValueError
        If the sweep found nothing at all.
    """
    if not rows:
        raise ValueError(f"{tries.model.network.name}: no folding was found")
    if len(tries.layers) == 1:
        return []
    asked = dict.fromkeys(row.asked for row in rows)
    fits = {row.asked for row in rows if row.fits}
    lacks = {row.asked for row in rows if "bram36" in tries.budget.excess(row.figures)}
    setting = replace(tries.settings[0], streamed=True)
    return [Task(tries.ways()[0], setting, interval, FEW_NPUS) for interval in asked if interval in lacks - fits]


def _prices(effort: Effort) -> Sequence[Price]:
    """Prices that an interval between two others is tried with."""
    return PRICES[:2] if effort.halvings <= HALVINGS else PRICES


def _between(rows: Sequence[Row], budget: Budget, effort: Effort) -> list[Task]:
    """The tasks of the next halving, as the best row is joined; none where no interval is left between two."""
    interval = between_fitting(rows, budget)
    best = best_of([row for row in rows if late_at_most(row, budget)], budget)
    if interval is None or best is None:
        return []
    ring = best.candidate.mapping if best.candidate.closed else None
    way, prices = Joining(best.candidate.engines, ring), _prices(effort) if ring is None else [FEW_NPUS]
    return [Task(way, setting_of(best.candidate), interval, price) for price in prices]


def _to_vary(rows: Sequence[Row], budget: Budget) -> list[Row]:
    """Rows that are worth to be varied: the best one, and others of the front, far from each other; where nothing fits,
    those that are least over their limits."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        return sorted(rows, key=lambda row: worst_excess(row, budget))[:VARIED]
    best, front = best_of(fitting, budget), pareto(fitting)
    over = [row for row in rows if not row.fits and merit(row, budget) < merit(best, budget)]
    near = sorted(over, key=lambda row: worst_excess(row, budget))[:1]  # a variation may bring it within its limits
    step = max(1, len(front) // max(1, VARIED - 1))
    return ([best, *near] + [row for row in front[::step] if row is not best])[:VARIED]


def _varied(tries: Tries) -> tuple[str, ...]:
    """What a search varies beside foldings."""
    ways = tries.ways()
    sizes = sorted({max(way.ring) + 1 for way in ways if way.ring})
    found = ["pipelines, cascades and single NPUs" if len(tries.layers) > 1 else "lanes of one NPU"]
    if sizes:
        found.append(f"rings of {' and '.join(map(str, sizes))} NPUs")
    orders = list(dict.fromkeys(setting.map_order for setting in tries.settings))
    found.append(f"map order {' and '.join(orders)}")
    if any(setting.counters for setting in tries.settings):
        found.append("tables and counters")
    found.append("both dataflows")
    if len(tries.layers) > 1:
        found.append("streamed weights")
    if len({engine for way in ways for engine in way.engines}) > 1:
        found.append("NPUs of both engines")
    return tuple(found)


class _Counter:
    """Counts tasks that are done, for a progress bar."""

    def __init__(self, total: int, progress: Progress | None):
        self._total, self._progress, self._done = total, progress, 0

    def rows(self, workers: Workers, work: Callable[[Any], list[Row]], tasks: Sequence[Any]) -> Iterator[Row]:
        """What ``work`` gives for the tasks, counted one by one."""
        for found in workers.map(work, tasks):
            self._done += 1
            self._tell(self._done)
            yield from found

    def end(self) -> None:
        """All is done, also where fewer halvings were needed."""
        self._tell(self._total)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._total)


def _fitting(model: Model, rows: Sequence[Row], budget: Budget) -> list[Row]:
    """The rows that fit, and one that was refined until it did."""
    found = [row for row in rows if row.fits]
    refined = _refined(model, rows, budget, best_of(found, budget))
    return found if refined is None else [*found, refined]


def _refined(model: Model, rows: Sequence[Row], budget: Budget, best: Row | None) -> Row | None:
    """The best row that fails only by its latency, refined until it keeps to it.

    Rows that are no better than ``best`` are not looked at; None where none comes down to the latency.
    """
    near = {
        merit(row, budget): row
        for row in rows
        if not row.fits and late_at_most(row, budget) and (best is None or merit(row, budget) < merit(best, budget))
    }
    for _, row in sorted(near.items())[:REFINED]:
        candidate, found = refine(model, row.candidate, row.figures, budget)
        if budget.holds(found):
            return Row(candidate, found, row.asked, True)
    return None
