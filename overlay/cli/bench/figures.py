"""Common part of the commands bench designs and bench mlperf-tiny: the table of figures of simulated designs."""

from collections.abc import Mapping, Sequence
from typing import Any

from bitloom.overlay.cli.show import grid
from bitloom.overlay.study.design_figures import FigureTable

TITLES = {
    "npus": "NPUs",
    "lanes": "lanes",
    "xnor_lanes": "XNOR lanes",
    "weights": "weights",
    "frames": "frames",
    "mismatches": "frames unlike golden",
    "cycles_per_frame": "cycles a frame",
    "ideal_cycles_per_frame": "ideal",
    "utilisation": "utilisation",
    "wait_input_per_frame": "waits for input",
    "wait_room_per_frame": "waits for room",
    "wait_table_per_frame": "waits for tables",
    "latency_cycles": "latency, cycles",
}
"""Names of the figures in tables."""


def show_figures(title: str, columns: Sequence[FigureTable], titles: Mapping[str, str], places: int) -> None:
    """Print figures of designs, or of networks on a design.

    Parameters
    ----------
    title
        Of the table.
    columns
        The figures of each, among them its ``name``.
    titles
        The figures that rows show, and what they are called.
    places
        Digits behind the point, of figures that are no integers.
    """
    rows = [[words, *(cell(key, figures[key], places) for figures in columns)] for key, words in titles.items()]
    grid(title, ["", *(figures["name"] for figures in columns)], rows)


def cell(key: str, value: Any, places: int) -> str:
    """A figure as a table shows it."""
    if key == "utilisation":
        return f"{value:.2%}"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{places}f}"


def check_exact(columns: Sequence[FigureTable]) -> None:
    """ValueError if a frame of a design or network differs from golden."""
    wrong = [f"{figures['name']} ({figures['mismatches']})" for figures in columns if figures["mismatches"]]
    if wrong:
        raise ValueError(f"bench: every frame must equal golden, got others in {', '.join(wrong)}")
