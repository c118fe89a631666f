"""Networks with activations of several bits, on hardware whose lanes share weights: each weight is stored once, lint is
silent, and outputs and cycles are exact."""

from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.encoding import TERNARY, signed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import chosen_design
from bitloom.overlay.build.run import run
from bitloom.overlay.explore.estimate import estimate
from bitloom.overlay.platform.boards import board
from bitloom.overlay.virtual.sim import lint
from tests.cases import case_map, random_images, random_model

FRAMES = 4


def small() -> Model:
    """Integers at first, then maps of 2 bits a value, with a pool between."""
    layers = (
        Conv(name="conv_1", out_channels=7, kernel=(2, 3), padding=(1, 0, 0, 1), weight=TERNARY),
        Threshold(name="act_1", levels=2),
        MaxPool(name="pool_1", kernel=(2, 1), stride=(2, 1)),
        Conv(name="conv_2", out_channels=6, kernel=(2, 2), weight=TERNARY),
        Threshold(name="act_2", levels=2),
        Dense(name="dense", out_channels=3, weight=TERNARY),
    )
    network = Network(name="small", input=case_map(5, 4, 2, signed(3)), layers=layers)
    return random_model(network, np.random.default_rng(1))


def test_a_small_network_of_two_bits(tmp_path: Path) -> None:
    """Lanes 4 apart share a weight, and two lanes of a word are left over."""
    model = small()
    design = size_memories("small", [model], Npu(kfp=18, kgp=5, pfp=8, ol=4))
    assert (design.npus[0].lanes_per_weight, design.npus[0].lane_step) == (2, 4)
    assert design.npus[0].memory("kernels").width == 5 * 10 + 4
    assert lint(generate(design).text) == []
    made = builds.build(tmp_path, design, [model])
    images = random_images(model, FRAMES, np.random.default_rng(0))
    assert run(made, model, images).bit_exact_frames == FRAMES


@pytest.mark.slow
def test_cnv_w2a2_on_a_pynq_z1(tmp_path: Path) -> None:
    """By default, within the board's block RAM and LUTs."""
    model, limit = zoo.load("cnv-w2a2"), board("Pynq-Z1")
    design = chosen_design(model).design("cnv-w2a2", [model])
    area = estimate(design)
    assert design.npus[0].lanes_per_weight == 2
    assert area.bram36 == 130.5 <= limit.bram36
    assert area.lut + area.lutram <= limit.lut
    made = builds.build(tmp_path, design, [model])
    images = random_images(model, 2, np.random.default_rng(0))
    assert run(made, model, images).bit_exact_frames == 2
