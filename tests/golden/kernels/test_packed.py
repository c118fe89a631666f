import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, Encoding, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.kernels.tiled import cpu
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from tests.cases import case_map, cases, integer_cases, random_images
from tests.errors import value_error

CASES = dict(cases() + integer_cases())


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-g++")
    cpu.library.cache_clear()


@pytest.mark.parametrize("name", CASES)
def test_every_layer_equals_the_plain_pass(name):
    check_layers(name)


@pytest.mark.parametrize("name", CASES)
def test_every_layer_equals_the_plain_pass_without_a_compiler(name, no_compiler):
    check_layers(name)


def check_layers(name: str) -> None:
    model = CASES[name]
    x = random_images(model, 7, np.random.default_rng(1))
    plain = model.trace(x)
    for batch in (None, 3):
        fast = packed.trace(model, x, batch=batch)
        assert len(fast) == len(plain)
        for a, b in zip(plain, fast):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(packed.forward(model, x, batch=batch), plain[-1])


def test_or_equals_the_plain_pass():
    check_or()


def test_or_equals_the_plain_pass_without_a_compiler(no_compiler):
    check_or()


def check_or() -> None:
    """Windows opposite to the kernel in all valid taps but, at most, one bit; beside padding too."""
    layers = (
        Conv(name="conv_1", out_channels=2, kernel=(2, 3), stride=(1, 2), padding=(1, 1, 0, 2), accumulate="or"),
        Dense(name="dense_2", out_channels=3, accumulate="or"),
    )
    network = Network(name="or", input=case_map(3, 4, 2, BIPOLAR), layers=layers)
    conv = -np.ones((2, 2, 3, 2), int)
    conv[1, 1, 2, 0] = 1
    dense = np.where(np.arange(3 * 3 * 2) % 5 == 0, np.array([[1], [-1], [1]]), -1).reshape(3, 3, 3, 2)
    model = Model(network, {"conv_1": {"weight": conv}, "dense_2": {"weight": dense}})
    x = np.ones((7, 3, 4, 2), int)
    x[1, 0, 0, 1] = x[2, 2, 3, 0] = x[3, 1, 1, 0] = x[4:, 1] = -1
    plain = model.trace(x)
    assert {-1, 1} == set(plain[0].ravel())
    for a, b in zip(plain, packed.trace(model, x)):
        np.testing.assert_array_equal(a, b)


def test_layers_of_bits_are_computed_in_cpp(monkeypatch):
    real = cpu.Convolution.__call__
    seen = []
    monkeypatch.setattr(cpu.Convolution, "__call__", lambda self, x: seen.append(self.conv.name) or real(self, x))
    model = CASES["small_cnn"]
    packed.forward(model, random_images(model, 2, np.random.default_rng(1)))
    binary = [
        layer.name
        for layer, source in model.network.chain("a case")
        if isinstance(layer, Weighted) and source.encoding == BIPOLAR == layer.weight
    ]
    assert seen == binary != []


def one_layer(encoding: Encoding, weight: Encoding, w: list[int], threshold: int | None = None) -> Model:
    """A dense layer with the given weights of one kernel."""
    layers = (Dense(name="dense_1", out_channels=1, weight=weight), Threshold(name="threshold_1"))
    arrays = {"dense_1": {"weight": np.array(w).reshape(1, 1, 1, -1)}}
    if threshold is not None:
        arrays["threshold_1"] = {"threshold": np.array([[threshold]]), "direction": np.array([1])}
    source = case_map(1, 1, len(w), encoding)
    return Model(Network(name="one", input=source, layers=layers[: len(arrays)]), arrays)


DTYPES = {
    13: np.int16,
    **dict.fromkeys((14, 22, 23, 24, 28, 29), np.int32),
    **dict.fromkeys((30, 51, 52, 53), np.int64),
}


@pytest.mark.parametrize(("bits", "dtype"), DTYPES.items())
@pytest.mark.parametrize("compiler", [True, False])
def test_sums_are_exact_at_the_limit_of_each_dtype(bits, dtype, compiler, request):
    """Without a compiler matrices are float32 or float64: 2^24 + 1 is not a float32 and 2^53 + 1 is not a float64."""
    if not compiler:
        request.getfixturevalue("no_compiler")
    model = one_layer(unsigned(bits), BIPOLAR, [1, 1])
    assert packed.value_dtype(model.network.output) == dtype
    x = np.array([2**bits - 1, 2]).reshape(1, 1, 1, 2)
    assert packed.forward(model, x).item() == 2**bits + 1


@pytest.mark.parametrize("bits", [20, 21, 30, 50])
def test_a_threshold_next_to_a_large_sum_is_exact(bits):
    top = 2 ** (bits - 1) - 1
    x = np.array([[top], [top - 1]]).reshape(2, 1, 1, 1)
    weight = -8 if bits < 28 else -1
    at = weight * (top - 1)  # the larger of both sums
    model = one_layer(signed(bits), signed(4), [weight], max(at, -(2**31)))
    np.testing.assert_array_equal(packed.forward(model, x), model.forward(x))


def test_large_values_equal_the_plain_pass():
    for encoding in (signed(16), signed(24), signed(25), signed(26), unsigned(31), signed(54), signed(55)):
        conv = Conv(name="conv_1", out_channels=3, kernel=(2, 2), padding=(1, 0, 0, 1))
        layers = (conv, Threshold(name="threshold_1"))
        rng = np.random.default_rng(encoding.bits)
        arrays = {
            "conv_1": {"weight": rng.choice([-1, 1], (3, 2, 2, 2))},
            "threshold_1": {"threshold": rng.integers(-9, 9, (3, 1)), "direction": np.array([1, -1, 1])},
        }
        model = Model(Network(name="wide", input=case_map(3, 4, 2, encoding), layers=layers), arrays)
        for a, b in zip(model.trace(x := random_images(model, 3, rng)), packed.trace(model, x)):
            np.testing.assert_array_equal(a, b)


def test_progress_is_told_after_each_batch():
    model = CASES["fan_in_1"]
    seen = []
    x = random_images(model, 7, np.random.default_rng(1))
    packed.forward(model, x, batch=3, progress=lambda done, total: seen.append((done, total)))
    packed.forward(model, x[:2], batch=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 7), (6, 7), (7, 7), (1, 2), (2, 2)]


def test_images_and_batch_are_checked():
    model = CASES["fan_in_1"]
    with value_error("fan_in_1: images must have shape (N, 1, 1, 1), got (1, 1)"):
        packed.forward(model, np.ones((1, 1), np.int8))
    with value_error("fan_in_1: batch must be >= 1, got 0"):
        packed.forward(model, np.ones((1, 1, 1, 1), np.int8), batch=0)
    with value_error("fan_in_1: batch must be an integer, got 1.5"):
        packed.forward(model, np.ones((1, 1, 1, 1), np.int8), batch=1.5)
