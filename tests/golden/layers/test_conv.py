from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Conv, product_range
from bitloom.golden.layers.dense import Dense
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error


def random_conv(seed: int):
    """(layer, source, x (N, H, W, C), weight) with everything unequal and random."""
    rng = np.random.default_rng(seed)
    source_encoding = [BIPOLAR, signed(8), signed(8), bipolar(3), unsigned(4)][seed % 5]
    weight_encoding = [BIPOLAR, BIPOLAR, signed(8), TERNARY, signed(3)][seed % 5]
    kh, kw = (int(v) for v in rng.integers(1, 5, 2))
    top, bottom = (int(v) for v in rng.integers(0, kh, 2))
    left, right = (int(v) for v in rng.integers(0, kw, 2))
    source = case_map(
        int(rng.integers(kh, 8)), int(rng.integers(kw, 11)), int(rng.choice([1, 2, 3, 31, 33])), source_encoding
    )
    outputs = int(rng.integers(1, 6))
    window = {"kernel": (kh, kw), "stride": (int(rng.integers(1, 4)), int(rng.integers(1, 4)))}
    padding = (top, left, bottom, right)
    layer = Conv(name="conv_1", out_channels=outputs, weight=weight_encoding, **window, padding=padding)
    x = random_values((2, *source.shape), source_encoding, rng)
    weight = random_values(layer.array_shapes(source)["weight"], weight_encoding, rng)
    return layer, source, x, weight


@pytest.mark.parametrize("seed", range(40))
def test_convolution_equals_pytorch(seed, torch):
    layer, source, x, weight = random_conv(seed)
    top, left, bottom, right = layer.padding
    y = torch.nn.functional.conv2d(
        torch.nn.functional.pad(torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2), (left, right, top, bottom)),
        torch.tensor(weight, dtype=torch.float64).permute(0, 3, 1, 2),
        stride=layer.stride,
    )
    ours = layer.forward(x, {"weight": weight}, source)
    assert ours.dtype == np.int64
    assert ours.shape[1:] == layer.output(source).shape
    np.testing.assert_array_equal(ours, y.permute(0, 2, 3, 1).numpy())


@pytest.mark.parametrize("seed", range(5))
def test_convolution_equals_its_definition(seed):
    """Four loops: the same without PyTorch."""
    layer, source, x, weight = random_conv(seed)
    ours = layer.forward(x, {"weight": weight}, source)
    for n, row, column, kernel in np.ndindex(ours.shape):
        total = 0
        for ky, kx in np.ndindex(layer.kernel):
            y = row * layer.stride[0] + ky - layer.padding[0]
            z = column * layer.stride[1] + kx - layer.padding[1]
            if 0 <= y < source.height and 0 <= z < source.width:
                total += int(x[n, y, z] @ weight[kernel, ky, kx])
        assert ours[n, row, column, kernel] == total


def test_dense_equals_pytorch(torch):
    """Weights are in the order (row, column, channel), channel fastest."""
    rng = np.random.default_rng(1)
    source = case_map(3, 2, 5)
    x, weight = random_values((4, 3, 2, 5), BIPOLAR, rng), random_values((7, 3, 2, 5), BIPOLAR, rng)
    y = torch.nn.functional.linear(torch.tensor(x).flatten(1), torch.tensor(weight).flatten(1))
    ours = Dense(name="dense_1", out_channels=7).forward(x, {"weight": weight}, source)
    np.testing.assert_array_equal(ours, y[:, None, None].numpy())


def test_a_padded_tap_of_a_bipolar_map_adds_nothing():
    layer = Conv(name="c", out_channels=1, kernel=(2, 2), padding=(1, 1, 0, 0))
    source = case_map(1, 1, 3)
    one = np.ones((1, 1, 1, 3), np.int64)
    assert layer.forward(one, {"weight": np.ones((1, 2, 2, 3), np.int8)}, source).item() == 3


@pytest.mark.parametrize(
    ("source", "weight", "expected"),
    [
        (BIPOLAR, BIPOLAR, (-1, 1)),
        (signed(8), BIPOLAR, (-128, 128)),
        (signed(8), signed(8), (-16256, 16384)),
        (unsigned(4), signed(3), (-60, 45)),
        (unsigned(4), unsigned(2), (0, 45)),
        (bipolar(3), TERNARY, (-3, 3)),
    ],
)
def test_range_of_a_product_and_of_a_sum(source, weight, expected):
    values = (range(encoding.low, encoding.high + 1, encoding.step) for encoding in (source, weight))
    products = [x * w for x, w in product(*values)]
    assert product_range(source, weight) == (min(products), max(products)) == expected
    layer = Conv(name="c", out_channels=1, kernel=(3, 2), weight=weight)
    low, high = layer.accumulator_range(case_map(4, 4, 5, source))
    assert (low, high) == (30 * expected[0], 30 * expected[1])
    target = layer.output(case_map(4, 4, 5, source)).encoding
    assert target.low <= low
    assert high <= target.high
    assert signed(target.bits - 1).low > low or signed(target.bits - 1).high < high


# Accumulation by OR (spec A2).


def random_or(seed: int):
    """(layer, source, x, weight) of a binary layer; kernels that are opposite to a window, so that -1 occurs."""
    rng = np.random.default_rng(seed)
    kh, kw = (int(v) for v in rng.integers(1, 4, 2))
    source = case_map(int(rng.integers(kh, 7)), int(rng.integers(kw, 9)), int(rng.integers(1, 4)))
    top, bottom = (int(v) for v in rng.integers(0, kh, 2))
    left, right = (int(v) for v in rng.integers(0, kw, 2))
    window = {"kernel": (kh, kw), "stride": (int(rng.integers(1, 4)), int(rng.integers(1, 4)))}
    layer = Conv(name="conv_1", out_channels=5, padding=(top, left, bottom, right), accumulate="or", **window)
    x = random_values((2, *source.shape), BIPOLAR, rng)
    weight = random_values(layer.array_shapes(source)["weight"], BIPOLAR, rng)
    weight[1], weight[3] = -x[0, :kh, :kw], -x[1, -kh:, -kw:]
    return layer, source, x, weight


def or_model(seed: int) -> tuple[Model, np.ndarray]:
    layer, source, x, weight = random_or(seed)
    return Model(Network(name="n", input=source, layers=(layer,)), {"conv_1": {"weight": weight}}), x


@pytest.mark.parametrize("seed", range(10))
def test_or_equals_its_definition(seed):
    """OR of XNOR gates, bit by bit, over the valid taps."""
    layer, source, x, weight = random_or(seed)
    ours = layer.forward(x, {"weight": weight}, source)
    assert layer.output(source).encoding == BIPOLAR
    assert ours.dtype == np.int64
    for n, row, column, kernel in np.ndindex(ours.shape):
        bit = False
        for ky, kx, channel in np.ndindex(*layer.kernel, source.channels):
            y = row * layer.stride[0] + ky - layer.padding[0]
            z = column * layer.stride[1] + kx - layer.padding[1]
            if 0 <= y < source.height and 0 <= z < source.width:
                bit |= not (bool(x[n, y, z, channel] > 0) ^ bool(weight[kernel, ky, kx, channel] > 0))
        assert ours[n, row, column, kernel] == (1 if bit else -1)


@pytest.mark.parametrize("seed", range(10))
def test_fast_or_equals_the_plain_pass(seed):
    model, x = or_model(seed)
    np.testing.assert_array_equal(packed.forward(model, x), model.forward(x))
    np.testing.assert_array_equal(packed.forward(model, x, batch=1), model.forward(x))


def test_the_fast_or_counts_exactly_beyond_what_a_bit_holds():
    """2^24 + 1 products, of which one is +1: the sum of float32 would not show it."""
    layer = Dense(name="d", out_channels=1, accumulate="or")
    source = case_map(1, 1, 2**24 + 1)
    x = -np.ones((2, 1, 1, 2**24 + 1), np.int8)
    x[1, 0, 0, -1] = 1
    model = Model(Network(name="n", input=source, layers=(layer,)), {"d": {"weight": np.ones_like(x[:1])}})
    assert packed.forward(model, x).ravel().tolist() == [-1, 1]


# OR within a word, and the sum over words (spec A2).


def words(**more: object) -> Conv:
    return conv(**{"accumulate": "or_words", "word_channels": 2, **more})


def words_case(seed: int) -> tuple[Model, np.ndarray]:
    """A layer like `random_or`'s; words of 1 to 4 channels, the last one shorter where channels are left."""
    rng = np.random.default_rng(seed)
    layer, source, _, _ = random_or(seed)
    source = replace(source, channels=int(rng.integers(1, 8)))
    layer = replace(layer, accumulate="or_words", word_channels=int(rng.integers(1, 5)))
    weight = random_values(layer.array_shapes(source)["weight"], BIPOLAR, rng)
    model = Model(Network(name="n", input=source, layers=(layer,)), {"conv_1": {"weight": weight}})
    return model, random_values((2, *source.shape), BIPOLAR, rng)


@pytest.mark.parametrize("seed", range(10))
def test_words_equal_their_definition(seed):
    """Bit by bit; and the range of sums holds them."""
    model, x = words_case(seed)
    (layer,) = model.network.layers
    source = model.network.input
    weight = model.arrays["conv_1"]["weight"]
    ours = model.forward(x)
    low, high = layer.accumulator_range(source)
    assert layer.output(source).encoding.low <= low <= ours.min()
    assert ours.max() <= high <= layer.output(source).encoding.high
    for n, row, column, kernel in np.ndindex(ours.shape):
        total = 0
        for ky, kx in np.ndindex(*layer.kernel):
            y = row * layer.stride[0] + ky - layer.padding[0]
            z = column * layer.stride[1] + kx - layer.padding[1]
            if 0 <= y < source.height and 0 <= z < source.width:
                dots = [False] * -(-source.channels // layer.word_channels)
                for c in range(source.channels):
                    dots[c // layer.word_channels] |= bool(x[n, y, z, c] == weight[kernel, ky, kx, c])
                total += sum(1 if bit else -1 for bit in dots)
        assert ours[n, row, column, kernel] == total


@pytest.mark.parametrize("seed", range(10))
def test_fast_words_equal_the_plain_pass(seed):
    model, x = words_case(seed)
    np.testing.assert_array_equal(packed.forward(model, x), model.forward(x))
    assert packed.forward(model, x[:0]).shape == model.forward(x[:0]).shape


def conv(**more: object) -> Conv:
    return Conv(**{"name": "conv_1", "out_channels": 2, "kernel": (3, 2), **more})


def check(weight: np.ndarray, encoding: Encoding = BIPOLAR) -> None:
    conv(weight=encoding).check_arrays({"weight": weight}, case_map(4, 4, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conv(out_channels=0), "conv_1: out_channels must be an integer >= 1, got 0"),
        (lambda: conv(out_channels=2.0), "conv_1: out_channels must be an integer >= 1, got 2.0"),
        (lambda: conv(accumulate="and"), "conv_1: accumulate must be one of popcount, or, or_words, got 'and'"),
        (lambda: words(word_channels=0), "conv_1: word_channels must be an integer >= 1, got 0"),
        (lambda: words(word_channels=2.0), "conv_1: word_channels must be an integer >= 1, got 2.0"),
        (lambda: conv(word_channels=2), "conv_1: word_channels must be 0 for accumulate popcount, got 2"),
        (
            lambda: words(weight=TERNARY),
            "conv_1: accumulate or_words needs weights of bipolar 1 bit (-1..1 in steps of 2), "
            "got ternary 2 bit (-1..1)",
        ),
        (
            lambda: words().output(case_map(4, 4, 5, unsigned(5))),
            "conv_1: accumulate or_words needs a map of bipolar 1 bit (-1..1 in steps of 2), "
            "got unsigned 5 bit (0..31)",
        ),
        (
            lambda: conv(accumulate="or", weight=TERNARY),
            "conv_1: accumulate or needs weights of bipolar 1 bit (-1..1 in steps of 2), got ternary 2 bit (-1..1)",
        ),
        (
            lambda: conv(accumulate="or").output(case_map(4, 4, 5, unsigned(5))),
            "conv_1: accumulate or needs a map of bipolar 1 bit (-1..1 in steps of 2), got unsigned 5 bit (0..31)",
        ),
        (
            lambda: conv(accumulate="or").output(case_map(4, 4, 5, bipolar(2))),
            "conv_1: accumulate or needs a map of bipolar 1 bit (-1..1 in steps of 2), "
            "got bipolar 2 bit (-2..2 in steps of 2)",
        ),
        (lambda: conv(stride=(0, 1)), "conv_1: stride must be >= 1, got (0, 1)"),
        (
            lambda: conv().output(case_map(2, 9, 1)),
            "conv_1: the window must fit the padded map, got kernel (3, 2) on 2 x 9",
        ),
        (
            lambda: conv().output(case_map(9, 1, 1)),
            "conv_1: the window must fit the padded map, got kernel (3, 2) on 9 x 1",
        ),
        (
            lambda: conv(weight=signed(40)).output(case_map(9, 9, 1, signed(40))),
            "conv_1: accumulators must fit 62 bits, got 82 for fan-in 6",
        ),
        (lambda: check(np.ones((2, 3, 2, 4), int)), "conv_1.weight: shape must be (2, 3, 2, 5), got (2, 3, 2, 4)"),
        (lambda: check(np.ones((2, 3, 2, 5))), "conv_1.weight: dtype must be integer, got float64"),
        (
            lambda: check(np.zeros((2, 3, 2, 5), int)),
            "conv_1.weight: values must be bipolar 1 bit (-1..1 in steps of 2), got 0",
        ),
        (
            lambda: check(np.full((2, 3, 2, 5), -2), TERNARY),
            "conv_1.weight: values must be ternary 2 bit (-1..1), got -2",
        ),
        (lambda: conv().check_arrays({}, case_map(4, 4, 5)), "conv_1: arrays must be ['weight'], got []"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()
