"""Real networks with a window former: B20's and CNV's first layers fill the lanes, bit for bit and cycle for cycle."""

from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.kernels import packed
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Result, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import pipeline
from bitloom.overlay.build.reference_designs import reference_design
from tests.networks import random_images
from tests.simulated import outputs, overlay

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


def made(network: str, npus: tuple[Npu, ...]) -> tuple[Design, Plan, Result]:
    model = zoo.load(network)
    design = size_memories(f"{network}-former", [model], npus, stream_bits=64)
    found = plan(model, design.npus)
    return design, found, simulate(system(found, design.npus, stream_bits=64), 2)


def check(design: Design, found: Plan, flow: Result, folder: Path) -> None:
    """A frame on simulated hardware."""
    bit, manifest = overlay(design, folder)
    model = found.lowered.model
    images = random_images(model.network, 1, 3)
    results, counters = outputs(bit, compile_model(model, manifest, CompileChoices()), images)
    np.testing.assert_array_equal(results, packed.forward(model, images))
    assert counters["cycles"] == flow.latency


@pytest.mark.slow
def test_the_8_bit_network_of_b20_on_64_lanes() -> None:
    _, found, flow = made("cifar-quick-int8", quick_npus())
    assert found.ideal[0] == ("conv_1", 40_960)  # 1,024 windows of 75 lanes, for 32 kernels: 94,864 tap by tap
    assert flow.cycles_per_frame == 166_817


@pytest.mark.slow
def test_cnv_below_a_tap_a_beat() -> None:
    _, found, flow = made("cnv-w1a1", cnv_npus())
    assert found.ideal[0] == ("conv_0", 2_700)  # 900 windows of 27 channels, 9 channels a word: 8,100 tap by tap
    assert max(beats for _, beats in found.ideal) == 7_056
    assert flow.cycles_per_frame == 7_138


@pytest.mark.slow
@pytest.mark.parametrize(("network", "npus"), [("cifar-quick-int8", quick_npus), ("cnv-w1a1", cnv_npus)])
def test_a_frame_on_hardware(network: str, npus, tmp_path: Path) -> None:
    check(*made(network, npus()), tmp_path)
