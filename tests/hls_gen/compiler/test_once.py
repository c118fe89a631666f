"""A network is lowered once for a design, however often memories are fitted to it."""

import pytest

from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler import lowering
from bitloom.hls_gen.compiler.schedule import schedule
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.study.mlperf_tiny import NPU


@pytest.fixture
def counted(monkeypatch):
    """How often each pass runs, by its name."""
    runs = {"lower": 0, "schedule": 0}

    def count(name, function):
        def run(*arguments):
            runs[name] += 1
            return function(*arguments)

        monkeypatch.setattr(lowering, name, run)

    count("lower", lowering.lower)
    count("schedule", schedule)
    return runs


def test_sizing_lowers_each_network_once(counted):
    """The five networks of MLPerf Tiny on one NPU, in two map orders; three begin with windows that the window former
    may make, ResNet-8 has kernels whose lines a line former makes, and two have depthwise convolutions behind another
    one, so that they have schedules of their own for that."""
    models = [mlperf_tiny.seeded(network()) for network in mlperf_tiny.NETWORKS.values()]
    size_memories("tiny", models, NPU)
    assert counted == {"lower": 5, "schedule": 24}
