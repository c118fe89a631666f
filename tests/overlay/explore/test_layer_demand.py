"""Cycles of a layer by the search's formula against the passes of the flow model, in which nothing waits."""

import pytest

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import of_plan
from bitloom.hls_gen.compiler.flow.layer import passes
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.explore.demands import layers
from bitloom.overlay.fuzz.random_models import random_model

NPU = Npu.of(kfp=8, kgp=8, pfp=8, ol=8)


def network(dilation: tuple[int, int]) -> Network:
    layers = (
        Conv(name="conv_1", out_channels=24, kernel=(3, 3), dilation=dilation),
        Threshold(name="threshold_1"),
        MaxPool(name="pool_1", kernel=(3, 3), stride=(2, 2)),
        Dense(name="dense_2", out_channels=4),
    )
    return Network(name="pooled", input=Map(height=12, width=12, channels=8, encoding=BIPOLAR), layers=layers)


@pytest.mark.parametrize("dilation", [(1, 1), (2, 2)])
@pytest.mark.parametrize("map_order", ["pull", "raster"])
@pytest.mark.parametrize("raster", [False, True])
def test_cycles_of_sequencers_are_those_of_the_flow_model(raster, map_order, dilation):
    """By tables a sequencer takes a cycle for each tuple that no tap of a window reads: also where it has counters, but
    none that run through the windows, since these are dilated."""
    npu = NPU.changed(raster=raster)
    model = random_model(network(dilation), 0)
    flow = of_plan.layers(plan(model, [npu], CompileChoices(map_order=map_order)))[0]
    demand = layers(model, map_order)[0]
    assert flow.pool is not None
    assert demand.pool_cycles(npu) == sum(cycles for cycles, *_ in passes(flow.pool))
    assert demand.array_cycles(npu, "output_stationary") == flow.groups * sum(c for c, *_ in passes(flow.reading))
