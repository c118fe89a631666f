"""Cycles by which chains are cut: near to those of the flow model, whichever part of an NPU is the slowest."""

from math import inf

import pytest

from bitloom.golden.zoo import mlperf_tiny as networks
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.layer_cycles import workload_cycles
from bitloom.hls_gen.compiler.mapping import placed
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade
from bitloom.overlay.study.mlperf_tiny import NPU
from tests.graph_text import network_of
from tests.networks import random_model

KWS = networks.seeded(networks.NETWORKS["kws"]())


def flow(model, npus, mapping=None):
    """Cycles a frame in a stream."""
    choices = CompileChoices(map_order="raster", mapping=mapping)
    design = size_memories("d", [model], npus, choices)
    return simulate(system(plan(model, design.npus, choices), design.npus)).cycles_per_frame


CHANGES = [
    {},  # pool units, which compute depthwise convolutions, are the slowest
    {"kfp": 4, "line_taps": 1, "kgp": 8, "kernels_per_multiplier": 2},  # arrays are
    {"pfp": 64, "ol": 1},  # results units are
    {"window_former": False},  # the first layer is
]


def by_formula(model, npu):
    return [workload_cycles(workload, npu) for workload in placed(model, [npu]).workloads]


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_slowest_part_counts(change):
    npu = NPU.changed(**change)
    assert sum(by_formula(KWS, npu)) == pytest.approx(flow(KWS, [npu]), rel=0.04)


@pytest.mark.parametrize(("pool", "line_taps"), [("max_pool", 1), ("max_pool", 3), ("avg_pool", 3)])
def test_pools_by_lines_count_lines(pool, line_taps):
    """And averages taps, one by one: their valid taps are counted. The pool unit is the slowest part."""
    layers = f"conv 16 1x1 s4, requantise s8, {pool} pool 3x3 1x1, dense 2 s4, requantise last s8"
    model = random_model(network_of("14x14x4 s8", layers, name="pooled"), 0, 24, 16)
    npu = NPU.changed(kfp=12, line_taps=1, pfp=4, ol=4, depthwise=False, window_former=False, pool_line_taps=line_taps)
    assert sum(by_formula(model, npu)) == pytest.approx(flow(model, [npu]), rel=0.1)


def test_another_engine():
    assert [workload_cycles(workload, Npu.of()) for workload in placed(KWS, [NPU]).workloads] == [inf] * 6


@pytest.mark.parametrize(("count", "expected"), [(2, [0, 0, 0, 1, 1, 1]), (3, [0, 0, 1, 1, 2, 2])])
def test_chains_are_cut_by_them(count, expected):
    """By beats alone DS-CNN would be cut behind its first layer."""
    assert placed(KWS, cascade([NPU] * count)).mapping == expected


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "change", "others"),
    [
        ("ic", {}, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]),
        ("vww", {}, [0, 0, 0, *[1] * 12]),
        ("vww", {"kfp": 4, "line_taps": 1, "kgp": 8}, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
        ("vww", {"accumulators": 1}, [0, 1, 1, 1, 1, 1, *[2] * 9]),
    ],
    ids=str,
)
def test_chains_are_cut_where_frames_take_fewer_cycles(name, change, others):
    """Than where beats, steps and positions alone would cut them, without latencies and waits."""
    model = networks.seeded(networks.NETWORKS[name]())
    npus = cascade([NPU.changed(**change)] * (max(others) + 1))
    assert flow(model, npus) < flow(model, npus, others)
