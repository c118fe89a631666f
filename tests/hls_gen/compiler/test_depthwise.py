"""Depthwise convolutions, fused with the layer before or layers of their own: lowered exactly."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv, as_plain, ungrouped_weights
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone, lowered_for
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from tests.graph_text import network_of
from tests.networks import random_images, random_model

NPU = Npu.of(
    engine="integer",
    feature_bits=9,
    weight_bits=8,
    shift_bits=0,
    acc_bits=32,
    multiplier_bits=31,
    kfp=4,
    kgp=4,
    pfp=4,
    ol=2,
    depthwise=True,
)
INT8 = signed(8)


def conv(number: int, channels: int = 5, kind: type[Conv] = Conv, size: int = 1, **more: object) -> list[Layer]:
    """A convolution with its requantisation."""
    padding = (size // 2,) * 4
    shape = {"out_channels": channels, "kernel": (size, size), "padding": padding}
    return [kind(name=f"conv_{number}", weight=INT8, **shape, **more), Requantise(name=f"act_{number}", encoding=INT8)]


def depthwise(number: int, **more: object) -> list[Layer]:
    return conv(number, 5, DepthwiseConv, 3, **more)


def model_of(*layers: Layer, channels: int = 5) -> Model:
    return random_model(network_of(f"6x7x{channels} s8", *layers), 1, 32, 31)


def fused_of(model: Model, npu: Npu = NPU, *, copies: bool = False) -> dict[str, str | None]:
    """The lowered layers, each with the depthwise convolution that is fused with it; they compute what golden does."""
    lowered = lowered_for(model, [npu], CompileChoices(copy_depthwise=copies))
    images = random_images(model.network, 3, 2)
    np.testing.assert_array_equal(lowered.forward(images), model.forward(images))
    return {p.name: p.depthwise and p.depthwise.name for p in lowered.layers}


POOL = MaxPool(name="pool", kernel=(2, 2), stride=(1, 1))
AVERAGE = AvgPool(name="pool", kernel=(2, 2), stride=(1, 1))
FIRST = {"conv_1": None, "conv_2": None}
ALONE = {**FIRST, "conv_3": None}
FUSED = {"conv_1": "conv_2"}
FIRST_FUSED = {**FUSED, "conv_3": None}


def add(*reads: int) -> Add:
    return Add(name="add", inputs=tuple(f"act_{number}" for number in reads), encoding=INT8)


@pytest.mark.parametrize(
    ("layers", "fused"),
    [
        ([*conv(1), *depthwise(2), *conv(3)], FIRST_FUSED),
        ([*conv(1), *depthwise(2)], FUSED),
        ([*depthwise(1), *conv(2)], FIRST),  # nothing is before it
        ([*conv(1), *depthwise(2), *depthwise(3)], FIRST_FUSED),
        ([*depthwise(1), *depthwise(2), *depthwise(3)], FIRST_FUSED),
        ([*conv(1), *depthwise(2), POOL], FIRST),  # the unit has one window a layer
        ([*conv(1), POOL, *depthwise(2)], FIRST),
        ([*conv(1), AVERAGE, *depthwise(2), *conv(3)], ALONE),
        ([*conv(1), depthwise(2)[0]], FIRST),  # raw sums leave the array alone
        ([*conv(1), *depthwise(2), *conv(3), add(1, 3)], ALONE),  # its map has a second reader
        ([*conv(1), *conv(2), add(1, 2), *depthwise(3)], {"conv_1": None, "conv_2": "conv_3"}),
        ([*conv(1), *conv(2), *depthwise(3), add(1, 3)], ALONE),  # the addition is in front of the pool unit
        ([*conv(1), *depthwise(2), *conv(3), add(2, 3)], FIRST_FUSED),
    ],
)
def test_which_ones_are_fused(layers, fused):
    model = model_of(*layers)
    assert fused_of(model) == fused
    assert fused_of(model, NPU.changed(depthwise=False)) == {
        layer.name: None for layer in layers if isinstance(layer, Conv)
    }


COPIED = {"conv_1": None, "conv_2_copy": "conv_2", "conv_3": None}


@pytest.mark.parametrize(
    ("layers", "fused"),
    [
        ([*depthwise(1), *conv(2)], {"conv_1_copy": "conv_1", "conv_2": None}),
        ([*conv(1), *depthwise(2), *depthwise(3)], {"conv_1": "conv_2", "conv_3_copy": "conv_3"}),
        ([*depthwise(1), *depthwise(2)], {"conv_1_copy": "conv_1", "conv_2_copy": "conv_2"}),
        ([*conv(1, 5, DepthwiseConv), *conv(2)], FIRST),  # a copy has as many taps
        ([*conv(1, 5, DepthwiseConv, 3, stride=(4, 4)), *conv(2)], FIRST),  # or more
        ([*conv(1), POOL, *depthwise(2)], {"conv_1": None, "conv_2_copy": "conv_2"}),
        ([*conv(1), *depthwise(2), POOL], FIRST),  # the unit has one window a layer
        ([*conv(1), AVERAGE, *depthwise(2), *conv(3)], COPIED),
        ([*conv(1), *depthwise(2), *conv(3), add(1, 3)], COPIED),  # its map has a second reader
    ],
)
def test_which_ones_follow_copies(layers, fused):
    model = model_of(*layers)
    assert fused_of(model, copies=True) == fused
    without = NPU.changed(depthwise=False)
    assert fused_of(model, without, copies=True) == fused_of(model, without)


def test_a_plain_one_with_zeros_joins_too():
    model = model_of(*conv(1), *depthwise(2), *conv(3))
    layers = [as_plain(layer) if isinstance(layer, DepthwiseConv) else layer for layer in model.network.layers]
    arrays = {**model.arrays, "conv_2": {"weight": ungrouped_weights(model.arrays["conv_2"]["weight"], 5)}}
    some = np.arange(5)  # a plain one's sums might be so large that biases have less room
    arrays["act_2"] = {"bias": 100 * some, "multiplier": some + 7, "shift": some + 5}
    plain = Model(replace(model.network, layers=tuple(layers)), arrays)
    assert fused_of(plain) == {"conv_1": "conv_2", "conv_3": None}
    arrays["conv_2"] = {"weight": arrays["conv_2"]["weight"].copy()}
    arrays["conv_2"]["weight"][1, 2, 2, 0] = 1
    assert fused_of(Model(plain.network, arrays)) == {"conv_1": None, "conv_2": None, "conv_3": None}


def test_memories_of_its_own():
    """Rows of weights are taps times words; on the array taps times kernel groups, each of which reads one word."""
    model = model_of(*conv(1), *depthwise(2), *conv(3))
    (npu,), (before,) = (size_memories("d", [model], one).npus for one in (NPU, NPU.changed(depthwise=False)))
    weights = present(npu.pool_weights)
    assert (weights.rows, weights.scale_rows) == (9 * 2, 3)  # 2 words of 4 channels, 3 steps of 2
    assert before.array.kernel_rows - npu.array.kernel_rows == 9 * 2
    assert {"pool_kernels", "pool_scales", "pool_results", "pool_jumps"} <= {m.name for m in memory_map(npu)}
    assert "depthwise" not in before.to_dict()


def test_on_the_binary_engine():
    """Its ternary weights hold the zeros."""
    rng = np.random.default_rng(1)
    network = network_of("5x6x4", "depthwise conv_1 4 3x3 padding=1, threshold_1, conv_2 3 1x1, threshold_2")
    arrays = {
        "conv_1": {"weight": rng.choice([-1, 1], (4, 3, 3, 1))},
        "conv_2": {"weight": rng.choice([-1, 1], (3, 1, 1, 4))},
        **{
            f"threshold_{n}": {"threshold": np.zeros((c, 1), int), "direction": np.ones(c, int)}
            for n, c in ((1, 4), (2, 3))
        },
    }
    model = Model(network, arrays)
    images = rng.choice([-1, 1], (6, 5, 6, 4))
    lowered = lower_alone(model, engines=[Engine(), Engine()])
    np.testing.assert_array_equal(2 * lowered.forward(images).astype(int) - 1, model.forward(images))
