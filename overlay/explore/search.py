"""The search: chains for a sweep of intervals, each tried in the flow model; of these the Pareto front.

    intervals x prices --chain.py--> candidates --flow model, area model--> figures --budget--> front
                                                                            `--> the best, refined (refine.py)

Nothing is returned that ``size_memories``, the compiler's plan and the flow model did not accept.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bitloom.golden.network import Model

from .budget import Budget
from .chain import Price
from .layer_demand import layers
from .refine import refine
from .tries import FEW_NPUS, Row, Tries
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

THIS_PROCESS = Workers()

Task = tuple[int, Price]
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
    """

    front: tuple[Row, ...]
    best: Row | None
    nearest: Row | None = None


def explore(
    model: Model,
    budget: Budget,
    *,
    stream_bits: int = 64,
    map_order: str = "pull",
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Explored:
    """Search for NPUs, mapping, lanes and memories with which ``model`` keeps to a budget.

    Parameters
    ----------
    model
        The trained network.
    budget
        What the design may take at most, and the rate or latency that is asked for.
    stream_bits
        Width of both streams, 32 or 64.
    map_order
        Order in which the tuples of each map are computed (spec B7), "pull" or "raster".
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
        If no engine computes the network, or no chain of NPUs was found.

    Examples
    --------
        found = explore(model, Budget.of_board(board("Pynq-Z2"), lut=20_000))
        design = found.best.candidate.design(model)
    """
    effort = effort or Effort()
    tries = Tries(model, layers(model, map_order), budget, stream_bits, map_order)
    sweep = _sweep(tries, effort)
    prices = PRICES[:2] if effort.halvings <= HALVINGS else PRICES
    count = _Counter(len(sweep) + effort.halvings * len(prices) + 1, progress)
    rows = list(count.rows(effort.workers, tries, sweep))
    if not rows:
        raise ValueError(f"{model.network.name}: no folding was found")
    for _ in range(effort.halvings):
        interval = between_fitting(rows, budget)
        if interval is None:
            break
        rows += count.rows(effort.workers, tries, [(interval, price) for price in prices])
    fitting = [row for row in rows if row.fits]
    fitting += [row for row in [_refined(model, rows, budget, _best(fitting, budget))] if row]
    count.end()
    nearest = None if fitting else min(rows, key=lambda row: max(budget.excess(row.figures).values()))
    return Explored(tuple(pareto(fitting or rows)), _best(fitting, budget), nearest)


def _sweep(tries: Tries, effort: Effort) -> list[Task]:
    """The tasks of the sweep. The longer its intervals, the fewer prices they are tried with."""
    free = tries.budget.cycles is None
    return [
        (interval, price)
        for k, interval in enumerate(tries.intervals(effort.points))
        for price in PRICES[: 3 - k // 3 * free]
    ]


class _Counter:
    """Counts tasks that are done, for a progress bar."""

    def __init__(self, total: int, progress: Progress | None):
        self._total, self._progress, self._done = total, progress, 0

    def rows(self, workers: Workers, tries: Tries, tasks: Sequence[Task]) -> Iterator[Row]:
        """What the tasks give, counted one by one."""
        for found in workers.map(tries.rows, tasks):
            self._done += 1
            self._tell(self._done)
            yield from found

    def end(self) -> None:
        """All is done, also where fewer halvings were needed."""
        self._tell(self._total)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._total)


def pareto(rows: Iterable[Row]) -> list[Row]:
    """The rows that no other beats or equals in both LUTs and cycles, fastest first."""
    front: list[Row] = []
    for row in sorted(rows, key=lambda r: (r.figures.cycles, r.figures.lut, r.figures.latency)):
        if not front or row.figures.lut < front[-1].figures.lut:
            front.append(row)
    return front


def _merit(row: Row, budget: Budget) -> tuple[float, float]:
    """What the budget asks to be small: LUTs if a rate is given, else cycles; then the other of the two."""
    pair = (row.figures.lut, row.figures.cycles)
    return pair if budget.cycles is not None else pair[::-1]


def _best(fitting: Sequence[Row], budget: Budget) -> Row | None:
    """The row of those that fit that the budget asks for, None if there is none."""
    return min(fitting, key=lambda row: _merit(row, budget), default=None)


def _late_at_most(row: Row, budget: Budget) -> bool:
    """Whether the row keeps to the budget, but perhaps for the latency, which can be refined."""
    return not set(budget.excess(row.figures)) - {"latency"}


def between_fitting(rows: Sequence[Row], budget: Budget) -> int | None:
    """The interval midway between the fastest one that fits and the slowest below that.

    Returns
    -------
    int or None
        None where a rate is asked for, nothing fits, or there is no interval between the two.
    """
    if budget.cycles is not None:
        return None
    fits = {row.asked for row in rows if _late_at_most(row, budget)}
    if not fits:
        return None
    below = max((row.asked for row in rows if row.asked < min(fits)), default=None)
    middle = None if below is None else round((below * min(fits)) ** 0.5)
    return None if middle in (below, min(fits)) else middle


def _refined(model: Model, rows: Sequence[Row], budget: Budget, best: Row | None) -> Row | None:
    """The best row that fails only by its latency, refined until it keeps to it.

    Rows that are no better than ``best`` are not looked at; None where none comes down to the latency.
    """
    near = {
        _merit(row, budget): row
        for row in rows
        if not row.fits and _late_at_most(row, budget) and (best is None or _merit(row, budget) < _merit(best, budget))
    }
    for _, row in sorted(near.items())[:REFINED]:
        candidate, found = refine(model, row.candidate, row.figures, budget)
        if budget.holds(found):
            return Row(candidate, found, row.asked, True)
    return None
