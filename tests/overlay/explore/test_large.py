"""The search on a large network: MobileNet of width 0.5 on pictures of 224 x 224 pixels, with seeded weights."""

import json
import subprocess
import sys

import pytest

from tests.paths import ROOT

MOST_MB = 1_600
"""Memory of the search's process at most."""
SEARCH = """
import json
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.search import Effort, explore
from bitloom.overlay.platform.boards import board
from tests.memory import peak_mb
from tests.overlay.explore.test_large import mobilenet

budget = Budget.of_board(board("zcu104"))
found = explore(mobilenet(), budget, effort=Effort(points=4, halvings=0))
row = found.shown
print(json.dumps({
    "fits": found.best is not None,
    "streamed": row.candidate.stream_weights,
    "over": budget.excess(row.figures),
    "bram36": row.figures.area.bram36,
    "megabytes": peak_mb(),
}))
"""


def mobilenet():
    """The network with its weights: 13 pairs of a depthwise convolution and one of 1 x 1."""
    from bitloom.golden.layer import Map
    from bitloom.golden.layers.dense import Dense
    from bitloom.golden.layers.pool import AvgPool
    from bitloom.golden.zoo import mlperf_tiny as tiny

    layers, n, inner = tiny._weighted(tiny._conv(1, 16, (3, 3), (2, 2), tiny.HALVED)), 2, 16
    for channels, stride in tiny.MOBILENET:  # of width 0.25 there
        layers += tiny._separable(n, inner, 2 * channels, stride)
        n, inner = n + 2, 2 * channels
    layers.append(AvgPool(name=f"pool_{n - 1}", kernel=(7, 7), stride=(7, 7)))
    layers += tiny._weighted(Dense(name=f"dense_{n}", out_channels=1000, weight=tiny.INT8), tiny.INT8)
    return tiny.seeded(tiny._network("large", Map(height=224, width=224, channels=3, encoding=tiny.UINT8), layers))


@pytest.mark.slow
def test_a_design_for_a_large_network_is_found_in_little_memory() -> None:
    """Its 1,000 classes leave little of the 312 BRAM36: streamed weights fit."""
    done = subprocess.run([sys.executable, "-c", SEARCH], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["fits"]
    assert found["streamed"]
    assert found["over"] == {}
    assert found["bram36"] <= 312
    assert found["megabytes"] < MOST_MB
