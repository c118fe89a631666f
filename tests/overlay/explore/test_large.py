"""The search on a large network: MobileNet of width 0.5 on pictures of 224 x 224 pixels, with seeded weights."""

import json
import subprocess
import sys

import pytest

from tests.paths import ROOT

MOST_MB = 1_000
"""Memory of the search's process at most."""
SEARCH = """
import json
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.search import Effort, explore
from bitloom.overlay.platform.boards import board
from tests.memory import peak_mb
from tests.large_networks import mobilenet

budget = Budget.of_board(board("zcu104"))
explored = explore(mobilenet(0.5), budget, effort=Effort(points=4, halvings=0))
row = explored.shown
print(json.dumps({
    "fits": explored.best is not None,
    "streamed": row.candidate.stream_weights,
    "over": budget.excess(row.figures),
    "bram36": row.figures.area.bram36,
    "megabytes": peak_mb(),
}))
"""


@pytest.mark.slow
def test_a_design_for_a_large_network_is_found_in_little_memory() -> None:
    """Its 1,000 classes leave little of the 312 BRAM36: streamed weights fit."""
    done = subprocess.run([sys.executable, "-c", SEARCH], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["fits"]
    assert answer["streamed"]
    assert answer["over"] == {}
    assert answer["bram36"] <= 312
    assert answer["megabytes"] < MOST_MB
