"""Depthwise convolutions on the simulated board: every result is golden's, under random stalls, and without them every
cycle is the flow model's."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.depthwise import DepthwiseConv
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from tests.networks import IntegerChoices, depthwise_networks, random_images, random_integer_model
from tests.simulated import outputs, overlay, tally

from .test_residual import DESIGNS as RESIDUAL

ROOMY = (
    RESIDUAL["k4"]
    .npus[0]
    .changed(
        skip_words=0,
        joined_words=0,
        pool_kernel_rows=1024,
        pool_scale_rows=256,
        pool_jumps=1024,
        half_even=1,
        round_twice=1,
        bias_fraction_bits=6,
    )
)
DESIGNS = {
    "k4": RESIDUAL["k4"],  # compiled once for both
    "k8": Design(name="k8", stream_bits=64, npus=(ROOMY.changed(kfp=8, kgp=6, pfp=6, ol=2, accumulators=16),)),
    "raster": Design(name="raster", npus=(ROOMY.changed(kfp=3, kgp=4, pfp=4, ol=4, raster=True),)),
    "narrow": Design(name="narrow", npus=(ROOMY.changed(kfp=2, kgp=3, pfp=1, ol=1),)),
}
"""Tables and counters, one and several accumulators, words of the pool unit that are several steps or one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("depthwise")


def check(design: str, folder: Path, data: st.DataObject) -> str:
    """How many depthwise convolutions of the network that is drawn joined another layer."""
    bit, manifest = overlay(DESIGNS[design], folder)
    npu = manifest.npus[0]
    network = data.draw(depthwise_networks(IntegerChoices.of(npu)))
    order = "raster" if npu.sequencer.raster else data.draw(st.sampled_from(["pull", "raster"]))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    return compare(network, (bit, manifest), data.draw(st.integers(0, 2**32 - 1)), order, stalls)


def compare(network: Network, design: tuple[Path, Manifest], seed: int, order: str, stalls: dict[str, float]) -> str:
    """How many depthwise convolutions joined, of a network that was compared with golden and with the flow model."""
    (bit, manifest), choices = design, CompileChoices(map_order=order)
    model, images = random_integer_model(network, seed, 32, 31), random_images(network, 4, seed)
    program = compile_model(model, manifest, choices)
    golden, made = model.forward(images), plan(model, manifest.npus, choices)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    flow = simulate(system(made, manifest.npus, stream_bits=manifest.stream_bits), 4)
    assert counters["cycles"] == flow.left[3] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=seed)[0], golden)
    return str(sum(p.depthwise is not None for p in made.lowered.layers))


def test_random_networks(folder: Path) -> None:
    found = tally(lambda data: check("k4", folder, data), 6)
    assert set(found) - {"0"}


@pytest.mark.parametrize("order", ["pull", "raster"])
def test_several_in_a_network(order: str, folder: Path) -> None:
    """Rectangular, with strides and padding on some sides, of channels that are no multiple of a word; each
    has weights and scales of its own."""
    shapes = [
        {"out_channels": 6, "kernel": (3, 2), "padding": (2, 0, 1, 1)},
        {"out_channels": 11, "kernel": (5, 3), "stride": (2, 1), "padding": (4, 1, 2, 0)},
        {"out_channels": 9, "kernel": (1, 1)},  # a word a cycle, and two cycles a word behind it
    ]
    layers: list[Layer] = []
    for n, shape in enumerate(shapes):
        plain = Conv(name=f"conv_{2 * n}", out_channels=shape["out_channels"], kernel=(1, 1), weight=signed(8))
        own = DepthwiseConv(name=f"conv_{2 * n + 1}", weight=signed(8), **shape)
        for layer in (plain, own):
            layers += [layer, Requantise(name=layer.name.replace("conv", "act"), encoding=signed(9))]
    source = Map(height=7, width=6, channels=3, encoding=signed(8))
    network = Network(name="several", input=source, layers=tuple(layers))
    assert compare(network, overlay(DESIGNS["k4"], folder), 1, order, {"source": 0.4, "sink": 0.4}) == "3"


@pytest.mark.parametrize("raster", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_padded_pool_beside_weights(raster: bool, folder: Path) -> None:
    """A pool has no kernel rows, however many would lie in front of its first tap."""
    layers: tuple[Layer, ...] = (
        Conv(name="conv_1", out_channels=5, kernel=(1, 1), weight=signed(8)),
        Requantise(name="act_1", encoding=signed(8)),
        MaxPool(name="pool_1", kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1)),
        Conv(name="conv_2", out_channels=2, kernel=(1, 1), weight=signed(8)),
    )
    network = Network(name="pads", input=Map(height=7, width=6, channels=3, encoding=signed(8)), layers=layers)
    npu = Npu.of(
        acc_bits=32,
        engine="integer",
        feature_bits=8,
        weight_bits=8,
        shift_bits=0,
        kfp=4,
        kgp=4,
        pfp=4,
        ol=4,
        depthwise=True,
        raster=raster,
    )
    design = size_memories("pads", [random_integer_model(network, 1, 32, 31)], npu)
    order = "raster" if raster else "pull"
    assert compare(network, overlay(design, folder), 1, order, {"source": 0.4, "sink": 0.4}) == "0"


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    found = tally(lambda data: check(design, folder, data), 60)
    assert {"0", "1"} <= set(found)
