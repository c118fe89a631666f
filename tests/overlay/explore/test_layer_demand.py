"""Cycles of a layer by the search's formula against the passes of the flow model, in which nothing waits."""

import pytest

from bitloom.golden import zoo
from bitloom.golden.network import Model
from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.fitted import with_tuple_parts
from bitloom.hls_gen.compiler.flow import of_plan
from bitloom.hls_gen.compiler.flow.layer import passes
from bitloom.hls_gen.compiler.layer_cycles import workload_cycles
from bitloom.hls_gen.compiler.mapping import placed
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.explore.demands import layers, possible_engines
from bitloom.overlay.explore.one_npu import OUT
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.study.mlperf_tiny import NPU as TINY
from tests.graph_text import network_of
from tests.networks import random_model
from tests.npus import integer_npu
from tests.replay.networks import KINDS

NPU = Npu.of(kfp=8, kgp=8, pfp=8, ol=8)


def pooled(side: int, conv: str, pool: str) -> Model:
    layers = f"conv_1 {conv}, threshold_1, max_pool pool_1 {pool}, dense_2 4"
    return random_model(network_of(f"{side}x{side}x8", layers, name="pooled"), 0)


@pytest.mark.parametrize(
    ("map_order", "size", "stride", "rows"),
    [("raster", 2, 2, 2), ("raster", 3, 3, 3), ("raster", 3, 1, 1), ("raster", 6, 6, 1), ("pull", 2, 2, 1)],
)
def test_rows_that_come_for_a_row_of_windows(map_order: str, size: int, stride: int, rows: int) -> None:
    """As many as the stride, where a map of 6 rows comes row after row and has several windows."""
    model = pooled(6, "4 1x1", f"{size}x{size} {stride}x{stride}")
    assert layers(model, map_order)[0].pool_burst == rows


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("map_order", ["pull", "raster"])
@pytest.mark.parametrize("raster", [False, True])
def test_cycles_of_sequencers_are_those_of_the_flow_model(raster, map_order, dilation):
    """By tables a sequencer takes a cycle for each tuple that no tap of a window reads: also where it has counters, but
    none that run through the windows, since these are dilated."""
    npu = NPU.changed(raster=raster)
    model = pooled(12, f"24 3x3 dilation={dilation}", "3x3 2x2")
    flow = of_plan.layers(plan(model, [npu], CompileChoices(map_order=map_order)))[0]
    demand = layers(model, map_order)[0]
    assert flow.pool is not None
    assert demand.pool_cycles(npu) == sum(cycles for cycles, *_ in passes(flow.pool))
    assert demand.array_cycles(npu, "output_stationary") == flow.groups * sum(c for c, *_ in passes(flow.reading))


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["integer deep", "residual", "depthwise", "grouped"])
def test_cycles_of_lines_are_those_of_the_flow_model(kind: str) -> None:
    """Array and pool unit take lines of the kernel, of the same layers for which the compiler forms them. Lines share
    lanes of the pool unit where a layer has 1 or 2 channels. Kernel groups read parts of tuples."""
    lines = {"kfp": 12, "line_taps": 3, "kgp": 4, "pfp": 4, "ol": 4, "pool_line_taps": 3, "pool_lane_lines": 2}
    parts = {"accumulators": 4, "depthwise": kind == "depthwise", "skip_words": 2 * (kind == "residual")}
    npu = integer_npu(9, 8, raster=True, **lines, **parts)
    npu = npu.changed(**with_tuple_parts(npu))
    formed = shared = 0
    for number in range(8):
        model = random_model(KINDS[kind].network(Pick("memories", kind, number)), number, 24, 16)
        demands = layers(model, "raster", possible_engines(model)[0])
        try:
            flow = of_plan.layers(plan(model, [npu], CompileChoices(map_order="raster")))
        except ValueError:  # a map that is added doesn't lie as its results leave
            continue
        for of_flow, demand in zip(flow, demands, strict=True):
            seen = demand.seen_by(npu)
            pool = 0 if of_flow.pool is None else sum(cycles for cycles, *_ in passes(of_flow.pool))
            array = of_flow.groups * sum(cycles for cycles, *_ in passes(of_flow.reading))
            assert (seen.array_cycles(npu, "output_stationary"), seen.pool_cycles(npu)) == (array, pool), demand.name
            assert seen.reads is None or seen.line_former_cycles(npu) >= of_flow.reading.coming_words
            formed_pool = seen.formed_pool(npu)
            formed += seen.lines is not None or formed_pool is not None
            shared += formed_pool is not None and formed_pool.lines.window.kernel[0] > 1
    assert formed
    assert shared or kind != "depthwise"


@pytest.mark.parametrize(
    "npu",
    [
        TINY,
        TINY.changed(window_former=False, accumulators=1),
        TINY.changed(kfp=4, line_taps=1, kgp=8, kernels_per_multiplier=2),
        TINY.changed(pfp=64, ol=1),
    ],
    ids=["tiny", "no former", "narrow", "few results"],
)
def test_mapping_counts_the_same_cycles(npu: Npu) -> None:
    """Where each tuple is wanted, and none is skipped."""
    model = mlperf_tiny.seeded(mlperf_tiny.NETWORKS["kws"]())
    demands = layers(model, "raster", possible_engines(model)[0])
    by_mapping = [workload_cycles(workload, npu) for workload in placed(model, [npu]).workloads]
    assert [demand.seen_by(npu).cycles(npu, OUT) for demand in demands] == by_mapping


@pytest.mark.parametrize("planes", [0, 8])
def test_mapping_counts_the_same_cycles_of_bits(planes: int) -> None:
    """Of an input of integers bit planes come one after another, or side by side."""
    model = zoo.load("digits-cnn")
    npu = small_npu(model).changed(kfp=24, kgp=3, ol=2, raster=True, planes=planes, shift_bits=0 if planes else 3)
    by_mapping = [workload_cycles(workload, npu) for workload in placed(model, [npu]).workloads]
    assert [demand.cycles(npu, OUT) for demand in layers(model, "raster")] == by_mapping
