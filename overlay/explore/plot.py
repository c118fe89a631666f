"""A picture of the Pareto front: frames a second against how much of the board a design takes. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bitloom.overlay.picture import picture
from bitloom.overlay.platform.boards import CLOCK_MHZ, RESOURCES, Board

from .budget import Budget

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .tries import Row

SHADE = {"color": "tab:gray", "alpha": 0.2, "linewidth": 0}
"""How what is outside of the budget, or slower than the goal, is drawn."""


def plot(
    path: Path,
    title: str,
    front: Sequence["Row"],
    best: "Row | None" = None,
    budget: Budget | None = None,
    board: Board | None = None,
    clock_mhz: float = CLOCK_MHZ,
) -> None:
    """Write the picture, as PNG or SVG by the file's ending.

    Parameters
    ----------
    path
        The file; its folder is made if it isn't there.
    title, front, best, budget, board, clock_mhz
        As for `draw`.
    """
    with picture(path, (8, 5)) as axes:
        draw(axes, title, front, best, budget, board, clock_mhz)


def draw(
    axes: "Axes",
    title: str,
    front: Sequence["Row"],
    best: "Row | None" = None,
    budget: Budget | None = None,
    board: Board | None = None,
    clock_mhz: float = CLOCK_MHZ,
) -> None:
    """Draw the picture on axes of matplotlib. Each point has its number in the table of the front.

    Parameters
    ----------
    axes
        Where to draw.
    title
        Of the picture.
    front
        Rows, fastest first.
    best
        The row that is marked, or None.
    budget
        What is beyond its limits of area, and slower than its rate, is shaded.
    board
        The board whose shares are shown, the largest one of each design; None: LUTs are shown.
    clock_mhz
        Clock of the frames a second.
    """

    def size(row: "Row") -> float:
        return row.figures.lut if board is None else 100 * max(board.shares(row.figures.area).values())

    def rate(row: "Row") -> float:
        return clock_mhz * 1e6 / row.figures.cycles

    taken = "LUTs, logic and memory" if board is None else f"% of {board.name}: of the resource that it takes most of"
    axes.set(xscale="log", yscale="log", title=title, xlabel=taken, ylabel=f"frames a second at {clock_mhz:g} MHz")
    axes.plot([size(row) for row in front], [rate(row) for row in front], "o-", color="tab:blue", label="Pareto front")
    for number, row in enumerate(front, 1):
        axes.annotate(str(number), (size(row), rate(row)), xytext=(5, 5), textcoords="offset points")
    if best is not None:
        axes.plot([size(best)], [rate(best)], "s", color="tab:red", label="chosen")
    limits = budget or Budget()
    most = _most(limits, board)
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    if most is not None:
        right = max(right, 1.2 * most)
        axes.axvspan(most, right, label="beyond the budget", **SHADE)
    if limits.cycles is not None:
        goal = clock_mhz * 1e6 / limits.cycles
        bottom = min(bottom, goal / 1.2)
        axes.axhspan(bottom, goal, label=f"slower than the goal, {goal:,.0f}", **SHADE)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()


def _most(budget: Budget, board: Board | None) -> float | None:
    """How far to the right a design may lie: LUTs of the budget, or the largest share that it has of any resource."""
    if board is None:
        return budget.lut
    limits = {key: getattr(budget, key) for key in RESOURCES}
    return max(
        100 * (getattr(board, key) if limit is None else limit) / getattr(board, key) for key, limit in limits.items()
    )
