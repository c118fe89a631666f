"""A network is lowered and planned once for a design; planned again where only a plan says what NPUs lack."""

import pytest

from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler import lowering, sizing
from bitloom.hls_gen.compiler.plan import plan_lowered
from bitloom.hls_gen.compiler.schedule import schedule
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import IntegerChoices, grouped_network
from bitloom.overlay.study.mlperf_tiny import NPU


@pytest.fixture
def counted(monkeypatch):
    """How often each pass runs, by its name."""
    runs = {"lower": 0, "schedule": 0, "plan_lowered": 0}

    def count(module, function):
        name = function.__name__

        def run(*arguments):
            runs[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, run)

    count(lowering, lowering.lower)
    count(lowering, schedule)
    count(sizing, plan_lowered)
    return runs


def test_sizing_lowers_and_plans_each_network_once(counted):
    """Two networks of MLPerf Tiny on one NPU, in two map orders. Both begin with windows that the window former may
    make, ResNet-8 has kernels whose lines a line former makes, and DS-CNN has depthwise convolutions behind another
    one, so that it has schedules of its own for that."""
    models = [mlperf_tiny.seeded(mlperf_tiny.NETWORKS[name]()) for name in ("ic", "kws")]
    size_memories("tiny", models, NPU)
    assert counted == {"lower": 2, "schedule": 12, "plan_lowered": 2}


def test_parts_of_tuples_are_found_in_a_plan(counted):
    """Then networks are planned again, by the same schedules, one for each of two map orders."""
    model = random_model(grouped_network(Pick("replay", 0), IntegerChoices()), 0, 32)
    size_memories("grouped", [model], small_npu(model).changed(kfp=2, kgp=3, pfp=3, ol=1))
    assert counted == {"lower": 1, "schedule": 2, "plan_lowered": 2}
