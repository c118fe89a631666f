"""Cycles by which chains are cut: near to those of the flow model, whichever part of an NPU is the slowest."""

from math import inf

import pytest

from bitloom.golden.zoo import mlperf_tiny as networks
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.mapping import layer_cycles, placed
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade
from bitloom.overlay.study.mlperf_tiny import NPU

KWS = networks.seeded(networks.NETWORKS["kws"]())


def flow(model, npus):
    """Cycles a frame in a stream."""
    choices = CompileChoices(map_order="raster")
    design = size_memories("d", [model], npus, choices)
    return simulate(system(plan(model, design.npus, choices), design.npus)).cycles_per_frame


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", [
    {},  # pool units, which compute depthwise convolutions, are the slowest
    {"kfp": 4, "line_taps": 1, "kgp": 8, "kernels_per_multiplier": 2},  # arrays are
    {"pfp": 64, "ol": 1},  # results units are
    {"window_former": False},  # the first layer is
], ids=str)  # fmt: skip
def test_the_slowest_part_counts(change):
    npu = NPU.changed(**change)
    cycles = sum(layer_cycles(placed(KWS, [npu]).parts, npu))
    assert cycles == pytest.approx(flow(KWS, [npu]), rel=0.04)


def test_another_engine():
    assert layer_cycles(placed(KWS, [NPU]).parts, Npu.of()) == [inf] * 6


@pytest.mark.parametrize(("count", "expected"), [(2, [0, 0, 0, 1, 1, 1]), (3, [0, 0, 1, 1, 2, 2])])
def test_chains_are_cut_by_them(count, expected):
    """By beats alone DS-CNN would be cut behind its first layer."""
    assert placed(KWS, cascade([NPU] * count)).mapping == expected
