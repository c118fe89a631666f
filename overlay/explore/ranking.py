"""Which of the rows that a search tried are better: the Pareto front, what the budget asks for, what comes nearest."""

from collections.abc import Iterable, Sequence

from .budget import Budget
from .tries import Row

NARROW = 1.03
"""Of two intervals that are no further apart none is tried between."""


def pareto(rows: Iterable[Row]) -> list[Row]:
    """The rows that no other beats or equals in both LUTs and cycles, fastest first."""
    front: list[Row] = []
    for row in sorted(rows, key=lambda r: (r.figures.cycles, r.figures.lut, r.figures.latency)):
        if not front or row.figures.lut < front[-1].figures.lut:
            front.append(row)
    return front


def merit(row: Row, budget: Budget) -> tuple[float, float]:
    """Numbers that the budget asks to be small: LUTs if a rate is given, else cycles; then the other of the two."""
    pair = (row.figures.lut, row.figures.cycles)
    return pair if budget.cycles is not None else pair[::-1]


def best_of(fitting: Sequence[Row], budget: Budget) -> Row | None:
    """The row of those that fit that the budget asks for, None if there is none."""
    return min(fitting, key=lambda row: merit(row, budget), default=None)


def late_at_most(row: Row, budget: Budget) -> bool:
    """Whether the row keeps to the budget, but perhaps for the latency, which can be refined."""
    return not set(budget.excess(row.figures)) - {"latency"}


def worst_excess(row: Row, budget: Budget) -> float:
    """How often a row takes the limit that it is most over; above 1."""
    return max(budget.excess(row.figures).values())


def between_fitting(rows: Sequence[Row], budget: Budget) -> tuple[int, Row, Row] | None:
    """The interval midway between the shortest one that fits and the longest below that.

    Returns
    -------
    tuple or None
        The interval; the best row that fits; and the best one of the interval below. None where a rate is asked for,
        nothing fits, or the two are as near as NARROW.
    """
    best = best_of([row for row in rows if late_at_most(row, budget)], budget)
    if budget.cycles is not None or best is None:
        return None
    shortest = min(row.asked for row in rows if late_at_most(row, budget))
    below = max((row.asked for row in rows if row.asked < shortest), default=shortest)
    if below * NARROW >= shortest:
        return None
    middle = round((below * shortest) ** 0.5)
    return middle, best, min((row for row in rows if row.asked == below), key=lambda row: merit(row, budget))
