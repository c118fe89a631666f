"""Short windows: a word may come and go in each cycle."""

import pytest

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from tests.networks import model_of

SIDE = 40


@pytest.mark.parametrize("pool", [False, True], ids=["without a pool unit", "with a pool unit"])
def test_a_window_of_one_beat_takes_a_cycle_behind_eight_accumulators(pool: bool) -> None:
    npu = Npu.of(kfp=8, kgp=8, ol=8, accumulators=8).changed(pool=pool)
    layers = (Conv(name="conv_1", out_channels=8, kernel=(1, 1)), Threshold(name="threshold_1"))
    source = Map(height=SIDE, width=SIDE, channels=8, encoding=BIPOLAR)
    model = model_of(Network(name="short", input=source, layers=layers), 1, npu)
    design = size_memories("short", [model], npu, stream_bits=64)
    run = simulate(system(plan(model, design.npus), design.npus, stream_bits=64), 4)
    assert run.cycles_per_frame < 1.01 * SIDE**2
