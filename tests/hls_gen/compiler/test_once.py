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
    """Two networks of MLPerf Tiny on one NPU, in two map orders. Both begin with windows that the window former may
    make, ResNet-8 has kernels whose lines a line former makes, and DS-CNN has depthwise convolutions behind another
    one, so that it has schedules of its own for that."""
    models = [mlperf_tiny.seeded(mlperf_tiny.NETWORKS[name]()) for name in ("ic", "kws")]
    size_memories("tiny", models, NPU)
    assert counted == {"lower": 2, "schedule": 12}
