"""The search: chains for a sweep of intervals, each tried in the flow model; of these the Pareto front.

    intervals x prices --chain.py--> candidates --flow model, area model--> figures --budget--> front
                                                                            `--> the best, refined (refine.py)

Prices stand for limits: where block RAM or lanes are over the budget, they are charged more, until they fit. Nothing is
returned that fit, the compiler's plan and the flow model did not accept.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.golden.network import Model
from bitloom.overlay.build.reference_designs import needs_integer

from .budget import Budget
from .candidate import Candidate, Figures, figures
from .chain import Chain, Price, Segment
from .layer_demand import LayerDemand, layers
from .refine import refine
from .workers import Workers

SHARES = (1.0, 0.985, 0.95, 0.9)
"""Intervals that are tried for a rate, as shares of its interval: NPUs may wait for each other."""
POINTS = 9
"""Intervals of a sweep."""
SPAN = 64
"""Of the slowest interval to the fastest."""
ROUNDS = 5
"""Attempts to bring a chain within its budget."""
HALVINGS = 1
"""Times that the gap between the fastest interval that fits and the next shorter one is halved."""
REFINED = 3
"""Chains that are refined at most, where they keep to all but the latency."""
FEW_NPUS = Price()
PRICES = (FEW_NPUS, Price(npu=-900), Price(npu=-10_000))
"""An NPU costs about 900 LUTs beside its lanes; without that price there are more of them, so that less waits for
another, and with the last price there is one a layer. Long intervals are tried with the first ones only."""

THIS_PROCESS = Workers()

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long a search takes, and who does it.

    Attributes
    ----------
    points
        Intervals of the sweep; with a rate that is asked for, there are those of SHARES instead.
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
class Row:
    """A candidate with its figures. asked : interval that the search was given."""

    candidate: Candidate
    figures: Figures
    asked: int
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        f = self.figures
        return {"npus": len(self.candidate.npus), "cycles_per_frame": f.cycles, "latency_cycles": f.latency,
                "lanes": f.lanes, "lut": f.area.lut, "lutram": f.area.lutram, "ff": f.area.ff,
                "bram36": f.area.bram36, "dsp": f.area.dsp, "fits": self.fits,
                "foldings": self.candidate.to_dict()}  # fmt: skip


@dataclass(frozen=True)
class Explored:
    """front : rows that no other beats in both LUTs and cycles, fastest first; those of the budget where there are any.
    best : what the budget asks for, None where nothing found fits it: the fastest, or if a rate is asked for, the
    smallest."""

    front: tuple[Row, ...]
    best: Row | None


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
    ::

        found = explore(model, Budget.of_board(board("Pynq-Z2"), lut=20_000))
        design = found.best.candidate.design(model)
    """
    effort = effort or Effort()
    made = layers(model, map_order)
    search = Search(model, made, budget, stream_bits, map_order)
    sweep = [
        (interval, price)
        for k, interval in enumerate(search.intervals(effort.points))
        for price in PRICES[: 3 - k // 3 * (budget.cycles is None)]  # fewer prices the longer the interval of a sweep
    ]
    prices = PRICES[:2] if effort.halvings <= HALVINGS else PRICES
    total, done = len(sweep) + effort.halvings * len(prices) + 1, 0

    def tried(tasks: Sequence[tuple[int, Price]]) -> list[Row]:
        nonlocal done
        found = list[Row]()
        for part in effort.workers.map(search.rows, tasks):
            found, done = found + part, done + 1
            if progress is not None:
                progress(done, total)
        return found

    rows = tried(sweep)
    if not rows:
        raise ValueError(f"{model.network.name}: no folding was found")
    for _ in range(effort.halvings):
        interval = between_fitting(rows, budget)
        if interval is None:
            break
        rows += tried([(interval, price) for price in prices])
    fitting = [row for row in rows if row.fits]
    fitting += [row for row in [_refined(model, rows, budget, _best(fitting, budget))] if row]
    best = _best(fitting, budget)
    front = pareto(fitting or rows)
    if progress is not None:
        progress(total, total)
    return Explored(tuple(front), best)


def pareto(rows: Iterable[Row]) -> list[Row]:
    """Rows that no other beats or equals in both LUTs and cycles, fastest first."""
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
    return min(fitting, key=lambda row: _merit(row, budget), default=None)


def _late_at_most(row: Row, budget: Budget) -> bool:
    """Whether the row keeps to the budget, but perhaps for the latency, which can be refined."""
    return not set(budget.excess(row.figures)) - {"latency"}


def between_fitting(rows: Sequence[Row], budget: Budget) -> int | None:
    """The interval midway between the fastest one that fits and the slowest below it; None where there is none."""
    if budget.cycles is not None:
        return None
    fits = {row.asked for row in rows if _late_at_most(row, budget)}
    if not fits:
        return None
    below = max((row.asked for row in rows if row.asked < min(fits)), default=None)
    middle = None if below is None else round((below * min(fits)) ** 0.5)
    return None if middle in (below, min(fits)) else middle


def _refined(model: Model, rows: Sequence[Row], budget: Budget, best: Row | None) -> Row | None:
    """A row that would be better than ``best`` but for its latency, refined until it keeps to it; None if none does."""
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


class Search:
    """The search's data, and what is done for one interval; can be sent to another process."""

    def __init__(self, model: Model, made: Sequence[LayerDemand], budget: Budget, stream_bits: int, map_order: str):
        self.model, self.budget, self.map_order, self.stream_bits = model, budget, map_order, stream_bits
        self.chain = Chain(made, stream_bits, feature_bits(model, made))
        self._macs = sum(layer.macs for layer in made)
        self._seen: dict[tuple[Segment, ...], tuple[Candidate, Figures] | None] = {}

    def intervals(self, points: int) -> list[int]:
        """Intervals to try: the rate that is asked for, or a sweep from the fastest one on."""
        if self.budget.cycles is not None:
            return [int(self.budget.cycles * share) for share in SHARES]
        fastest = self.fastest()
        return [round(fastest * SPAN ** (k / max(1, points - 1))) for k in range(points)]

    def fastest(self) -> int:
        """A short interval: of the layer with most taps, one cycle a tap, or as fast as a frame comes in."""
        least = max(max(layer.taps_in_all, layer.pool_taps) for layer in self.chain.layers)
        while self.chain.cheapest(least, FEW_NPUS) is None:
            least = least * 5 // 4 + 1
            if least > 1 << 40:
                raise ValueError(f"{self.model.network.name}: no folding was found")
        return least

    def rows(self, task: tuple[int, Price]) -> list[Row]:
        """What is found for an interval, with prices that rise until the budget holds and fall again as far as it does;
        and with more NPUs where they wait too long for each other."""
        interval, price = task
        out = list[Row]()
        cheap, dear = price, None
        for _ in range(ROUNDS):
            runs = self.chain.cheapest(interval, price)
            made = None if runs is None else self._figures(tuple(runs))
            if made is None:
                break
            candidate, found = made
            excess = self.budget.excess(found)
            out.append(Row(candidate, found, interval, not excess))
            if self.budget.lanes is not None and self._macs > self.budget.lanes * interval:
                break  # no folding does it with so few lanes
            over = excess.keys() & STEPS.keys()
            if over:
                cheap = price
                price = _raised(price, over) if dear is None else _between(price, dear)
            elif "cycles" in excess and price.npu > -LAST_WAITING:
                cheap = price = replace(price, npu=price.npu - WAITING)
            elif price != cheap:
                dear = price
                price = _between(cheap, dear)
            else:
                break
        return out

    def _figures(self, runs: tuple[Segment, ...]) -> tuple[Candidate, Figures] | None:
        if runs not in self._seen:
            candidate = candidate_of(self.model.network.name, runs, self.stream_bits, self.map_order)
            found = figures(self.model, candidate)
            self._seen[runs] = None if found is None else (candidate, found)
        return self._seen[runs]


WAITING, LAST_WAITING = 700.0, 2_000.0
"""What an NPU is made cheaper by where NPUs wait for each other: with more of them less work lies on each."""
STEPS = {"bram36": 30.0, "lanes": 0.5, "dsp": 20.0, "ff": 0.1}
"""First price of what is over its limit, in LUTs."""


def _raised(price: Price, over: Iterable[str]) -> Price:
    """A price at which what is over its limit costs twice as much."""
    return replace(price, **{key: max(STEPS[key], 2 * getattr(price, key)) for key in over})


def _between(low: Price, high: Price) -> Price:
    return replace(high, **{key: (getattr(low, key) + getattr(high, key)) / 2 for key in STEPS})


def candidate_of(name: str, runs: Sequence[Segment], stream_bits: int, map_order: str) -> Candidate:
    """The candidate of a chain."""
    mapping = [k for k, run in enumerate(runs) for _ in range(run.first, run.last + 1)]
    return Candidate(name, tuple(run.npu for run in runs), tuple(mapping), stream_bits, map_order)


def feature_bits(model: Model, made: Sequence[LayerDemand]) -> int:
    """Width of the features of all maps: of the binary engine 1, of the integer engine what all need."""
    from bitloom.hls_gen.compiler.lowering import lower_integer

    if not needs_integer(model):
        return 1
    weight_bits = max(layer.weight_bits for layer in made)
    for bits in range(2, 9):
        try:
            lower_integer(model, bits, weight_bits)
        except ValueError:
            continue
        return bits
    return 8
