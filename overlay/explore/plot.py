"""A picture of the Pareto front: frames a second against how much of the board a design takes. Needs matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING

from bitloom.overlay.picture import picture

from .figures import Figures
from .front import Front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHADE = {"color": "tab:gray", "alpha": 0.2, "linewidth": 0}
"""How what is outside of the budget, or slower than the goal, is drawn."""


def plot(path: Path, front: Front) -> None:
    """Write the picture, as PNG or SVG by the file's ending; its folder is made if it isn't there."""
    with picture(path, (8, 5)) as axes:
        draw(axes, front)
        axes.set_title(f"{front.network}: the Pareto front")


def draw(axes: "Axes", front: Front) -> None:
    """Draw the picture on axes of matplotlib.

    Each point has its number in the table of the front. What is beyond the budget, and slower than its rate, is shaded.
    """

    def size(figures: Figures) -> float:
        share = front.share(figures)
        return figures.lut if share is None else 100 * share[0]

    taken = "LUTs, logic and memory"
    if front.board is not None:
        taken = f"% of {front.board.name}: of the resource that it takes most of"
    axes.set(xscale="log", yscale="log", xlabel=taken, ylabel=f"frames a second at {front.clock_mhz:g} MHz")
    rate = front.frames_per_second
    axes.plot(
        [size(point) for point in front.points],
        [rate(point) for point in front.points],
        "o-",
        drawstyle="steps-pre",  # with room between two points, the smaller design is the best one
        color="tab:blue",
        label="Pareto front",
    )
    for number, point in enumerate(front.points, 1):
        axes.annotate(str(number), (size(point), rate(point)), xytext=(5, 5), textcoords="offset points")
    if front.chosen is not None:
        axes.plot([size(front.chosen)], [rate(front.chosen)], "s", color="tab:red", label="chosen")
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    if front.most is not None:
        most = front.most * (1 if front.board is None else 100)
        right = max(right, 1.2 * most)
        axes.axvspan(most, right, label="beyond the budget", **SHADE)
    if front.budget.cycles is not None:
        goal = front.clock_mhz * 1e6 / front.budget.cycles
        bottom = min(bottom, goal / 1.2)
        axes.axhspan(bottom, goal, label=f"slower than the goal, {goal:,.0f}", **SHADE)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.xaxis.set_major_formatter("{x:g}" if front.board else "{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
