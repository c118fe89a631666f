"""Depthwise convolution against PyTorch's grouped one and against a plain one; files; what is refused."""

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.depthwise import (
    DepthwiseConv,
    as_depthwise,
    as_plain,
    is_depthwise,
    own_weights,
    plain_weights,
)
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error


def drawn(seed: int):
    """(layer, source, x (N, H, W, C), weight) with everything unequal and random."""
    rng = np.random.default_rng(seed)
    encodings = [(signed(9), signed(8)), (unsigned(4), TERNARY), (BIPOLAR, BIPOLAR), (signed(8), signed(3))]
    source_encoding, weight_encoding = encodings[seed % 4]
    kh, kw = (int(v) for v in rng.integers(1, 5, 2))
    (top, bottom), (left, right) = (rng.integers(0, k, 2).tolist() for k in (kh, kw))
    channels = int(rng.choice([1, 2, 3, 17]))
    source = case_map(int(rng.integers(kh, 8)), int(rng.integers(kw, 11)), channels, source_encoding)
    layer = DepthwiseConv(
        name="conv_1", out_channels=channels, kernel=(kh, kw), weight=weight_encoding,
        stride=(int(rng.integers(1, 4)), int(rng.integers(1, 4))), padding=(top, left, bottom, right),
    )  # fmt: skip
    x = random_values((2, *source.shape), source_encoding, rng)
    return layer, source, x, random_values(layer.array_shapes(source)["weight"], weight_encoding, rng)


@pytest.mark.parametrize("seed", range(12))
def test_equals_pytorch(seed, torch):
    layer, source, x, weight = drawn(seed)
    top, left, bottom, right = layer.padding
    y = torch.nn.functional.conv2d(
        torch.nn.functional.pad(torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2), (left, right, top, bottom)),
        torch.tensor(weight, dtype=torch.float64).permute(0, 3, 1, 2),
        stride=layer.stride, groups=source.channels,
    )  # fmt: skip
    ours = layer.forward(x, {"weight": weight}, source)
    assert ours.dtype == np.int64
    assert ours.shape[1:] == layer.output(source).shape
    np.testing.assert_array_equal(ours, y.permute(0, 2, 3, 1).numpy())


@pytest.mark.parametrize("seed", range(12))
def test_equals_a_plain_convolution_with_zeros(seed):
    layer, source, x, weight = drawn(seed)
    plain, zeros = as_plain(layer), plain_weights(weight)
    plain.weight.check("zeros", zeros)
    np.testing.assert_array_equal(
        layer.forward(x, {"weight": weight}, source), plain.forward(x, {"weight": zeros}, source)
    )
    np.testing.assert_array_equal(own_weights(zeros), weight)
    assert is_depthwise(zeros) == (source.channels > 1)
    assert as_depthwise(plain).kernel == layer.kernel


def test_which_weights_are_those_of_a_depthwise_one():
    zeros = np.zeros((3, 2, 2, 3), np.int64)
    assert is_depthwise(zeros)
    assert not is_depthwise(zeros[:2])  # fewer kernels than channels
    assert not is_depthwise(np.zeros((1, 2, 2, 1), np.int64))  # any convolution of one channel would be one
    zeros[2, 1, 0, 0] = 1
    assert not is_depthwise(zeros)


@pytest.mark.parametrize("seed", range(4))
def test_sums_stay_in_their_range_and_reach_both_ends(seed):
    layer, source, x, weight = drawn(seed)
    low, high = layer.accumulator_range(source)
    found = layer.forward(x, {"weight": weight}, source)
    assert low <= found.min() <= found.max() <= high
    assert layer.output(source).encoding.high >= high
    assert (low, high) == Conv(
        name="c", out_channels=1, kernel=layer.kernel, padding=layer.padding, weight=layer.weight
    ).accumulator_range(case_map(source.height, source.width, 1, source.encoding))


def test_a_file_holds_own_weights_alone(tmp_path):
    layer = DepthwiseConv(name="conv", out_channels=3, kernel=(2, 1), weight=signed(4))
    layers = (layer, Requantise(name="act", encoding=signed(8)))
    network = Network(name="net", input=case_map(4, 5, 3, signed(8)), layers=layers)
    weight = np.random.default_rng(1).integers(-8, 8, (3, 2, 1, 1))
    arrays = {"bias": np.array([1, -2, 3]), "multiplier": np.array([1, 3, 5]), "shift": np.array([0, 2, 3])}
    model = Model(network, {"conv": {"weight": weight}, "act": arrays})
    file.save(model, tmp_path / "net.npz")
    read = file.load(tmp_path / "net.npz")
    assert read.network == network
    images = np.random.default_rng(2).integers(-128, 128, (2, 4, 5, 3))
    np.testing.assert_array_equal(read.forward(images), model.forward(images))
    np.testing.assert_array_equal(packed.forward(read, images), model.forward(images))


def test_refused():
    with value_error("conv: accumulate must be popcount in a depthwise one, got or"):
        DepthwiseConv(name="conv", out_channels=3, kernel=(1, 1), accumulate="or")
    layer = DepthwiseConv(name="conv", out_channels=3, kernel=(1, 1), weight=signed(4))
    with value_error("conv: out_channels must be the 2 channels that it reads, got 3"):
        layer.output(case_map(2, 2, 2, signed(4)))
