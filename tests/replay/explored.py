"""The fronts of a few searches: NPUs, mapping and figures of each design."""

import json
from dataclasses import asdict
from pathlib import Path

from bitloom.golden import zoo
from bitloom.golden.zoo import mlperf_tiny
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.search import Effort, explore
from bitloom.overlay.platform.boards import board

QUICK = Effort(points=4, halvings=0)


def _seeded(name: str):
    return mlperf_tiny.seeded(mlperf_tiny.NETWORKS[name]())


SEARCHES = {
    "digits-cnn": lambda: (zoo.load("digits-cnn"), Budget.of_board(board("Pynq-Z1"))),
    "digits-residual": lambda: (zoo.load("digits-residual"), Budget(lut=12_000, bram36=40)),
    "kws": lambda: (_seeded("kws"), Budget.of_board(board("Pynq-Z2"))),
}
"""Networks and budgets by the name of the search."""


def write(folder: Path) -> None:
    """Write the front of each search."""
    for name, search in SEARCHES.items():
        model, budget = search()
        explored = explore(model, budget, effort=QUICK)
        rows = [{"candidate": row.candidate.to_dict(), "figures": asdict(row.figures)} for row in explored.front]
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1, default=str))
        print(name, flush=True)
