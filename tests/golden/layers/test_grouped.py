"""Grouped and depthwise convolutions against PyTorch's and against plain ones; files; what is refused."""

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layers.grouped import (
    DepthwiseConv,
    GroupedConv,
    as_plain,
    by_groups,
    groups_of,
    is_depthwise,
    ungrouped_weights,
)
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error

KINDS = ["grouped", "depthwise"]


def drawn(kind: str, seed: int):
    """(layer, source, x (N, H, W, C), weight) with everything unequal and random."""
    rng = np.random.default_rng(seed)
    encodings = [(signed(9), signed(8)), (unsigned(4), TERNARY), (BIPOLAR, BIPOLAR), (signed(8), signed(3))]
    source_encoding, weight_encoding = encodings[seed % 4]
    kh, kw = (int(v) for v in rng.integers(1, 5, 2))
    (top, bottom), (left, right) = (rng.integers(0, k, 2).tolist() for k in (kh, kw))
    groups, channels, kernels = int(rng.choice([2, 3, 5])), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    if kind == "depthwise":
        groups = int(rng.choice([1, 2, 3, 17]))
        channels, kernels = 1, 1
    height, width = int(rng.integers(2 * kh - 1, 12)), int(rng.integers(kw, 11))
    source = case_map(height, width, groups * channels, source_encoding)
    shape = {"out_channels": groups * kernels, "kernel": (kh, kw), "weight": weight_encoding}
    shape |= {"stride": (int(rng.integers(1, 4)), int(rng.integers(1, 4))), "padding": (top, left, bottom, right)}
    shape["dilation"] = (int(rng.integers(1, 3)), 1)
    if kind == "depthwise":
        layer = DepthwiseConv(name="conv_1", **shape)
    else:
        layer = GroupedConv(name="conv_1", groups=groups, **shape)
    x = random_values((2, *source.shape), source_encoding, rng)
    return layer, source, x, random_values(layer.array_shapes(source)["weight"], weight_encoding, rng)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_equals_pytorch(seed, kind, torch):
    layer, source, x, weight = drawn(kind, seed)
    top, left, bottom, right = layer.padding
    image, kernels = (torch.tensor(array, dtype=torch.float64).permute(0, 3, 1, 2) for array in (x, weight))
    window = {"stride": layer.stride, "dilation": layer.dilation, "groups": layer.groups}
    y = torch.nn.functional.conv2d(torch.nn.functional.pad(image, (left, right, top, bottom)), kernels, **window)
    ours = layer.forward(x, {"weight": weight}, source)
    assert ours.dtype == np.int64
    assert ours.shape[1:] == layer.output(source).shape
    np.testing.assert_array_equal(ours, y.permute(0, 2, 3, 1).numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_a_plain_convolution_is_cut_into_groups(seed, kind):
    layer, source, x, weight = drawn(kind, seed)
    zeros = ungrouped_weights(weight, source.channels)
    split, kernels = by_groups(as_plain(layer), zeros)
    assert isinstance(split, DepthwiseConv) == is_depthwise(zeros)
    assert isinstance(split, DepthwiseConv) or kind == "grouped" or source.channels == 1
    sums = layer.forward(x, {"weight": weight}, source)
    np.testing.assert_array_equal(split.forward(x, {"weight": kernels}, source), sums)


def test_how_many_groups_weights_have():
    weight = np.zeros((6, 1, 1, 12), np.int64)
    assert groups_of(weight) == 6
    weight[5, 0, 0, 8] = 1  # of six groups the last one has channels 10 and 11, of three 8 to 11
    assert groups_of(weight) == 3
    weight[0, 0, 0, 11] = 1
    assert groups_of(weight) == 1
    assert groups_of(np.ones((4, 1, 1, 2), np.int64)) == 1


def test_which_weights_are_those_of_a_depthwise_one():
    zeros = np.zeros((3, 2, 2, 3), np.int64)
    assert is_depthwise(zeros)
    assert not is_depthwise(zeros[:2])  # fewer kernels than channels
    assert not is_depthwise(np.zeros((1, 2, 2, 1), np.int64))  # any convolution of one channel would be one
    zeros[2, 1, 0, 0] = 1
    assert not is_depthwise(zeros)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", [signed(4), TERNARY, BIPOLAR])
def test_a_file_holds_own_weights_alone(encoding, kind, tmp_path):
    layer = GroupedConv(name="conv", out_channels=6, groups=3, kernel=(2, 1), weight=encoding)
    channels = 9
    if kind == "depthwise":
        layer = DepthwiseConv(name="conv", out_channels=6, kernel=(2, 1), weight=encoding)
        channels = 6
    layers = (layer, Requantise(name="act", encoding=signed(8)))
    network = Network(name="net", input=case_map(4, 5, channels, signed(8)), layers=layers)
    rng = np.random.default_rng(1)
    arrays = {"bias": np.arange(6), "multiplier": np.arange(1, 7), "shift": np.arange(6)}
    weight = random_values((6, 2, 1, channels // layer.groups), encoding, rng)
    model = Model(network, {"conv": {"weight": weight}, "act": arrays})
    file.save(model, tmp_path / "net.npz")
    read = file.load(tmp_path / "net.npz")
    assert read.network == network
    images = rng.integers(-128, 128, (2, 4, 5, channels))
    np.testing.assert_array_equal(read.forward(images), model.forward(images))
    np.testing.assert_array_equal(packed.forward(read, images), model.forward(images))


def test_refused():
    with value_error("conv: accumulate must be popcount in a depthwise one, got or"):
        DepthwiseConv(name="conv", out_channels=3, kernel=(1, 1), accumulate="or")
    layer = DepthwiseConv(name="conv", out_channels=3, kernel=(1, 1), weight=signed(4))
    with value_error("conv: out_channels must be the 2 channels that it reads, got 3"):
        layer.output(case_map(2, 2, 2, signed(4)))
    with value_error("conv: accumulate must be popcount in a grouped one, got or"):
        GroupedConv(name="conv", out_channels=4, groups=2, kernel=(1, 1), accumulate="or")
    with value_error("conv: groups must be an integer >= 2, got 1"):
        GroupedConv(name="conv", out_channels=4, groups=1, kernel=(1, 1))
    with value_error("conv: groups must divide out_channels = 4, got 3"):
        GroupedConv(name="conv", out_channels=4, groups=3, kernel=(1, 1))
    layer = GroupedConv(name="conv", out_channels=4, groups=2, kernel=(1, 1), weight=signed(4))
    with value_error("conv: groups must divide the 3 channels that it reads, got 2"):
        layer.output(case_map(2, 2, 3, signed(4)))
