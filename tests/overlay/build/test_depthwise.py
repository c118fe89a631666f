"""Depthwise convolutions on the simulated board: several in a network, and pools beside them. Random networks with them
are in board_cases.py."""

import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.build.small_npu import INTEGER
from tests.networks import random_integer_model
from tests.simulated import compare

from .board_cases import DEPTHWISE_DESIGNS


def depthwise_layers(design: Design, model: Model, order: str) -> int:
    """How many depthwise convolutions are fused with another layer, of a network that was compared."""
    layers = compare(design, model, CompileChoices(map_order=order)).plan.lowered.layers
    return sum(layer.depthwise is not None for layer in layers)


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", ["pull", "raster"])
def test_several_in_a_network(order: str) -> None:
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
        weighted = DepthwiseConv(name=f"conv_{2 * n + 1}", weight=signed(8), **shape)
        for layer in (plain, weighted):
            layers += [layer, Requantise(name=layer.name.replace("conv", "act"), encoding=signed(9))]
    source = Map(height=7, width=6, channels=3, encoding=signed(8))
    model = random_integer_model(Network(name="several", input=source, layers=tuple(layers)), 1, 32, 31)
    assert depthwise_layers(DEPTHWISE_DESIGNS["k4"], model, order) == 3


@pytest.mark.parametrize("raster", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_padded_pool_beside_weights(raster: bool) -> None:
    """A pool has no kernel rows, however many would lie in front of its first tap."""
    layers = (
        Conv(name="conv_1", out_channels=5, kernel=(1, 1), weight=signed(8)),
        Requantise(name="act_1", encoding=signed(8)),
        MaxPool(name="pool_1", kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1)),
        Conv(name="conv_2", out_channels=2, kernel=(1, 1), weight=signed(8)),
    )
    network = Network(name="pads", input=Map(height=7, width=6, channels=3, encoding=signed(8)), layers=layers)
    model = random_integer_model(network, 1, 32, 31)
    npu = INTEGER.changed(kfp=4, kgp=4, pfp=4, ol=4, depthwise=True, raster=raster)
    assert depthwise_layers(size_memories("pads", [model], npu), model, "raster" if raster else "pull") == 0
