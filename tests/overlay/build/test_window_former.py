"""Real networks with a window former: B20's and CNV's first layers fill the lanes, bit for bit and cycle for cycle."""

import pytest

from bitloom.golden import zoo
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.flow import Result, simulate
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.weight_streams import whole_system
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import pipeline
from bitloom.overlay.build.reference_designs import reference_design
from tests.simulated import compare

LARGER = [(64, 64, 16), (64, 28, 1), (128, 20, 2), (26, 16, 1), (19, 5, 1), (20, 1, 1), (40, 1, 1), (13, 1, 1)]
"""KFP, KGP and PFP of the NPUs behind the first one: a little more than those of reference design cnv-w1a1-z020. Rows
come in raster order, so that a pool unit works off two of them in the time of one."""


def cnv_npus() -> tuple[Npu, ...]:
    """A pipeline that is limited by its second layer, which reads 64 channels with 7,056 taps."""
    first, *others = reference_design("cnv-w1a1-z020").npus
    first = first.changed(kfp=81, ol=16, window_former=True)
    larger = [npu.changed(kfp=kfp, kgp=kgp, pfp=pfp) for npu, (kfp, kgp, pfp) in zip(others, LARGER)]
    return pipeline([first, *larger])


def quick_npus() -> tuple[Npu, ...]:
    """64 lanes, as spec B20 has them; the pool unit keeps up with the first layer."""
    return (reference_design("cifar-quick-int8").npus[0].changed(pfp=2, window_former=True),)


def sized(network: str, npus: tuple[Npu, ...]) -> tuple[Design, Model]:
    model = zoo.load(network)
    return size_memories(f"{network}-former", [model], npus, stream_bits=64), model


def planned(network: str, npus: tuple[Npu, ...]) -> tuple[Plan, Result]:
    """The plan of a network, and what the flow model says of it."""
    design, model = sized(network, npus)
    network_plan = plan(model, design.npus)
    return network_plan, simulate(whole_system(network_plan, design), 2)


@pytest.mark.slow
def test_the_8_bit_network_of_b20_on_64_lanes() -> None:
    found, flow = planned("cifar-quick-int8", quick_npus())
    assert found.ideal[0] == ("conv_1", 40_960)  # 1,024 windows of 75 lanes, for 32 kernels: 94,864 tap by tap
    assert flow.cycles_per_frame == 166_817


@pytest.mark.slow
def test_cnv_below_a_tap_a_beat() -> None:
    found, flow = planned("cnv-w1a1", cnv_npus())
    assert found.ideal[0] == ("conv_0", 2_700)  # 900 windows of 27 channels, 9 channels a word: 8,100 tap by tap
    assert max(beats for _, beats in found.ideal) == 7_056
    assert flow.cycles_per_frame == 7_138


@pytest.mark.slow
@pytest.mark.parametrize(("network", "npus"), [("cifar-quick-int8", quick_npus), ("cnv-w1a1", cnv_npus)])
def test_a_frame_on_hardware(network: str, npus) -> None:
    compare(*sized(network, npus()), batches=(1,), stalls={}, seed=3)
